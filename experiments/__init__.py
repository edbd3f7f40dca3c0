"""Experiments; run each as `python -m experiments.NAME`.

`harness` runs them; `command_line` and `launching` are shared.
"""
