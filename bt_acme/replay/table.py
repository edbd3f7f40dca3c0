"""The table of the replay in a Reverb server."""

import reverb
from acme.adders import reverb as adders

from bt_acme.replay import codecs, fields

TABLE = adders.DEFAULT_PRIORITY_TABLE  # The name that Acme's learners expect.


def make_table(layout: fields.ReplayLayout, *, batch_size: int) -> reverb.Table:
  """Returns a prioritized table of sequences that evicts the oldest first.

  The module `codecs` defines the format of the items.

  Args:
    layout: the settings of the replay and the shapes of its data.
    batch_size: the learner's batch size. Because samplers prefetch, actors and
      the learner may be several batches apart before either waits.
  """
  config = layout.config
  expected_samples = config.samples_per_insert * config.min_replay_size
  error_buffer = max(
    0.1 * expected_samples, 4.0 * batch_size, 2 * config.samples_per_insert
  )
  return reverb.Table(
    name=TABLE,
    sampler=reverb.selectors.Prioritized(config.priority_exponent),
    remover=reverb.selectors.Fifo(),
    max_size=config.max_replay_size,
    rate_limiter=reverb.rate_limiters.SampleToInsertRatio(
      samples_per_insert=config.samples_per_insert,
      min_size_to_sample=config.min_replay_size,
      error_buffer=error_buffer,
    ),
    signature=codecs.make_codec(layout).signature,
  )
