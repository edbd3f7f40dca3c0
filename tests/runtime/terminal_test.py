"""The terminal and the log files of a supervised program."""

import sys

from bt_acme.runtime import progress as progress_lib
from bt_acme.runtime import terminal as terminal_lib


def test_live_status_line_stays_below_the_log(capsys, monkeypatch):
  monkeypatch.setattr(sys.stdout, 'isatty', lambda: True)
  terminal = terminal_lib.Terminal()
  terminal.status('at work')
  terminal.log('[actor/0] hello')
  terminal.end_status()
  output, errors = capsys.readouterr()
  assert errors == '[actor/0] hello\n'
  status = progress_lib.render_live('at work')
  assert output == status + progress_lib.render_live('') + status + '\n'
