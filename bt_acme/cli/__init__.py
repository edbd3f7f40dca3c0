"""Command-line scripts: their flags, help and settings."""
