"""Settings of the learner: loss, optimizer, devices, labels of behaviors."""

import dataclasses

from bt_acme.config import checks


@dataclasses.dataclass(frozen=True)
class LearnerConfig:
  """The learner: loss, optimizer, devices, and what behaviors' steps teach."""

  loss: str = checks.setting(
    'q_lambda',
    "The targets of the Q-values: `q_lambda` is Peng's Q(lambda), which the "
    'paper uses in transfer; `retrace` is Retrace(lambda), which it uses in '
    'pre-training.',
    choices=('q_lambda', 'retrace'),
  )
  trace_decay: float = checks.setting(
    0.7,
    'The lambda of the loss, in [0, 1]. The paper has 0.7 for Q(lambda) and '
    '0.95 for Retrace.',
    minimum=0,
    maximum=1,
  )
  discount: float = checks.setting(
    0.99,
    'The discount factor gamma, in [0, 1], applied once an actor step. The '
    'paper has 0.99.',
    minimum=0,
    maximum=1,
  )
  value_rescaling_epsilon: float = checks.setting(
    1e-3,
    'The epsilon of the signed hyperbolic h that rescales values; 0 turns the '
    'rescaling off. The paper does not say whether the values of Q(lambda) are '
    'rescaled; those of R2D2 are.',
    minimum=0,
  )
  target_policy_epsilon: float = checks.setting(
    0.01,
    "The target policy of Retrace takes random actions at this rate. NGU's is "
    '0.01.',
    minimum=0,
    maximum=1,
  )
  batch_size: int = checks.setting(
    64,
    'The learner trains on this many sequences in each step, over all of its '
    'devices together. The paper has 64.',
    above=0,
  )
  learning_rate: float = checks.setting(
    2e-4,
    'The learning rate of Adam. The paper has 2e-4.',
    above=0,
    largest=1,
  )
  adam_epsilon: float = checks.setting(
    1e-4, 'The epsilon of Adam. The paper has 1e-4.', above=0
  )
  max_gradient_norm: float = checks.setting(
    40.0,
    'Gradients are scaled down to this global norm where theirs is larger. The '
    'paper does not say whether it clips them; 40 is from NGU.',
    above=0,
  )
  target_update_period: int = checks.setting(
    1500,
    'The number of learner steps after which the target network becomes a copy '
    'of the online network again. The paper has 1500.',
    above=0,
  )
  importance_sampling_exponent: float = checks.setting(
    0.0,
    'The exponent of the importance-sampling weights; 0 applies no correction. '
    "The paper has 0. R2D2's text leaves the correction out, and its table "
    'prints 0.6.',
    minimum=0,
  )
  publish_period: int = checks.setting(
    10,
    'The number of learner steps after which the learner makes a new copy of '
    'its parameters, which actors fetch.',
    above=0,
  )
  num_devices: int = checks.setting(
    1,
    "The learner splits each batch over this many of its machine's "
    'accelerators; 0 takes all of them. The update is the same.',
    minimum=0,
  )
  double_q: bool = checks.setting(
    True,
    'Whether the online network chooses the action whose value Q(lambda) takes '
    'from the target network, as in R2D2. The paper names Q(lambda) alone.',
  )
  behavior_labels: str = checks.setting(
    'both',
    'Which action the learner learns about from a transition that a behavior '
    'made, if there is an extra action: `both` trains the extra action and, '
    'in a duplicate, the primitive action that the behavior took; `extra` or '
    "`primitive` trains only that one. The paper's actor overwrites the extra "
    'action by the primitive one before it stores the transition, but its '
    'learner duplicates and relabels transitions, for which both actions must '
    'have been stored.',
    choices=('both', 'extra', 'primitive'),
  )
  duplicate_flights: bool = checks.setting(
    True,
    'Whether the steps of a flight count as "transitions collected with pi_p" '
    'too, if there is an extra action; otherwise they train only their '
    "primitive action. The paper's wording leaves it open; read literally, "
    'they count.',
  )

  def __post_init__(self) -> None:
    checks.check(self)
    checks.require(
      not self.num_devices or self.batch_size % self.num_devices == 0,
      f'batch_size={self.batch_size} cannot be split evenly over '
      f'num_devices={self.num_devices}: choose a multiple of the number of '
      'devices, or another num_devices.',
    )
