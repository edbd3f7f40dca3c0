"""A real Reverb server with its writers and samplers.

Each test has its own server, because a server starts within milliseconds.
"""

import reverb

from bt_acme.replay import sampler, table, writer
from tests.replay import episodes


class Replay:
  """A server with the sinks of actors and the samplers of a learner."""

  def __init__(
    self, layout=None, *, batch_size=1000, checkpointer=None, **changes
  ):
    self.layout = layout or episodes.make_layout(**changes)
    # A large batch lets writers run far ahead of samplers.
    sequences = table.make_table(self.layout, batch_size=batch_size)
    self.server = reverb.Server([sequences], None, checkpointer)
    self.client = reverb.Client(f'localhost:{self.server.port}')
    self.writers, self.samplers = [], []

  def sink(self, on_wait=lambda: None, largest_priority=None):
    made = writer.ReverbWriter(self.client, self.layout, on_wait=on_wait)
    self.writers.append(made)
    return episodes.sink_of(self.layout, made.write, largest_priority)

  def sampler(self):
    made = sampler.SequenceSampler(self.client, self.layout, batch_size=4)
    self.samplers.append(made)
    return made

  def info(self):
    return self.client.server_info(timeout=5)[table.TABLE]

  def close(self):
    for replay_writer in self.writers:
      replay_writer.close()
    # A sampler that waits for data takes 3 s to stop while the server runs.
    self.server.stop()
    for replay_sampler in self.samplers:
      replay_sampler.stop()
