"""What the launch scripts refuse before anything starts."""

import pytest

pytest.importorskip('launchpad', reason='needs the full environment')

# isort: split
from absl.testing import flagsaver

from bt_acme import assembly
from bt_acme import config as config_lib
from bt_acme.cli import run as run_cli
from bt_acme.config import run as run_config
from tests.agents import fakes


@pytest.mark.parametrize(
  'launch_type, num_devices, message',
  [
    ('vertex_ai', 1, "lp_launch_type='vertex_ai' is unknown"),
    ('local_mp', 64, "num_devices=64, but the learner has . of kind 'cpu'"),
  ],
)
def test_a_run_that_could_not_start(launch_type, num_devices, message):
  learner = config_lib.LearnerConfig(batch_size=64, num_devices=num_devices)
  agent = assembly.Agent(fakes.make_config(learner=learner), fakes.SPEC)
  with flagsaver.as_parsed(lp_launch_type=launch_type):
    with pytest.raises(ValueError, match=message):
      run_cli.check(run_config.RunConfig(), agent)
