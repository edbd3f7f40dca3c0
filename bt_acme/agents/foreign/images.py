"""Networks of dm-acme on images of bytes.

They expect floats in [0, 1]. Scaled in front of the network instead of in the
environment, images take a quarter of the replay's memory, and behaviors see
what the environment shows.
"""

import dataclasses
from typing import Any, Callable

import jax
import jax.numpy as jnp
import numpy as np
from acme import specs
from acme.jax import networks as networks_lib

NetworkFactory = Callable[[specs.EnvironmentSpec], Any]


def _scaled(tree: Any) -> Any:
  return jax.tree.map(
    lambda x: (
      x.astype(jnp.float32) / 255.0
      if getattr(x, 'dtype', None) == jnp.uint8
      else x
    ),
    tree,
  )


def _scaling(network: Any) -> Any:
  """The same network, or dataclass of networks, in front of which is scaled."""
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


def scale_images(network_factory: NetworkFactory) -> NetworkFactory:
  """Lets networks for floats in [0, 1] take uint8 as well.

  Args:
    network_factory: environment spec -> a `FeedForwardNetwork` of dm-acme, or a
      dataclass of such, like its `R2D2Networks`.
  """

  def make_networks(environment_spec: specs.EnvironmentSpec) -> Any:
    observations = jax.tree.map(
      lambda spec: (
        specs.Array(spec.shape, np.float32, spec.name)
        if spec.dtype == np.uint8
        else spec
      ),
      environment_spec.observations,
    )
    return _scaling(
      network_factory(environment_spec._replace(observations=observations))
    )

  return make_networks
