"""Executes declared runs with any number of workers and gathers a dataset."""
