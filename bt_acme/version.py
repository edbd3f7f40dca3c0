"""The version of the package, which is also recorded in saved runs."""

__version__ = '0.1.0'
