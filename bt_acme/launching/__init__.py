"""Starts, resumes and recreates runs: for launch scripts and `bt_acme.api`."""
