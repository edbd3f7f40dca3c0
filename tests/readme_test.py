"""Runs the Python of the README's library section, as it is printed."""

import pathlib
import re
import textwrap

import pytest

README = pathlib.Path(__file__).parents[1] / 'README.md'
SECTION = '## As a library'


def blocks():
  """Line and text of each block of Python in the section."""
  text = README.read_text()
  start = text.index(f'\n{SECTION}\n') + 1
  end = text.find('\n## ', start)
  section = text[:start].count('\n'), text[start : end if end > 0 else None]
  return [
    (
      section[0] + section[1][: match.start()].count('\n') + 2,
      textwrap.dedent(match['code']),
    )
    for match in re.finditer(
      r'^```python\n(?P<code>.*?)^```$', section[1], re.DOTALL | re.MULTILINE
    )
  ]


BLOCKS = blocks()


@pytest.mark.parametrize('builder', ('R2D2Builder', 'DQNBuilder', 'TD3Builder'))
def test_there_is_an_example_of_each(builder):
  assert any(f'.{builder}(' in code for _, code in BLOCKS)


@pytest.mark.parametrize(
  'line, code', BLOCKS, ids=[f'line{line}' for line, _ in BLOCKS]
)
def test_block_runs(line, code, tmp_path, monkeypatch, capsys):
  monkeypatch.chdir(tmp_path)
  # Acme's default loggers write into the home folder.
  monkeypatch.setenv('HOME', str(tmp_path))
  # Blank lines, so that errors name lines of the README.
  program = compile('\n' * (line - 1) + code, str(README), 'exec')
  exec(program, {'__name__': '__main__'})
  if 'print(' in code:
    assert capsys.readouterr().out.strip()
