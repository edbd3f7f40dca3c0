"""Behavior Transfer around agents that are not ours.

A *policy* that is not ours, to serve as a behavior, is the matter of
`behaviors/from_callable.py`.
"""
