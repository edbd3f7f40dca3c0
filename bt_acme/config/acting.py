"""Settings of acting and evaluating, such as every environment's epsilon."""

import dataclasses

from bt_acme.config import checks


@dataclasses.dataclass(frozen=True)
class ActingConfig:
  """Acting and evaluating."""

  epsilon_base: float = checks.setting(
    0.4,
    'The agent takes random actions in environment i of N at the rate epsilon '
    '= base^(1 + alpha i / (N - 1)), which is fixed for the whole run; this is '
    'the base. Ape-X and R2D2 have 0.4.',
    minimum=0,
    maximum=1,
  )
  epsilon_alpha: float = checks.setting(
    7.0,
    "The alpha in the exponent of every environment's epsilon (see "
    'epsilon_base). Ape-X and R2D2 have 7.',
    minimum=0,
  )
  evaluation_epsilon: float = checks.setting(
    0.01,
    'Evaluators take random actions at this rate. The paper does not say at '
    'which; NGU has 0.01.',
    minimum=0,
    maximum=1,
  )
  variable_update_period: int = checks.setting(
    400,
    'The number of steps of each environment after which an actor fetches the '
    "learner's parameters again. The paper has 400.",
    above=0,
  )
  bootstrap_truncations: bool = checks.setting(
    True,
    'Whether the value of the last observation counts if the time limit cut '
    'the episode short. The paper does not say; the limit is no part of the '
    'task.',
  )

  def __post_init__(self) -> None:
    checks.check(self)
