"""Prints the versions that a bug report should contain."""

import platform

import jax

from bt_acme import untrusted, version


def show_versions() -> None:
  """Prints the versions of Python and packages, and the devices of JAX.

  Example:
    ```python
    bt_acme.show_versions()
    ```
  """
  try:
    devices = ', '.join(f'{d.platform} {d.device_kind}' for d in jax.devices())
  except Exception as error:  # The driver may be broken.
    devices = untrusted.one_line(error)
  rows = [
    ('bt_acme', version.__version__),
    ('Python', platform.python_version()),
    ('system', platform.platform()),
    ('devices', devices),
    *((x, version.installed(x) or 'not installed') for x in version.PACKAGES),
  ]
  width = max(len(name) for name, _ in rows)
  for name, value in rows:
    print(f'{name:{width}}  {value}')
