"""Checks that prose avoids words and phrases that read badly.

A line that needs a match, such as quoted output, ends with the comment
`english: ok`.
"""

import re
import subprocess

import pytest

from tests import python

_EXEMPT = 'english: ok'

# Patterns and their replacements.
_PATTERNS = {
  r'\d %(?!\()': '95%',
  r'\b(?:go|goes|going|went) on\b': 'continue, resume',
  r'\banew\b': 'again, restart',
  r'\b(?:deaths?|dies|died)\b': 'failure, exits',  # english: ok
  r'\bbeside\b': 'next to, besides',
  r'\b(?:whoever|nobody|somebody)\b': 'anyone who, no one',  # english: ok
  r'(?<!there )\b(?:is|are|was) no (?!longer|more|need)[a-z]+': 'is not a',
  r'\btorn\b|\bunder way\b|\bcut short\b': 'truncated, running',
  r'\bwhat (?:it|they|one|he) (?:has|have|had|is|are|was|were)\b': 'a noun',
  r'\b(?:latest|next|first|earlier|another|later) li(?:fe|ves)\b'
  r'|\blives of\b|\blife before\b': 'session, attempt',
  r'\bGoes on from a state\b|\bSee the class\b': 'a full summary',
  r'\b(?:that|which|what|it|one) (?:is|are|was|were) there\b': 'existing',
  r'\blies\b': 'is in',
  r'\b(?:has|have|make|makes|no|lacks|find) room\b|\broom for\b': 'space',
  r'\bstrangers?\b': 'untrusted',
  r'\bThe paper has\b': 'The paper uses',
  r'\bat most so\b|\bso often\b|\bfor so (?:many|long)\b'
  r'|\bafter so (?:many|long)\b': 'this many, at most N',
  r'\bwhat (?:became|becomes|comes|came) of\b'
  r'|\bha(?:s|ve) come to\b': 'outcome, result',
  r'\bsigns? of life\b': 'heartbeat',
  r'\bthe (?:one|life|checkpoint|run|version|row|block) before\b': (
    'the previous'
  ),
  r'\b(?:nothing|nobody) yet\b': 'a full sentence',  # english: ok
  r'\bfor ever\b': 'forever, indefinitely',
  r'\bone (?:sees|reads|writes|finds|looks|can)\b': 'you, or passive',
  r'\bupon which\b|\bin vain\b|\bby turns\b|\bat the least\b'
  r'|\bcomes? upon\b': 'a modern word',
  r'\bworlds?\b': 'environment, task',
}


def _files():
  """Lists Python and Markdown files; an unpacked archive has no Git index."""
  git = ['git', 'ls-files', '*.py', '*.md']
  try:
    done = subprocess.run(git, cwd=python.ROOT, capture_output=True, text=True)
  except FileNotFoundError:
    return []
  paths = [python.ROOT / name for name in done.stdout.splitlines()]
  return [path for path in paths if path.is_file()]


def test_no_matches():
  lines = [
    (f'{path.relative_to(python.ROOT)}:{number}', line)
    for path in _files()
    for number, line in enumerate(path.read_text().splitlines(), 1)
    if _EXEMPT not in line
  ]
  if not lines:
    pytest.skip('needs a Git index')
  # Most lines match none of the patterns.
  any_pattern = re.compile('|'.join(_PATTERNS), re.IGNORECASE)
  matches = [
    f'{where}: {match.group()!r} in: {line.strip()} Write: {replacement}.'
    for where, line in lines
    if any_pattern.search(line)
    for pattern, replacement in _PATTERNS.items()
    for match in re.finditer(pattern, line, re.IGNORECASE)
  ]
  assert not matches, '\n'.join(matches)
