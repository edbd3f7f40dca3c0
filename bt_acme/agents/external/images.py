"""Lets networks of dm-acme process uint8 images.

These networks expect floats in [0, 1]. Scaling images in the network instead of
the environment reduces the memory of the replay to a quarter, and behaviors see
the unscaled observations.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from acme import specs
from acme.jax import networks as networks_lib

NetworkFactory = Callable[[specs.EnvironmentSpec], Any]


def _scaled(tree: Any) -> Any:
  """Converts uint8 arrays to floats in [0, 1]; other leaves do not change."""
  return jax.tree.map(
    lambda x: (
      x.astype(jnp.float32) / 255.0
      if getattr(x, 'dtype', None) == jnp.uint8
      else x
    ),
    tree,
  )


def _scaling(network: Any) -> Any:
  """Returns a network, or a dataclass of networks, that scales its inputs."""
  if isinstance(network, networks_lib.FeedForwardNetwork):
    return networks_lib.FeedForwardNetwork(
      init=lambda *args: network.init(*_scaled(args)),
      apply=lambda *args: network.apply(*_scaled(args)),
    )
  if dataclasses.is_dataclass(network) and not isinstance(network, type):
    fields = dataclasses.fields(network)
    return dataclasses.replace(
      network, **{x.name: _scaling(getattr(network, x.name)) for x in fields}
    )
  return network


def _as_floats(spec: specs.Array) -> specs.Array:
  """Returns a float spec for a spec of uint8 images; others do not change."""
  if spec.dtype != np.uint8:
    return spec
  return specs.Array(spec.shape, np.float32, spec.name)


def scale_images(network_factory: NetworkFactory) -> NetworkFactory:
  """Makes networks that take floats in [0, 1] accept uint8 images too.

  Args:
    network_factory: a function from an environment spec to a
      `FeedForwardNetwork` of dm-acme, or to a dataclass of such networks, such
      as its `R2D2Networks`.

  Returns:
    A function from an environment spec to networks that scale their inputs. It
    raises ValueError if it does not find any.

  Example:
    ```python
    from bt_acme import agents
    from acme.agents.jax import r2d2

    make_networks = agents.scale_images(r2d2.make_atari_networks)
    ```
  """

  def make_networks(environment_spec: specs.EnvironmentSpec) -> Any:
    observations = jax.tree.map(_as_floats, environment_spec.observations)
    networks = network_factory(
      environment_spec._replace(observations=observations)
    )
    scaled = _scaling(networks)
    if scaled == networks:
      raise ValueError(
        f'scale_images: {type(networks).__name__} contains no '
        'FeedForwardNetwork of dm-acme. Let the network divide uint8 images by '
        '255 itself.'
      )
    return scaled

  return make_networks
