"""Settings of acting and evaluation, such as every environment's epsilon."""

import dataclasses

from bt_acme.config import checks


@dataclasses.dataclass(frozen=True)
class ActingConfig:
  """Acting and evaluation.

  Attributes:
    epsilon_base: Base of the exploration rates: environment i of N takes random
      actions at the rate epsilon = base^(1 + alpha i / (N - 1)), which is fixed
      for the whole run. Ape-X and R2D2 use 0.4. In the layouts of dm-acme, all
      actors have the epsilon of their common policy instead.
    epsilon_alpha: Alpha in the exponent of every environment's epsilon (see
      epsilon_base). Ape-X and R2D2 use 7.
    evaluation_epsilon: Epsilon of the evaluators. The paper does not specify
      it; 0.01 follows NGU.
    variable_update_period: Number of steps in each environment after which an
      actor fetches the learner's parameters again. The paper uses 400.
    bootstrap_truncations: Whether to bootstrap from the value of the last
      observation when the time limit ends an episode. The paper does not
      specify this; the time limit is not part of the task.

  Example:
    ```python
    from bt_acme import config

    config.R2D2Config(acting=config.ActingConfig(epsilon_base=0.3))
    ```
  """

  epsilon_base: float = checks.setting(0.4, minimum=0, maximum=1)
  epsilon_alpha: float = checks.setting(7.0, minimum=0)
  evaluation_epsilon: float = checks.setting(0.01, minimum=0, maximum=1)
  variable_update_period: int = checks.setting(400, above=0)
  bootstrap_truncations: bool = True

  def __post_init__(self) -> None:
    checks.check(self)
