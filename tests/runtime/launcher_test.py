"""Arguments that a launch refuses before anything starts."""

import socket

import pytest

pytest.importorskip('launchpad', reason='needs the full environment')

import launchpad as lp

from bt_acme.runtime import launcher, ports


def test_a_taken_port_is_an_error_before_anything_starts(tmp_path):
  program = lp.Program('test')
  program.add_node(lp.PyNode(lambda: None), label='coordinator')
  with socket.socket() as server:
    server.bind(('', 0))
    server.listen()
    port = server.getsockname()[1]
    with pytest.raises(ValueError, match=f'coordinator_port={port} cannot be'):
      launcher.launch(
        program, workdir=tmp_path / 'run', ports={'coordinator': port}
      )
  assert not (tmp_path / 'run').exists()
  ports.check_free(port)


@pytest.mark.parametrize(
  'settings, message',
  [
    ({'launch_type': 'cloud'}, "lp_launch_type='cloud' is unknown"),
    ({'main_label': 'boss'}, "label='boss' is not in the program"),
    ({'checked_labels': ['learner']}, "label='learner' is not in the program"),
    ({'environments': {'actor': {}}}, "label='actor' is not in the program"),
    ({'ports': {'replay': 1}}, "label='replay' is not in the program"),
  ],
)
def test_unknown_names_are_refused(tmp_path, settings, message):
  program = lp.Program('test')
  program.add_node(lp.PyNode(lambda: None), label='coordinator')
  with pytest.raises(ValueError, match=message):
    launcher.launch(program, workdir=tmp_path, **settings)
