"""Evaluation of agents and behaviors."""

from bt_acme.evaluation.evaluator import FIRST_ENVIRONMENT, Evaluator

__all__ = ('FIRST_ENVIRONMENT', 'Evaluator')
