"""The version, which saved runs carry, too."""

__version__ = '0.1.0'
