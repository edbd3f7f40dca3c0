"""The replay's table in a Reverb server."""

import reverb
from acme.adders import reverb as adders

from bt_acme import config as config_lib
from bt_acme.replay import codecs, fields

TABLE = adders.DEFAULT_PRIORITY_TABLE  # Where foreign learners look for it.


def make_table(
  config: config_lib.ReplayConfig,
  shapes: fields.ReplayShapes,
  *,
  batch_size: int,
  name: str = TABLE,
) -> reverb.Table:
  """Makes a prioritized table of sequences; the oldest leave first.

  What an item holds is up to `codecs`.

  Args:
    config: the replay's settings: its sizes, its codec and its priorities.
    shapes: what the replay holds.
    batch_size: the learner's batch size. Because samplers prefetch, actors and
      learner may be some batches apart before one waits for the other.
    name: the table's name.
  """
  expected_samples = config.samples_per_insert * config.min_replay_size
  error_buffer = max(
    0.1 * expected_samples, 4.0 * batch_size, 2 * config.samples_per_insert
  )
  return reverb.Table(
    name=name,
    sampler=reverb.selectors.Prioritized(config.priority_exponent),
    remover=reverb.selectors.Fifo(),
    max_size=config.max_replay_size,
    rate_limiter=reverb.rate_limiters.SampleToInsertRatio(
      samples_per_insert=config.samples_per_insert,
      min_size_to_sample=config.min_replay_size,
      error_buffer=error_buffer,
    ),
    signature=codecs.make_codec(config, shapes).signature,
  )
