"""Reference of the Q-network in float64, one layer after another."""

import numpy as np


def _sigmoid(x):
  return 1 / (1 + np.exp(-x))


def lstm_unroll(w, b, inputs, hidden, cell, hold):
  """Unrolls an hk.LSTM, with gates i, g, f + 1, o.

  Args:
    w: [I + H, 4H].
    b: [4H].
    inputs: [T, B, I].
    hidden: [B, H].
    cell: [B, H].
    hold: bool [T, B]; where it is set, the step does not update the state.

  Returns:
    Outputs [T, B, H], and the last hidden state and cell [B, H].
  """
  w, b, inputs, hidden, cell = map(np.float64, (w, b, inputs, hidden, cell))
  outputs = []
  for x, held in zip(inputs, hold[..., np.newaxis], strict=True):
    gates = np.concatenate([x, hidden], axis=-1) @ w + b
    i, g, f, o = np.split(gates, 4, axis=-1)
    after = _sigmoid(f + 1) * cell + _sigmoid(i) * np.tanh(g)
    outputs.append(_sigmoid(o) * np.tanh(after))
    hidden = np.where(held, hidden, outputs[-1])
    cell = np.where(held, cell, after)
  return np.stack(outputs), hidden, cell


def convolution(x, w, b, stride):
  """Convolves x [H, W, C] with w [K, K, C, C'] to [H', W', C'] (VALID)."""
  patches = np.lib.stride_tricks.sliding_window_view(x, w.shape[:2], (0, 1))
  return np.einsum('hwcij,ijcd->hwd', patches[::stride, ::stride], w) + b


def in_float64(params):
  """Converts parameters by module and name."""
  return {
    module: {name: np.float64(value) for name, value in values.items()}
    for module, values in params.items()
  }


def torso(params, observation, *, strides, divisor):
  """Returns the last layer of a torso before any ReLU, [D]."""
  params = in_float64(params)
  x = observation / divisor
  for i, stride in enumerate(strides):
    name = f'torso/conv2_d_{i}' if i else 'torso/conv2_d'
    x = _relu(convolution(x, **params[name], stride=stride))
  linear = params['torso/linear']
  return x.reshape(-1) @ linear['w'] + linear['b']


def _relu(x):
  return np.maximum(x, 0)


def mlp(params, name, x):
  """Returns the last layer of a perceptron with one hidden layer."""
  hidden, output = (params[f'{name}/~/linear_{i}'] for i in (0, 1))
  return _relu(x @ hidden['w'] + hidden['b']) @ output['w'] + output['b']


def q_values(params, observations, actions, rewards, *, num_actions, **scale):
  """Returns Q-values [T, A'] of one sequence, from zero states.

  The inputs include tanh of the previous reward and a one-hot vector of the
  previous action, which is zero before the first action.
  """
  params = in_float64(params)
  rows = [
    [
      *_relu(torso(params, observation, **scale)),
      *(float(a == action) for a in range(num_actions)),
      np.tanh(reward),
    ]
    for observation, action, reward in zip(
      observations, actions, rewards, strict=True
    )
  ]
  lstm = params['lstm/linear']
  zeros = np.zeros([1, lstm['b'].shape[0] // 4])
  inputs, hold = np.array(rows)[:, np.newaxis], np.zeros([len(rows), 1], bool)
  hidden, *_ = lstm_unroll(
    **lstm, inputs=inputs, hidden=zeros, cell=zeros, hold=hold
  )
  value, advantage = (
    mlp(params, f'head/{x}', hidden[:, 0]) for x in ('value', 'advantage')
  )
  return value + advantage - advantage.mean(axis=-1, keepdims=True)
