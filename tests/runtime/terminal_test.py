"""The terminal and the log files of a supervised program."""

import sys

from bt_acme.runtime import progress as progress_lib
from bt_acme.runtime import terminal as terminal_lib


def test_live_status_line_stays_below_the_log(tmp_path, capsys, monkeypatch):
  monkeypatch.setattr(sys.stdout, 'isatty', lambda: True)
  terminal = terminal_lib.Terminal(tmp_path / 'launcher.log')
  terminal.show('coordinator/0', progress_lib.STATUS_MARK + 'at work')
  terminal.print_above('[actor/0] hello')
  terminal.end_status()
  output, errors = capsys.readouterr()
  assert errors == '[actor/0] hello\n'
  status = terminal_lib.render_live('at work')
  assert output == status + terminal_lib.render_live('') + status + '\n'


def test_lines_without_a_terminal(tmp_path, capsys):
  terminal = terminal_lib.Terminal(tmp_path / 'launcher.log')
  assert not terminal.live
  terminal.show('actor/0', 'hello')
  terminal.show('actor/0', '')
  terminal.show('replay/0', '[reverb/cc/platform/tfrecord.cc:1] Loading')
  terminal.show('replay/0', '[reverb/cc/service.cc:1] Stored checkpoint to x')
  terminal.show('learner/0', 'I0730 12:00:00.123456 1 learner.py:3] info')
  terminal.show('coordinator/0', progress_lib.STATUS_MARK + 'at work')
  terminal.end_status()
  output, errors = capsys.readouterr()
  assert (output, errors) == ('at work\n', '[actor/0] hello\n')


def test_a_log_file_receives_lines_as_they_are_completed(tmp_path):
  path = tmp_path / 'processes' / 'actor-0.log'
  log = terminal_lib.NodeLog(path, 'process 3', live=False)
  mark = progress_lib.STATUS_MARK
  assert log.add(b'one\ntw', False) == ['one']
  assert log.add(b'oops', True) == []
  assert log.add(b'o\r\nthree\rfour', False) == ['two', 'three']
  added = log.add(f'\n{mark}status\n'.encode(), False)
  assert added == ['four', f'{mark}status']
  assert log.add(b'\xff end', False) == []
  assert log.finish() == ['\ufffd end', 'oops']
  assert log.finish() == []
  log.close()
  first, *lines = path.read_text().splitlines()
  assert first.startswith('--- ') and first.endswith(', process 3')
  assert lines == [*'one two three four status'.split(), '\ufffd end', 'oops']


def test_a_live_progress_line_stays_out_of_the_log_file(tmp_path):
  for _ in range(2):  # A restarted node appends to its file.
    log = terminal_lib.NodeLog(tmp_path / 'log', 'process 3', live=True)
    assert log.add(f'{progress_lib.STATUS_MARK}x\na\n'.encode(), False)
    log.close()
  assert (tmp_path / 'log').read_text().splitlines()[1::2] == ['a', 'a']


def test_a_very_long_line_is_split(tmp_path):
  log = terminal_lib.NodeLog(tmp_path / 'log', 'process 3', live=False)
  assert log.add(b'x' * 60_000, False) == []
  assert [len(line) for line in log.add(b'x' * 60_000, False)] == [120_000]
  log.close()


def test_a_report_is_the_traceback_or_the_last_lines(tmp_path):
  log = terminal_lib.NodeLog(tmp_path / 'log', 'process 3', live=False)
  for i in range(300):
    log.add(f'{i}\n'.encode(), True)
  log.add(b'not an error\n', False)
  assert log.report() == [str(i) for i in range(280, 300)]
  traceback = 'Traceback (most recent call last):\n  File\nError'
  log.add(f'{traceback}\n'.encode(), True)
  assert log.report() == traceback.split('\n')
  log.close()
