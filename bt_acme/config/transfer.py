"""Settings of behavior transfer (Campos et al. 2021, Sec. 3)."""

import dataclasses

from bt_acme.config import checks

# Longer than any episode; a table of all lengths is made when a run starts.
_LONGEST_FLIGHT = 10_000_000
_NO_FLIGHTS = 'Flights are turned off by flights=False.'


@dataclasses.dataclass(frozen=True)
class TransferConfig:
  """Behavior transfer: flights and the extra action."""

  flights: bool = checks.setting(
    True,
    'Whether the agent hands control to a behavior for whole stretches of an '
    'episode, the flights.',
  )
  extra_action: bool = checks.setting(
    True,
    'Whether the agent has an extra action that lets a behavior act for one '
    'step.',
  )
  flight_probability: str = checks.setting(
    'log_uniform',
    'The probability that a step starts a flight: `log_uniform` draws it anew '
    "for each episode, independently of the environment's epsilon, as the "
    "paper's agent does; `epsilon` takes the environment's epsilon, and "
    'flights replace its random actions, as in the ez-greedy of Dabney et al. '
    'The paper does not say which of the two its own ez-greedy baseline uses.',
    choices=('log_uniform', 'epsilon'),
  )
  min_flight_probability: float = checks.setting(
    1e-4,
    'The lower end of the log-uniform distribution of the probability that a '
    'step starts a flight. The paper prints 0, which has no logarithm.',
    above=0,
    maximum=1,
    hint=_NO_FLIGHTS,
  )
  max_flight_probability: float = checks.setting(
    0.1,
    'The upper end of the log-uniform distribution of the probability that a '
    'step starts a flight. The paper has 0.1.',
    above=0,
    maximum=1,
    hint=_NO_FLIGHTS,
  )
  flight_exponent: float = checks.setting(
    2.0,
    'The length n of a flight has the probability n^-mu, up to a factor (a '
    'zeta distribution); this is mu. The paper has 2.',
    above=1,
  )
  max_flight_length: int = checks.setting(
    10_000,
    'Longer flights are clipped to this many actor steps. The paper does not '
    'say whether there is a cap, without which the mean length is infinite; '
    '10,000 is from ez-greedy.',
    minimum=1,
    maximum=_LONGEST_FLIGHT,
  )
  flight_recurrent_state: str = checks.setting(
    'advance',
    "What happens to the Q-network's recurrent state in a flight, in actors "
    "and learner alike: `advance` lets it take in the flight's steps; `hold` "
    'keeps it as it was before the flight, which trains more slowly. The '
    'paper does not say: its actor runs either the behavior or R2D2, and its '
    'learner unrolls whole sequences.',
    choices=('advance', 'hold'),
  )
  flight_behavior_state: str = checks.setting(
    'advance',
    'How a behavior enters a flight: `advance` lets it go on with the '
    'recurrent state that it has, which takes in all steps of the episode, '
    'whoever took them; `restart` lets it begin as at the start of an '
    'episode, so that it does not depend on a past that it would never have '
    'lived through itself. The paper does not say.',
    choices=('advance', 'restart'),
  )
  behavior_epsilon: float = checks.setting(
    0.01,
    'An exported behavior takes random actions at this rate, and otherwise '
    'the action of the highest value. The paper draws actions from "the '
    'policy" and does not say how greedily; 0.01 is the rate of the '
    'evaluators.',
    minimum=0,
    maximum=1,
  )
  behavior_reward_input: str = checks.setting(
    'recompute',
    'What an exported behavior gets for the intrinsic reward that its network '
    'takes as an input: `recompute` goes on computing the reward with frozen '
    'networks, as in pre-training; `zero` gives zeros, which is cheaper. The '
    'paper trains the policy with that input, and transfers a function of '
    'observations alone.',
    choices=('recompute', 'zero'),
  )

  def __post_init__(self) -> None:
    checks.check(self)
    checks.require(
      self.flights or self.extra_action,
      'flights=False and extra_action=False leave nothing to transfer: set one '
      'of them, or use the agent without behavior transfer (run_r2d2.py).',
    )
    checks.require(
      self.min_flight_probability <= self.max_flight_probability,
      f'min_flight_probability={self.min_flight_probability} exceeds '
      f'max_flight_probability={self.max_flight_probability}: lower the one or '
      'raise the other.',
    )
