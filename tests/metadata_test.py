"""Checks the files that describe the project to GitHub and package indexes."""

import os
import shutil

import pytest
import yaml

from bt_acme import version
from tests import python


def test_citation():
  citation = yaml.safe_load((python.ROOT / 'CITATION.cff').read_text())
  assert citation['version'] == version.__version__
  paper = citation['preferred-citation']
  assert len(paper['authors']) == 8 and paper['year'] == 2021


@pytest.mark.parametrize('name', ('bug', 'feature', 'question'))
def test_issue_form(name):
  path = python.ROOT / '.github' / 'ISSUE_TEMPLATE' / f'{name}.yml'
  form = yaml.safe_load(path.read_text())
  assert form['name'] and form['description']
  fields = [field for field in form['body'] if field['type'] != 'markdown']
  assert len({field['id'] for field in fields}) == len(fields)
  assert all(field['attributes']['label'] for field in fields)


def test_make_owner(tmp_path):
  copy = tmp_path / 'copy'
  skipped = '.[!g]* .git _build build dist runs __pycache__ *.egg-info'.split()
  shutil.copytree(
    python.ROOT,
    copy,
    ignore=shutil.ignore_patterns(*skipped),
    ignore_dangling_symlinks=True,
  )
  (copy / 'docs' / 'link').symlink_to('missing')
  os.mkfifo(copy / 'docs' / 'pipe')
  built = copy / 'docs' / '_build' / 'page.md'
  installed = copy / 'bt_acme.egg-info' / 'PKG-INFO'
  for path in (built, installed):
    path.parent.mkdir()
    path.write_text('https://github.com/OWNER/bt_acme')

  def run(owner):
    return python.run('scripts/set_owner.py', owner, cwd=copy)

  # The first name replaces the placeholder, the second one the first.
  for owner in ('first-owner', 'second'):
    changed = run(owner).stdout.splitlines()
    assert changed[-1] == 'setup.py'  # It states the account to replace.
  assert 'OWNER' in built.read_text() and 'OWNER' in installed.read_text()
  shutil.rmtree(built.parent)
  assert {
    *('CITATION.cff', 'CONTRIBUTING.md', 'SECURITY.md', 'setup.py'),
    *('notebooks/quickstart.ipynb', 'notebooks/quickstart.py'),
  } <= set(changed)
  assert not any(name.startswith(('tests', 'scripts')) for name in changed)
  links = [
    line
    for pattern in ('*.md', '*.py', '*.ipynb')
    for path in copy.rglob(pattern)
    if 'tests' not in path.parts and 'scripts' not in path.parts
    for line in path.read_text().splitlines()
    if 'OWNER/bt_acme' in line or 'first-owner' in line
  ]
  assert links == []
  assert 'not the name' in run('a/b').stderr
