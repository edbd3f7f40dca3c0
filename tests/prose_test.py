"""Checks that prose avoids words and phrases that read badly.

Totals may only fall. A line that needs a match, such as quoted output, ends
with the comment `english: ok`.
"""

import pathlib
import re
import subprocess

import pytest

_ROOT = pathlib.Path(__file__).parents[1]
_EXEMPT = 'english: ok'

# Pattern, what to write, and how many matches are allowed today.
_PATTERNS = {
  r'\d %(?!\()': ('95%', 171),
  r'\b(?:go|goes|going|went) on\b': ('continue, resume', 90),
  r'\banew\b': ('again, restart', 59),
  r'\b(?:deaths?|dies|died)\b': ('failure, exits', 45),
  r'\bbeside\b': ('next to, besides', 40),
  r'\b(?:whoever|nobody|somebody)\b': ('anyone who, no one', 39),
  r'(?<!there )\b(?:is|are|was) no (?!longer|more|need)[a-z]+': (
    'is not a',
    36,
  ),
  r'\btorn\b|\bunder way\b|\bcut short\b': ('truncated, running', 26),
  r'\bwhat (?:it|they|one|he) (?:has|have|had|is|are|was|were)\b': (
    'a noun',
    36,
  ),
  r'\b(?:latest|next|first|earlier|another|later) li(?:fe|ves)\b'
  r'|\blives of\b|\blife before\b': ('session, attempt', 5),
  r'\bGoes on from a state\b|\bSee the class\b': ('a real summary', 26),
  r'\b(?:that|which|what|it|one) (?:is|are|was|were) there\b': ('existing', 15),
  r'\blies\b': ('is in', 20),
  r'\b(?:has|have|make|makes|no|lacks|find) room\b|\broom for\b': ('space', 15),
  r'\bstrangers?\b': ('untrusted', 6),
  r'\bThe paper has\b': ('The paper uses', 17),
  r'\bat most so\b|\bso often\b|\bfor so (?:many|long)\b'
  r'|\bafter so (?:many|long)\b': ('this many, at most N', 14),
  r'\bwhat (?:became|becomes|comes|came) of\b|\bha(?:s|ve) come to\b': (
    'outcome, result',
    16,
  ),
  r'\bsigns? of life\b': ('heartbeat', 4),
  r'\bthe (?:one|life|checkpoint|run|version|row|block) before\b': (
    'the previous',
    8,
  ),
  r'\b(?:nothing|nobody) yet\b': ('a full sentence', 7),
  r'\bfor ever\b': ('forever, indefinitely', 10),
  r'\bone (?:sees|reads|writes|finds|looks|can)\b': ('you, or passive', 7),
  r'\bupon which\b|\bin vain\b|\bby turns\b|\bat the least\b'
  r'|\bcomes? upon\b': ('a modern word', 6),
  r'\bworlds?\b': ('environment, task', 492),
}


def _files():
  """Lists Python and Markdown files; an unpacked archive has no Git index."""
  git = ['git', 'ls-files', '*.py', '*.md']
  try:
    done = subprocess.run(git, cwd=_ROOT, capture_output=True, text=True)
    names = done.stdout.splitlines() if done.returncode == 0 else []
  except FileNotFoundError:
    names = []
  if names:
    paths = [_ROOT / name for name in names]
    return [path for path in paths if path.is_file()]
  return [
    path
    for path in sorted(_ROOT.rglob('*'))
    if path.suffix in ('.py', '.md')
    and not any(
      part.startswith('.') or part in ('build', 'dist', 'runs')
      for part in path.relative_to(_ROOT).parts
    )
  ]


@pytest.fixture(name='lines', scope='module')
def read_lines():
  this_file = pathlib.Path(__file__).resolve()
  return [
    (path.relative_to(_ROOT), number, line)
    for path in _files()
    if path.resolve() != this_file
    for number, line in enumerate(path.read_text().splitlines(), 1)
    if _EXEMPT not in line
  ]


def test_every_file_is_read(lines):
  names = {str(path) for path, _, _ in lines}
  assert {'README.md', 'setup.py', 'bt_acme/version.py'} <= names


@pytest.mark.parametrize('pattern', _PATTERNS)
def test_total(pattern, lines):
  instead, allowed = _PATTERNS[pattern]
  matches = [
    f'{path}:{number}: {match.group()!r} in: {line.strip()}'
    for path, number, line in lines
    for match in re.finditer(pattern, line, re.IGNORECASE)
  ]
  assert len(matches) <= allowed, (
    f'{len(matches)} matches, at most {allowed} allowed. Write: {instead}.\n'
    + '\n'.join(matches)
  )
