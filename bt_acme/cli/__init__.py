"""Command-line scripts: their flags, settings and launching."""
