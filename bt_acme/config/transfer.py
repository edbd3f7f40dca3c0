"""Settings of behavior transfer (Campos et al. 2021, Alg. 1)."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from bt_acme.config import checks

# Longer than any episode. A run builds a table of all lengths when it starts.
_LONGEST_FLIGHT = 10_000_000
_NO_FLIGHTS = 'Use flights=False to disable flights.'
_ROLES = ('both', 'fly', 'choose')
# A setting, one of its values, and the settings that need this value.
_ONLY_WITH = (
  ('extra_action', True, ('extra_action_margin', 'choice_rule')),
  ('flights', True, ('flight_priorities', 'flight_law', 'flight_epsilon')),
  ('flights', True, ('flight_recurrent_state',)),
  ('choice_rule', 'boltzmann', ('choice_temperature',)),
  (
    'flight_law',
    'jump_start',
    ('jump_start_rate', 'jump_start_tolerance', 'jump_start_window'),
  ),
  ('flight_law', 'until_agent', ('until_agent_margin',)),
  ('flight_law', 'triggered', ('promise_steps',)),
  (
    'flight_priorities',
    'learned',
    (
      *('priority_signal', 'priority_window'),
      *('priority_temperature', 'priority_floor'),
    ),
  ),
)


@dataclasses.dataclass(frozen=True)
class TransferConfig:
  """Behavior transfer: flights and the extra action.

  Attributes:
    flights: Whether to let a behavior control whole stretches of an episode,
      called flights.
    extra_action: Whether to give the agent an extra action that lets a behavior
      act for one step.
    extra_action_margin: Margin by which the value of a primitive action must
      exceed that of an extra action for the primitive action to be selected, as
      a fraction of the largest absolute value. In long tasks, values differ by
      less than the errors of the network; with 0.1, the agent follows the
      behavior when in doubt. The paper selects the largest value, which is a
      margin of 0.
    choice_rule: Rule by which actors select among the agent's own action and
      the extra actions: `greedy` selects the largest value, as in the paper;
      `boltzmann` draws the primitive action with the largest value or an extra
      action with a probability that grows with its value, which is policy
      expansion (Zhang et al. 2023). Evaluations without flights are greedy.
    choice_temperature: Temperature of `boltzmann`, as a fraction of the largest
      absolute value.
    flight_law: Law by which a flight starts and ends: `zeta` starts flights at
      random and draws their lengths, as in the paper; `jump_start` gives the
      first steps of each episode to the behavior, less and less as the returns
      grow (Uchendu et al. 2022); `until_agent` starts flights at random and
      ends each of them as soon as the agent's value of its own choice exceeds
      that of the behavior's choice (until_agent_margin); `triggered` starts
      flights where the agent's values disagree with later rewards, at the rate
      of flight_probability (Pislar et al. 2022). `jump_start` ignores the
      probabilities and lengths of flights, and `until_agent` the lengths.
    jump_start_rate: With `jump_start`, fraction by which the behavior's share
      of an episode changes after each episode of an environment.
    jump_start_tolerance: With `jump_start`, fraction of the best mean return by
      which the mean return may fall below it before the share grows again.
    jump_start_window: With `jump_start`, number of recent episodes of an
      environment whose mean return and mean length count. The share stays 1
      until so many episodes have ended.
    until_agent_margin: With `until_agent`, lead of the agent's own choice that
      ends a flight, as a fraction of the largest absolute value.
    promise_steps: With `triggered`, number of steps after which a value is
      compared with the rewards.
    flight_probability: Probability that a step starts a flight: `log_uniform`
      draws it for each episode, independently of the environment's epsilon, as
      in the paper's agent; `epsilon` uses the environment's epsilon and
      replaces random actions with flights, as in the ez-greedy agent of Dabney
      et al., and ignores the two bounds below. The paper does not say which of
      the two its own ez-greedy baseline uses.
    min_flight_probability: Lower bound of the log-uniform distribution of the
      probability that a step starts a flight. The paper lists 0, which has no
      logarithm.
    max_flight_probability: Upper bound of the log-uniform distribution of the
      probability that a step starts a flight. The paper uses 0.1.
    flight_exponent: Exponent mu of the zeta distribution of flight lengths:
      length n has a probability proportional to n^-mu. The paper uses 2.
    max_flight_length: Maximum length of a flight in actor steps; longer flights
      are clipped. The paper does not say whether there is a limit, without
      which the mean length is infinite; 10,000 follows ez-greedy.
    flight_epsilon: Largest probability of a random action at a step of a
      flight. Half of the episodes have no such actions; the others draw their
      probability between a tenth of this value and this value. They show the
      agent states that the behavior alone would not reach. The value of the
      extra action suffers less than with a large behavior_epsilon, because such
      a step trains the value of the random action. The paper uses 0.
    behavior_roles: Comma-separated roles, one per behavior: `both`, `fly`
      (flights only, without an extra action) or `choose` (an extra action
      only). Empty gives all behaviors both roles, as in the paper.
    flight_priorities: Probabilities with which a flight draws each behavior:
      `fixed` uses the weights of the behaviors for the whole run; `learned`
      also prefers behaviors whose recent episodes had high scores
      (priority_signal). The paper uses a single behavior and suggests
      priorities as future work.
    priority_signal: Score of an episode, which counts for each behavior that
      flew in it: `discovery` is the sum of the positive rewards of the task,
      which favors behaviors that find rewards at any cost; `return` is the sum
      of all rewards of the task; `novelty` is the number of distinct
      observations, which suits small images without noise;
      `discovery_then_novelty` is the discovery as soon as the recent episodes
      of any behavior have one, and the novelty until then.
    priority_window: Number of recent episodes of each behavior whose mean score
      determines its priority.
    priority_temperature: Temperature of the softmax over the mean scores, which
      are divided by their standard deviation over episodes. At 0.1, a mean that
      is half a standard deviation higher makes a behavior 150 times as likely,
      apart from priority_floor.
    priority_floor: Share of the draws that ignore the scores, so that each
      behavior is tried again from time to time.
    behavior_draws: Unit for which a behavior is drawn: `flight` draws one for
      each flight, `episode` one for all flights of an episode, so that its
      score depends on one behavior; `auto` is `episode` with learned
      priorities or kickstarting, else `flight`.
    kickstarting: Initial weight of a loss that moves the values of primitive
      actions towards the action that the behavior of the episode proposes, at
      each step (Schmitt et al. 2018; QDagger, Agarwal et al. 2022). One
      behavior is drawn for each episode; without flights, there may be only
      one. 0 stores no proposals, as in the paper.
    kickstarting_steps: Number of learner steps in which the weight of
      kickstarting falls to 0, linearly.
    kickstarting_temperature: Temperature of the policy that kickstarting
      compares with the behavior, a softmax of the rescaled values.
    flight_recurrent_state: Treatment of the Q-network's recurrent state during
      a flight, in both actors and the learner: `advance` processes the steps of
      the flight; `hold` keeps the state from before the flight, which makes
      training slower. The paper does not specify this: its actor runs either
      the behavior or R2D2, and its learner unrolls whole sequences.
    flight_behavior_state: Recurrent state of a behavior at the start of a
      flight: `advance` continues from its current state, which has processed
      all steps of the episode, no matter who selected the actions; `restart`
      starts from the initial state of an episode, so that its network does not
      remember a past that it would never have produced; NGU's memory and the
      first reward input still include the steps before. Policies in Python
      never restart. The paper does not specify this.
    behavior_epsilon: Epsilon of an exported behavior, which otherwise takes the
      action with the highest value. The paper draws actions from "the policy"
      and does not say how greedily; 0.01 is the epsilon of the evaluators.
    behavior_reward_input: Intrinsic reward that the network of an exported
      behavior takes as an input: `recompute` computes the reward with frozen
      networks, as in pre-training; `zero` uses zeros, which is cheaper. The
      paper trains the policy with this input, but transfers a function of
      observations alone.

  Example:
    ```python
    from bt_acme import config

    config.BTConfig(transfer=config.TransferConfig(extra_action=False))
    ```
  """

  flights: bool = True
  extra_action: bool = True
  extra_action_margin: float = checks.setting(0.0, minimum=0)
  choice_rule: str = checks.choice('greedy', 'boltzmann')
  choice_temperature: float = checks.setting(0.1, above=0)
  flight_law: str = checks.choice(
    'zeta', 'jump_start', 'until_agent', 'triggered'
  )
  jump_start_rate: float = checks.setting(0.1, above=0, maximum=0.9)
  jump_start_tolerance: float = checks.setting(0.25, above=0)
  jump_start_window: int = checks.setting(5, minimum=1)
  until_agent_margin: float = checks.setting(0.0, minimum=0)
  promise_steps: int = checks.setting(5, minimum=1, maximum=1_000)
  flight_probability: str = checks.choice('log_uniform', 'epsilon')
  min_flight_probability: float = checks.setting(
    1e-4, above=0, maximum=1, hint=_NO_FLIGHTS
  )
  max_flight_probability: float = checks.setting(
    0.1, above=0, maximum=1, hint=_NO_FLIGHTS
  )
  flight_exponent: float = checks.setting(2.0, above=1)
  max_flight_length: int = checks.setting(
    10_000, minimum=1, maximum=_LONGEST_FLIGHT
  )
  flight_epsilon: float = checks.setting(0.0, minimum=0, maximum=1)
  behavior_roles: str = ''
  flight_priorities: str = checks.choice('fixed', 'learned')
  priority_signal: str = checks.choice(
    'discovery', 'return', 'novelty', 'discovery_then_novelty'
  )
  priority_window: int = checks.setting(64, minimum=1, maximum=100_000)
  priority_temperature: float = checks.setting(0.1, above=0)
  priority_floor: float = checks.setting(0.1, minimum=0, maximum=1)
  behavior_draws: str = checks.choice('auto', 'flight', 'episode')
  kickstarting: float = checks.setting(0.0, minimum=0)
  kickstarting_steps: int = checks.setting(10_000, minimum=1)
  kickstarting_temperature: float = checks.setting(0.1, minimum=1e-6)
  flight_recurrent_state: str = checks.choice('advance', 'hold')
  flight_behavior_state: str = checks.choice('advance', 'restart')
  behavior_epsilon: float = checks.setting(0.01, minimum=0, maximum=1)
  behavior_reward_input: str = checks.choice('recompute', 'zero')

  @property
  def boltzmann_temperature(self) -> float:
    """The temperature of the choices; 0 for greedy choices."""
    return self.choice_temperature if self.choice_rule == 'boltzmann' else 0.0

  @property
  def learns_priorities(self) -> bool:
    """Whether flights draw behaviors with learned priorities."""
    return self.flights and self.flight_priorities == 'learned'

  @property
  def kickstarts(self) -> bool:
    """Whether the loss compares the agent with the behaviors."""
    return self.kickstarting > 0

  @property
  def priority_signals(self) -> tuple[str, ...]:
    """The scores that determine the priorities, most important first."""
    return tuple(self.priority_signal.split('_then_'))

  @property
  def draws_by_episode(self) -> bool:
    """Whether all flights of an episode belong to one behavior."""
    if self.behavior_draws == 'auto':
      return self.learns_priorities or self.kickstarts
    return self.behavior_draws == 'episode'

  def roles(self, num_behaviors: int) -> tuple[str, ...]:
    """Returns the role of each behavior: `both`, `fly` or `choose`.

    Raises:
      ValueError: if the number of roles differs from the number of behaviors.
    """
    if not self.behavior_roles:
      return (_ROLES[0],) * num_behaviors
    roles = tuple(role.strip() for role in self.behavior_roles.split(','))
    checks.require(
      len(roles) == num_behaviors,
      f'behavior_roles={self.behavior_roles!r} is invalid. Pass one role for '
      f'each of the {num_behaviors} behaviors.',
    )
    return roles

  def extra_behaviors(self, num_behaviors: int) -> tuple[int, ...]:
    """Returns the behavior of each extra action."""
    if not self.extra_action:
      return ()
    roles = self.roles(num_behaviors)
    return tuple(k for k, role in enumerate(roles) if role != 'fly')

  def occasional(self, num_behaviors: int) -> tuple[int, ...]:
    """Returns the behaviors that need only the episodes of their own flights.

    In training, these are the behaviors without an extra action, if all flights
    of an episode belong to one behavior.
    """
    if not (self.flights and self.draws_by_episode):
      return ()
    extra = self.extra_behaviors(num_behaviors)
    return tuple(k for k in range(num_behaviors) if k not in extra)

  def proposers(
    self, num_behaviors: int, *, evaluation: bool
  ) -> tuple[int, ...]:
    """Returns the behaviors that process the steps and propose actions.

    Evaluations have no flights, so only extra actions and kickstarting need
    proposals.

    Args:
      num_behaviors: K, the number of behaviors.
      evaluation: whether flights are disabled.
    """
    if evaluation and not self.kickstarts:
      return self.extra_behaviors(num_behaviors)
    return tuple(range(num_behaviors))

  def __post_init__(self) -> None:
    checks.check(self)
    for role in self.behavior_roles.split(',') if self.behavior_roles else ():
      checks.require(
        role.strip() in _ROLES,
        f'behavior_roles={self.behavior_roles!r}: the role {role.strip()!r} is '
        f'unknown. Choose from {", ".join(_ROLES)}.',
      )
    checks.require(
      self.flights or self.extra_action or self.kickstarts,
      'flights=False and extra_action=False leave nothing to transfer. Enable '
      'one of them, or use the agent without behavior transfer (run_r2d2.py).',
    )
    checks.require(
      not self.kickstarts or self.draws_by_episode,
      f'kickstarting={self.kickstarting} needs one behavior for each episode. '
      "Set behavior_draws='episode', or kickstarting=0.",
    )
    for role, name in (('fly', 'flights'), ('choose', 'extra_action')):
      checks.require(
        getattr(self, name) or role not in self.behavior_roles,
        f'behavior_roles={self.behavior_roles!r} with {name}=False leaves '
        f'behaviors without effect. Set {name}=True or change behavior_roles.',
      )
    for name, without in unused(vars(self)).items():
      checks.require_defaults(self, name, without=without)
    if self.flight_law == 'jump_start':
      checks.require_defaults(
        self, 'flight_probability', without="flight_law='jump_start'"
      )
    checks.require_order(
      vars(self), 'min_flight_probability', 'max_flight_probability'
    )


def unused(settings: Mapping[str, Any]) -> dict[str, str]:
  """Returns the settings that have no effect.

  Args:
    settings: values by name; other settings have their defaults.

  Returns:
    By name, the setting and its value with which they have no effect.
  """
  found: dict[str, str] = {}
  for setting, needed, names in _ONLY_WITH:
    value = settings.get(setting, getattr(TransferConfig, setting))
    if value != needed:
      found.update(dict.fromkeys(names, f'{setting}={value!r}'))
  if not settings.get('kickstarting'):
    for name in ('kickstarting_steps', 'kickstarting_temperature'):
      found[name] = 'kickstarting=0'
  return found
