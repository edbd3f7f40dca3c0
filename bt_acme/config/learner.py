"""Settings of the learner: loss, optimizer, devices, labels of behaviors."""

import dataclasses

from bt_acme.config import checks

LOSSES = ('q_lambda', 'retrace')  # The keys of `core.targets.TARGETS`.


@dataclasses.dataclass(frozen=True)
class LearnerConfig:
  """The learner: loss, optimizer, devices, and labels of behaviors' actions.

  Attributes:
    loss: Loss that defines the targets of the Q-values: `q_lambda` is Peng's
      Q(lambda), which the paper uses for transfer; `retrace` is
      Retrace(lambda), which the paper uses for pre-training.
    trace_decay: Lambda of the loss, in [0, 1]. The paper uses 0.7 for Q(lambda)
      and 0.95 for Retrace.
    discount: Discount factor gamma per actor step, in [0, 1]. The paper uses
      0.99.
    value_rescaling_epsilon: Epsilon of the signed hyperbolic function h that
      rescales values; 0 disables the rescaling. The paper does not say whether
      it rescales the values of Q(lambda); R2D2 rescales its values.
    target_policy_epsilon: Epsilon of the target policy of Retrace. NGU uses
      0.01.
    batch_size: Number of sequences in a batch, over all devices of the learner
      together. The paper uses 64.
    learning_rate: Learning rate of Adam for the Q-network. The paper uses 2e-4.
    adam_epsilon: Epsilon of Adam. The paper uses 1e-4.
    max_gradient_norm: Global norm to which larger gradients are scaled down.
      The paper does not say whether it clips gradients; 40 follows NGU.
    target_update_period: Number of learner steps after which the online network
      is copied to the target network again. The paper uses 1500.
    importance_sampling_exponent: Exponent of the importance-sampling weights; 0
      applies no correction. The paper uses 0. R2D2 omits the correction
      according to its text, but its table lists 0.6.
    publish_period: Number of learner steps after which the learner makes a new
      copy of its parameters for the actors to fetch. In runs of one process,
      actors fetch the newest parameters instead.
    num_devices: Number of accelerators of the learner's machine over which each
      batch is split; 0 uses all of them. The update is the same for any number.
    double_q: Whether to let the online network select the action that the
      target network evaluates in Q(lambda), as in R2D2. The paper only mentions
      Q(lambda).
    behavior_labels: Actions that the learner trains on a transition of a
      behavior, if there is an extra action: `both` trains the extra action and,
      in a duplicate, the primitive action that the behavior took; `extra` or
      `primitive` trains only that action, so with `primitive` the value of an
      extra action is never trained. The paper's actor overwrites the extra
      action with the primitive one before it stores the transition, but its
      learner duplicates and relabels transitions, which requires both actions
      to be stored.
    duplicate_flights: Whether to count the steps of a flight, too, as
      "transitions collected with pi_p" if there is an extra action; otherwise
      they train only their primitive action. The paper's wording is ambiguous;
      taken literally, they count.

  Example:
    ```python
    from bt_acme import config

    config.R2D2Config(learner=config.LearnerConfig(batch_size=32))
    ```
  """

  loss: str = checks.choice('q_lambda', *LOSSES)
  trace_decay: float = checks.setting(0.7, minimum=0, maximum=1)
  discount: float = checks.setting(0.99, minimum=0, maximum=1)
  value_rescaling_epsilon: float = checks.setting(1e-3, minimum=0)
  target_policy_epsilon: float = checks.setting(0.01, minimum=0, maximum=1)
  batch_size: int = checks.setting(64, above=0)
  learning_rate: float = checks.setting(2e-4, above=0, largest=1)
  adam_epsilon: float = checks.setting(1e-4, above=0)
  max_gradient_norm: float = checks.setting(40.0, above=0)
  target_update_period: int = checks.setting(1500, above=0)
  importance_sampling_exponent: float = checks.setting(0.0, minimum=0)
  publish_period: int = checks.setting(10, above=0)
  num_devices: int = checks.setting(1, minimum=0)
  double_q: bool = True
  behavior_labels: str = checks.choice('both', 'extra', 'primitive')
  duplicate_flights: bool = True

  def __post_init__(self) -> None:
    checks.check(self)
    checks.require(
      not self.num_devices or self.batch_size % self.num_devices == 0,
      f'batch_size={self.batch_size} cannot be split evenly over '
      f'num_devices={self.num_devices}. Choose a multiple of the number of '
      'devices, or another num_devices.',
    )


@dataclasses.dataclass(frozen=True)
class NGULearnerConfig(LearnerConfig):
  """The learner of `NGUConfig`, with the paper's loss for pre-training.

  Example:
    ```python
    from bt_acme import config

    config.NGUConfig(learner=config.NGULearnerConfig(batch_size=32))
    ```
  """

  loss: str = checks.choice('retrace', *LOSSES)
  trace_decay: float = checks.setting(0.95, minimum=0, maximum=1)
