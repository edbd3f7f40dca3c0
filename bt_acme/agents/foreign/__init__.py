"""Behavior Transfer around policies and agents that are not ours."""
