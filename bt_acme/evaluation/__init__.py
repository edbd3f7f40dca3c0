"""Measures what was learned."""

from bt_acme.evaluation.evaluator import Evaluator

__all__ = ('Evaluator',)
