"""Every table and figure of Campos et al. 2021 (arXiv:2102.13515)."""
