"""Logs stay complete, also across resumes and crashes."""

import math

import jax.numpy as jnp
import numpy as np
import pytest
import tensorboardX.proto.event_pb2

from bt_acme.runtime import metrics_logger, provenance, tensorboard_events
from tests.launch import scripts


@pytest.fixture(name='folder')
def _folder(tmp_path):
  """Returns the directory of the logger with the label `actor`."""
  return tmp_path / 'logs' / 'actor'


def _events(folder):
  """Yields all events of a directory, which are stored as TFRecords."""
  for path in sorted(folder.glob('events.out.tfevents.*')):
    data = path.read_bytes()
    # A file written on a full disk ends in a truncated event.
    while len(data) >= 12 + int.from_bytes(data[:8], 'little') + 4:
      length = int.from_bytes(data[:8], 'little')
      event = tensorboardX.proto.event_pb2.Event()
      event.ParseFromString(data[12 : 12 + length])
      yield event
      data = data[12 + length + 4 :]


def _summaries(folder):
  """Returns (tag, step, value) for all values in event files."""
  return [
    (value.tag, event.step, value.simple_value)
    for event in _events(folder)
    for value in event.summary.value
  ]


def _log(workdir, *rows, **settings):
  """Writes rows to the log of the actors."""
  logger = metrics_logger.MetricsLogger(workdir, 'actor', **settings)
  for row in rows:
    logger.write(row)
  logger.close()


@pytest.mark.parametrize(
  'row, step',
  [
    ({'learner_steps': 3, 'actor_steps': 70, 'x': [2.0]}, 70),
    ({'actor_steps': 0, 'learner_steps': 7, 'x': jnp.float32(2)}, 0),
    ({'learner_steps': np.int64(7), 'x': jnp.bfloat16(2)}, 7),
  ],
)
def test_rows_reach_csv_and_tensorboard(tmp_path, folder, row, step):
  _log(tmp_path, row)
  (found,) = scripts.rows(tmp_path, 'actor')
  assert float(found['x']) == 2 and str(step) in found.values()
  # The number of actor steps takes precedence as the step.
  assert ('x', step, 2.0) in _summaries(folder)


def test_a_non_finite_loss_is_written_with_one_warning(
  tmp_path, folder, caplog
):
  losses = enumerate([1.0, math.nan, math.inf])
  _log(
    tmp_path, *({'learner_steps': i, 'loss': jnp.float32(x)} for i, x in losses)
  )
  assert [row['loss'] for row in scripts.rows(tmp_path, 'actor')] == [
    *('1.0', 'nan', 'inf')
  ]
  assert caplog.text.count('Non-finite metric loss=nan') == 1
  assert 'loss=inf' not in caplog.text
  (*_, last) = _summaries(folder)
  assert last == ('loss', 2, math.inf)


@pytest.mark.parametrize('value', ['text', np.zeros(2)])
def test_an_error_names_a_value_that_is_not_a_scalar(tmp_path, value):
  logger = metrics_logger.MetricsLogger(tmp_path, 'learner')
  with pytest.raises(ValueError, match='loss=.* cannot be logged'):
    logger.write({'loss': value})


def test_each_row_records_the_session_and_the_seconds(
  tmp_path, folder, monkeypatch
):
  session = provenance.Session(number=2, started=1_000.0, seconds_before=50.0)
  # The time of day is set back after it was read once.
  times, clock = iter([1_007.5]), iter([10.0, 11.0, 12.0])
  monkeypatch.setattr(metrics_logger.time, 'time', lambda: next(times, 3.0))
  monkeypatch.setattr(provenance, 'current', lambda workdir: session)
  row = {'actor_steps': 1, 'environment': 3, 'epsilon': 0.5, 'x': 1}
  _log(tmp_path, row, clock=lambda: next(clock))
  assert scripts.rows(tmp_path, 'actor') == [
    {
      **{'actor_steps': '1', 'environment': '3', 'epsilon': '0.5', 'x': '1'},
      **{'seconds': '59.5', 'session': '2'},
    }
  ]
  # The other columns are not plotted as curves.
  assert {name for name, *_ in _summaries(folder)} == {'actor_steps', 'x'}


