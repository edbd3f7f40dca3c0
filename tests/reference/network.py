"""Reference of the Q-network in float64, with loops over steps and pixels."""

import numpy as np


def _sigmoid(x):
  return 1 / (1 + np.exp(-x))


def lstm_step(w, b, x, hidden, cell):
  """Computes one step of hk.LSTM for one sequence (gates i, g, f + 1, o)."""
  gates = np.concatenate([x, hidden]) @ w + b
  i, g, f, o = np.split(gates, 4)
  cell = _sigmoid(f + 1) * cell + _sigmoid(i) * np.tanh(g)
  return _sigmoid(o) * np.tanh(cell), cell


def lstm_unroll(w, b, inputs, hidden, cell, hold=None):
  """Unrolls inputs [T, B, I] from states [B, H] to outputs [T, B, H].

  Where hold [T, B] is set, the step does not update the state. Also returns the
  last states.
  """
  w, b, inputs, hidden, cell = (
    np.array(x, np.float64) for x in (w, b, inputs, hidden, cell)
  )
  outputs = np.zeros(inputs.shape[:2] + hidden.shape[1:])
  for row in range(inputs.shape[1]):
    for t in range(inputs.shape[0]):
      outputs[t, row], new_cell = lstm_step(
        w, b, inputs[t, row], hidden[row], cell[row]
      )
      if hold is None or not hold[t][row]:
        hidden[row], cell[row] = outputs[t, row], new_cell
  return outputs, hidden, cell


def convolution(x, w, b, stride):
  """Convolves x [H, W, C] with w [K, K, C, C'] to [H', W', C'] (VALID)."""
  size = w.shape[0]
  rows = (x.shape[0] - size) // stride + 1
  columns = (x.shape[1] - size) // stride + 1
  result = np.zeros((rows, columns, w.shape[-1]))
  for i in range(rows):
    for j in range(columns):
      patch = x[i * stride :, j * stride :][:size, :size]
      result[i, j] = np.einsum('ijc,ijcd->d', patch, w) + b
  return result


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


def q_values(
  params,
  observations,
  prev_actions,
  prev_rewards,
  *,
  num_actions,
  strides,
  divisor,
):
  """Returns Q-values [T, A'] of one sequence, from zero states.

  The inputs include tanh of the previous reward and a one-hot vector of the
  previous action, which is zero before the first action.
  """
  params = in_float64(params)
  lstm = params['lstm/linear']
  hidden = cell = np.zeros(lstm['b'].shape[0] // 4)
  result = []
  for observation, action, reward in zip(
    observations, prev_actions, prev_rewards, strict=True
  ):
    x = _relu(torso(params, observation, strides=strides, divisor=divisor))
    one_hot = [float(a == action) for a in range(num_actions)]
    x = np.concatenate([x, one_hot, [np.tanh(reward)]])
    hidden, cell = lstm_step(lstm['w'], lstm['b'], x, hidden, cell)
    value = mlp(params, 'head/value', hidden)
    advantage = mlp(params, 'head/advantage', hidden)
    result.append(value + advantage - advantage.mean())
  return np.array(result)
