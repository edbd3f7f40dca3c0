"""The replay: storage, writers and samplers of sequences of transitions."""