def test_a_log_with_the_old_name_of_a_column_gets_new_rows_and_columns(
  tmp_path, folder
):
  folder.mkdir(parents=True)
  path = folder / 'logs.csv'
  before = 'actor_steps,seconds,life\n1,2.0,0\n2,4.0,1\n'
  path.write_text(before)
  table = metrics_logger.CSVTable(path)
  table.append({'actor_steps': 3, 'seconds': 6.5, 'session': 2})
  assert path.read_text() == before + '3,6.5,2\n'
  # The header gets the new name when a column is added.
  table.append({'x': 5, 'actor_steps': 4, 'session': 2})
  table.append({'seconds': 9.0})
  assert path.read_text() == (
    'actor_steps,seconds,session,x\n'
    '1,2.0,0,\n2,4.0,1,\n3,6.5,2,\n4,,2,5\n,9.0,,\n'
  )
  assert list(folder.iterdir()) == [path]
  path.write_text(before)
  metrics_logger.CSVTable(path).cut({'actor_steps': 1})
  assert path.read_text() == 'actor_steps,seconds,life\n1,2.0,0\n'


@pytest.mark.parametrize(
  'before, after',
  [
    ('a,b\n1,2\n3', 'a,b\n1,2\n5,6\n'),
    ('a,b\n1,2\n', 'a,b\n1,2\n5,6\n'),
    ('a,', 'b,a\n6,5\n'),
  ],
)
def test_an_incomplete_row_is_removed(tmp_path, before, after):
  path = tmp_path / 'logs.csv'
  path.write_text(before)
  table = metrics_logger.CSVTable(path)
  table.append({'b': 6, 'a': 5})
  assert path.read_text() == after
  num_rows = after.count('\n') - 1
  assert table.num_rows == metrics_logger.CSVTable(path).num_rows == num_rows


@pytest.mark.parametrize(
  'most, kept',
  [
    ({'actor_steps': -1}, 0),
    ({'actor_steps': 49, 'x': 90}, 5),
    ({'actor_steps': 50, 'x': 90}, 6),
    ({'actor_steps': 90, 'x': 24.9, 'y': 0}, 5),
  ],
)
def test_a_cut_drops_later_rows(tmp_path, most, kept):
  path = tmp_path / 'logs.csv'
  lines = [
    'actor_steps,x',
    *(f'{step},{step / 2}' for step in range(0, 60, 10)),
  ]
  path.write_text('\n'.join(lines) + '\n')
  table = metrics_logger.CSVTable(path)
  table.cut(most)
  assert path.read_text().splitlines() == lines[: 1 + kept]
  assert table.num_rows == kept
  table.append({'actor_steps': 3})
  assert path.read_text().splitlines() == [*lines[: 1 + kept], '3,']
  table.cut(most)  # The last cell is empty.
  for damaged in ('1,2,3', '1,\0\0'):  # A power failure may leave zeros.
    path.write_text(f'actor_steps,x\n{damaged}\n')
    with pytest.raises(ValueError, match="logs.csv has a damaged line: b'1,"):
      metrics_logger.CSVTable(path).cut(most)


def test_early_rows_are_dropped_except_for_the_last(tmp_path):
  times = iter(range(0, 100, 3))
  rows = [{'actor_steps': step} for step in range(5)]
  _log(tmp_path, *rows, time_delta=10.0, clock=lambda: next(times))
  steps = [row['actor_steps'] for row in scripts.rows(tmp_path, 'actor')]
  assert steps == ['0', '3', '4']


def _kept(max_rows, num_iterations, first=0, num_rows=0, envs=16):
  """Returns the steps and environments of the rows that are kept."""
  keeps = metrics_logger.subsampler(max_rows, num_iterations * 512)
  kept = []
  for i in range(first, num_iterations):
    for env in range(envs):
      if keeps(i * 512, num_rows + len(kept)):
        kept.append((i * 512, env))
  return kept


