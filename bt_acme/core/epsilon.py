"""Epsilon of each environment, and epsilon-greedy choices.

Every environment of a run has its own epsilon, which is constant throughout the
run. Sources: Horgan et al. 2018 (Ape-X) for the ladder; Kapturowski et al. 2019
(R2D2).
"""

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from bt_acme.config import checks


def ladder(
  num_environments: int, *, base: float, alpha: float
) -> npt.NDArray[np.float32]:
  """Computes each environment's epsilon, ε_i = base^(1 + alpha i / (N - 1)).

  Args:
    num_environments: N, over all actors of the run.
    base: epsilon of the environment that explores most.
    alpha: exponent that sets how fast epsilon falls across environments.

  Returns:
    Epsilon of every environment, float32 [N]; only `base` if N = 1.
  """
  steps = np.arange(num_environments) / max(num_environments - 1, 1)
  return (base ** (1 + alpha * steps)).astype(np.float32)


def check(epsilon: float) -> None:
  """Raises ValueError unless epsilon is a probability."""
  declared = checks.setting(0.0, minimum=0, maximum=1)
  checks.check_value('epsilon', epsilon, declared)


def choose(
  q_values: jax.Array,
  epsilon: jax.Array,
  explore_key: jax.Array,
  choice_key: jax.Array,
  *,
  policy: jax.Array | None = None,
) -> tuple[jax.Array, jax.Array, jax.Array]:
  """Selects a random choice with probability epsilon, else the greedy choice.

    π(a) = ε / A' + (1 - ε) 1[a = argmax q]

  A given policy p replaces the greedy choice: π(a) = ε / A' + (1 - ε) p(a).

  Args:
    q_values: float32 [A'], the value of each choice.
    epsilon: float32 [], the probability of exploring.
    explore_key: the random key for deciding whether to explore.
    choice_key: the random key for drawing the choice.
    policy: float32 [A'], the probability of each choice when not exploring;
      None for the greedy choice.

  Returns:
    The selected choice, int32 []; the choice with the largest value, int32 [];
    and the probability of the selected choice, float32 [].
  """
  num_choices = q_values.shape[-1]
  greedy = jnp.argmax(q_values).astype(jnp.int32)
  explore = jax.random.uniform(explore_key, [], jnp.float32) < epsilon
  random = jax.random.randint(choice_key, [], 0, num_choices, jnp.int32)
  if policy is None:
    choice = jnp.where(explore, random, greedy)
    greedy_probability = jnp.where(choice == greedy, 1 - epsilon, 0.0)
  else:
    drawn = jax.random.categorical(
      jax.random.fold_in(choice_key, 1), jnp.log(policy)
    ).astype(jnp.int32)
    choice = jnp.where(explore, random, drawn)
    greedy_probability = (1 - epsilon) * policy[choice]
  return choice, greedy, greedy_probability + epsilon / num_choices
