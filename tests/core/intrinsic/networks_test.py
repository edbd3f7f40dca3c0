import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bt_acme import config as config_lib
from bt_acme.core import networks as networks_lib
from bt_acme.core.intrinsic import networks, training_windows
from tests.core import toys
from tests.reference import intrinsic as reference

SHAPE, CHANNELS, ACTIONS = (5, 5, 6), 3, 4
SCALE = {
  'strides': [x[-1] for x in networks_lib.TORSOS['small'].layers],
  'divisor': 10.0,
}
T, B, STEPS = 9, 4, 3
KEY = jax.random.key(7)
L2 = 0.125
LENGTHS = np.array([9, 5, 2, 1])  # Valid transitions of each sequence.
RND = {'rnd_predictor', 'rnd_target'}


@functools.cache
def make(reward='ngu', window='last', rewarded='current'):
  config = config_lib.IntrinsicConfig(
    intrinsic_reward=reward,
    intrinsic_window=window,
    reward_observation=rewarded,
    embedding_size=7,
    inverse_dynamics_size=8,
    inverse_dynamics_l2=L2,
    rnd_size=6,
    intrinsic_steps=STEPS,
  )
  return networks.make_networks(
    config,
    observation_shape=SHAPE,
    frame_channels=CHANNELS,
    num_actions=ACTIONS,
  )


NGU = make()


def init(seed, made=NGU):
  return toys.random_params(made.init, seed)


@functools.cache
def compiled_loss(made):
  """Returns a function for ((loss, metrics), gradient), with a constant key."""
  loss = functools.partial(made.sequence_loss, key=KEY)
  return jax.jit(jax.value_and_grad(loss, has_aux=True))


def make_batch(lengths=LENGTHS):
  rng = np.random.default_rng(0)
  observations = rng.integers(0, 11, (T + 1, len(lengths), *SHAPE), np.uint8)
  action = rng.integers(0, ACTIONS, (T, len(lengths)), np.int32)
  valid = np.float32(np.arange(T)[:, None] < lengths)
  return observations, action, valid


@pytest.mark.parametrize(
  'reward, parts, size',
  [
    ('ngu', {'embedding', 'inverse_dynamics', *RND}, 7),
    ('rnd', RND, 0),
    ('constant', set(), 0),
  ],
)
def test_a_reward_has_the_networks_that_it_needs(reward, parts, size):
  made = make(reward)
  params = init(0, made)
  assert set(params) == parts
  assert made.embedding_size == size
  observation = make_batch()[0][0, 0]
  embedding = params.get('embedding', {})
  features = jax.eval_shape(made.embed, embedding, observation)
  error = jax.eval_shape(made.error, params, observation)
  assert (features.shape, features.dtype) == ((size,), jnp.float32)
  assert (error.shape, error.dtype) == ((), jnp.float32)
  (loss, metrics), _ = compiled_loss(made)(params, *make_batch())
  assert loss.dtype == jnp.float32
  assert ('rnd_loss' in metrics) == ('rnd_target' in parts)
  assert ('inverse_dynamics_loss' in metrics) == ('embedding' in parts)
  assert (loss > 0) == bool(parts)


def test_the_predictor_and_the_target_are_initialized_differently():
  params = NGU.init(KEY)
  for observation in make_batch()[0][:, 0]:
    assert NGU.error(params, observation) > 0


def test_features_match_reference():
  params = init(1)
  observations = make_batch()[0][:, 0]
  features, errors = (
    jax.jit(jax.vmap(f, in_axes=(None, 0)))(x, observations)
    for f, x in ((NGU.embed, params['embedding']), (NGU.error, params))
  )
  assert features.shape == (T + 1, 7)
  assert errors.shape == (T + 1,)
  assert np.any(features > 0)
  for t, observation in enumerate(observations):
    np.testing.assert_allclose(
      features[t],
      reference.embed(params['embedding'], observation, **SCALE),
      atol=1e-5,
    )
    np.testing.assert_allclose(
      errors[t],
      reference.rnd_error(params, observation[..., -CHANNELS:], **SCALE),
      rtol=1e-4,
    )


@pytest.mark.parametrize('axes', [(0, 0), (0, None), (None, 0)])
def test_embeddings_of_many_networks_equal_those_of_each(axes):
  params = [init(seed)['embedding'] for seed in range(3)]
  observations = make_batch()[0][:3, 0]
  arguments = (
    params[0]
    if axes[0] is None
    else jax.tree.map(lambda *x: np.stack(x), *params),
    observations[0] if axes[1] is None else observations,
  )
  together = jax.jit(jax.vmap(NGU.embed, in_axes=axes))(*arguments)
  assert together.shape == (3, 7)
  for i in range(3):
    alone = jax.jit(NGU.embed)(
      params[0 if axes[0] is None else i],
      observations[0 if axes[1] is None else i],
    )
    np.testing.assert_allclose(together[i], alone, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
  'window, rewarded, lengths',
  [
    ('last', 'current', np.full(B, T)),
    ('last', 'current', np.array([0, 4, 2, 1])),
    ('last', 'next', np.array([0, 4, 2, 1])),
    ('spread', 'current', np.array([0, 4, 9, 2])),
    ('spread', 'next', np.array([0, 4, 9, 2])),
  ],
)
def test_losses_match_reference(window, rewarded, lengths):
  made = make(window=window, rewarded=rewarded)
  params = init(2)
  observations, action, valid = make_batch(lengths)
  action[valid == 0] = np.resize([-1, 255], np.sum(valid == 0))  # Padding.
  steps = {}
  if window == 'spread':
    step, mask = training_windows.spread_steps(jnp.array(valid), STEPS, KEY)
    drawn = [[int(t) for t in step[mask[:, b] > 0, b]] for b in range(B)]
    steps = {'steps': drawn}
  (loss, metrics), gradient = compiled_loss(made)(
    params, observations, action, valid
  )
  assert not any(np.any(x) for x in jax.tree.leaves(gradient['rnd_target']))
  cross_entropy, error, penalty, accuracy = reference.sequence_losses(
    params,
    observations,
    action,
    valid,
    frame_channels=CHANNELS,
    num_steps=STEPS,
    rewards_next=rewarded == 'next',
    **steps,
    **SCALE,
  )
  names = 'inverse_dynamics_loss', 'rnd_loss', 'inverse_dynamics_accuracy'
  actual = [loss, *(metrics[name] for name in names)]
  total = cross_entropy + error + L2 * penalty
  expected = [total, cross_entropy, error, accuracy]
  np.testing.assert_allclose(actual, expected, rtol=1e-4)


def test_a_batch_without_transitions_trains_only_the_penalty():
  params = init(3)
  (_, metrics), gradient = compiled_loss(NGU)(params, *make_batch([0] * B))
  assert all(value == 0 for value in metrics.values())
  for part, modules in gradient.items():
    for name, module in modules.items():
      decay = 0 if part.startswith('rnd') else 2 * L2
      np.testing.assert_allclose(module['w'], decay * params[part][name]['w'])
      np.testing.assert_array_equal(module['b'], 0)