@pytest.mark.parametrize('max_rows', [20, 1_000])
def test_a_log_is_subsampled_to_its_maximum_length(max_rows):
  # Many rows are simultaneous, from the first step.
  assert len(_kept(17_000, 1_000)) == 16_000
  kept = _kept(max_rows, 2_000)
  assert 0.9 * max_rows <= len(kept) <= max_rows
  halves = np.histogram([s for s, _ in kept], 2, (0, 2_000 * 512))[0]
  assert halves[0] < 1.3 * halves[1]


def test_a_subsampled_log_has_all_environments():
  counts = np.bincount([env for _, env in _kept(4_000, 2_000)], minlength=16)
  assert counts.min() > 200 and counts.max() < 300


# The last two logs already have the rows of a smaller budget.
@pytest.mark.parametrize('num_rows', [50, 100, 120])
def test_a_resumed_run_gets_its_share_of_rows(num_rows):
  kept = _kept(100, 2_000, first=1_000, num_rows=num_rows)
  assert 40 <= len(kept) <= 50
  halves = np.histogram([s for s, _ in kept], 2, (1_000 * 512, 2_000 * 512))[0]
  assert abs(halves[0] - halves[1]) < 10


def test_a_log_is_cut_to_its_earlier_length(tmp_path, folder):
  steps = (0, 10, 20, 20, 30)
  _log(tmp_path, *({'actor_steps': step, 'x': step / 2} for step in steps))
  logger = metrics_logger.MetricsLogger(tmp_path, 'actor')
  logger.cut({'actor_steps': 20, 'learner_steps': 0})
  logger.write({'actor_steps': 25, 'x': 3.0, 'more': 1})
  logger.close()
  rows = scripts.rows(tmp_path, 'actor')
  assert [row['actor_steps'] for row in rows] == ['0', '10', '20', '20', '25']
  # TensorBoard discards the rows of this and later steps.
  purges = [e.step for e in _events(folder) if e.session_log.status]
  assert purges == [21]


def test_flush_writes_the_row_that_was_held_back(tmp_path):
  logger = metrics_logger.MetricsLogger(tmp_path, 'actor', time_delta=1e6)
  for x in (1, 2):
    logger.write({'x': x})
  assert len(scripts.rows(tmp_path, 'actor')) == 1
  for _ in range(2):
    logger.flush()
    assert len(scripts.rows(tmp_path, 'actor')) == 2
  logger.close()
  assert [row['x'] for row in scripts.rows(tmp_path, 'actor')] == ['1', '2']


def test_rows_are_buffered_while_the_disk_is_full(
  tmp_path, folder, limit_file_size, caplog, monkeypatch
):
  monkeypatch.setattr(tensorboard_events, '_RETRY_SECONDS', 0.0)
  logger = metrics_logger.MetricsLogger(tmp_path, 'actor')
  summaries = tensorboard_events.Summaries(folder)
  summaries.purge_step = 1
  for step in range(1, 31):
    if step == 11:
      # Enough space for half a row.
      limit_file_size((folder / 'logs.csv').stat().st_size + 5)
    if step == 21:
      complete = (folder / 'logs.csv').read_text()
      limit_file_size(None)
    logger.write({'actor_steps': step, 'x': 0.5})
    summaries.write(step, {'y': 2.0})
  assert len(complete.splitlines()) == 11 and complete.endswith('\n')
  assert caplog.text.count('Disk full; buffering rows of') == 1
  logger.close()
  summaries.close()
  steps = [int(row['actor_steps']) for row in scripts.rows(tmp_path, 'actor')]
  assert steps == list(range(1, 31))
  # TensorBoard lacks some of these rows, but has all later ones.
  curve = {step for tag, step, _ in _summaries(folder) if tag == 'y'}
  assert set(range(21, 31)) <= curve
