"""Declared runs: executed by any number of workers, gathered as a dataset."""
