"""Tests that files and directories stay complete if their writer is killed."""

import os
import random
import subprocess
import sys
import time

import pytest

from bt_acme import files

# Replaces a directory and a file forever. All files contain a number, which
# increases by 1 each time; prints the number after each replacement.
_WRITER = """
import itertools, runpy, sys
files = runpy.run_path(sys.argv[1])
if sys.argv[3] == 'renames':
  files['_swap'].__globals__['_rename'] = lambda one, other, flag: False
for number in itertools.count(int(sys.argv[4])):
  text = f'{number}\\n' * 2000
  with files['new_folder'](sys.argv[2] + '/folder') as folder:
    for name in 'ab':
      (folder / name).write_text(text)
    (folder / 'inner').mkdir()
    (folder / 'inner' / 'c').write_text(text)
  files['write_text'](sys.argv[2] + '/file', text)
  print(number, flush=True)
"""
_NAMES = ('a', 'b', 'inner/c')


def read_whole(*paths):
  """Returns the number that each of these files contains 2000 times."""
  texts = {path.read_text() for path in paths}
  assert len(texts) == 1
  lines = texts.pop().splitlines()
  assert len(lines) == 2000 and len(set(lines)) == 1
  return int(lines[0])


@pytest.mark.parametrize('kind', ['exchange', 'renames'])
def test_a_killed_writer_leaves_complete_files(tmp_path, kind):
  rng = random.Random(0)
  number, missing = 0, 0
  command = [sys.executable, '-IS', '-c', _WRITER, files.__file__, tmp_path]
  for _ in range(25):
    writer = subprocess.Popen(
      [*command, kind, str(number)], stdout=subprocess.PIPE, text=True
    )
    for _ in range(2):
      writer.stdout.readline()
    time.sleep(rng.uniform(0, 0.02))
    writer.kill()
    written = [int(line) for line in writer.communicate()[0].splitlines()]
    number = max([number + 1, *written])
    # A slow reader may find the files of the old directory deleted, but the
    # path is always a directory.
    assert kind == 'renames' or (tmp_path / 'folder').is_dir()
    assert number <= read_whole(tmp_path / 'file') <= number + 1
    if kind == 'renames' and not (tmp_path / 'folder').exists():
      missing += 1
      continue
    found = read_whole(*(tmp_path / 'folder' / name for name in _NAMES))
    assert number <= found <= number + 1
    number = found
  assert missing < 25
  # The next attempt removes all leftovers.
  with files.new_folder(tmp_path / 'folder') as folder:
    (folder / 'a').write_text('')
  files.write_text(tmp_path / 'file', '')
  assert {p.name for p in tmp_path.iterdir()} == {'file', 'folder'}
  assert [p.name for p in (tmp_path / 'folder').iterdir()] == ['a']


def test_a_body_that_raises_leaves_the_directory_unchanged(tmp_path):
  for expected in ([], ['folder']):
    with pytest.raises(KeyboardInterrupt):
      with files.new_folder(tmp_path / 'folder') as folder:
        (folder / 'half').write_text('half')
        raise KeyboardInterrupt
    assert [p.name for p in tmp_path.iterdir()] == expected
    with files.new_folder(tmp_path / 'folder') as folder:
      (folder / 'whole').write_text('whole')
    assert [p.name for p in (tmp_path / 'folder').iterdir()] == ['whole']


@pytest.mark.parametrize('replaced', [False, True])
def test_a_file_that_cannot_be_written_is_unchanged(tmp_path, replaced):
  path = tmp_path / 'file'
  if replaced:
    files.write_text(path, 'before')
  with pytest.raises(UnicodeEncodeError):
    files.write_text(path, 'x\udc00')
  assert [p.read_text() for p in tmp_path.iterdir()] == ['before'] * replaced


def test_the_old_directory_is_restored_after_a_crash_between_renames(tmp_path):
  old = tmp_path / '.folder.old-00'
  old.mkdir()
  (old / 'whole').write_text('whole')
  assert files.is_leftover(old) and not files.is_leftover(tmp_path / 'folder')
  others = ['.folder', '.folderish.partial-00', 'folder.partial-00']
  for name in others:
    (tmp_path / name).write_text('mine')
  with pytest.raises(ZeroDivisionError):
    with files.new_folder(tmp_path / 'folder'):
      raise ZeroDivisionError
  assert {p.name for p in tmp_path.iterdir()} == {'folder', *others}
  assert (tmp_path / 'folder' / 'whole').read_text() == 'whole'


def test_a_failed_rename_leaves_the_directory_unchanged(tmp_path, monkeypatch):
  (tmp_path / 'folder').mkdir()
  monkeypatch.setattr(files, '_rename', lambda one, other, flag: False)
  rename, calls = os.rename, []

  def fail_at_second(source, target):
    calls.append(target)
    if len(calls) == 2:
      raise OSError('disk gone')
    rename(source, target)

  monkeypatch.setattr(os, 'rename', fail_at_second)
  with pytest.raises(OSError, match='disk gone'):
    with files.new_folder(tmp_path / 'folder') as folder:
      (folder / 'new').write_text('new')
  assert [p.name for p in tmp_path.iterdir()] == ['folder']
  assert not list((tmp_path / 'folder').iterdir())


def test_links_are_followed_and_modes_match_the_umask(tmp_path):
  (tmp_path / 'real').mkdir()
  link = tmp_path / 'link'
  link.symlink_to(tmp_path / 'real')
  (tmp_path / 'plain').mkdir()
  with files.new_folder(link) as folder:
    (folder / 'a').write_text('')
  assert link.is_symlink() and (tmp_path / 'real' / 'a').exists()
  modes = [(tmp_path / n).stat().st_mode for n in ('real', 'plain')]
  assert modes[0] == modes[1]


def test_contents_are_synced_before_the_move_and_the_parent_after(
  tmp_path, monkeypatch
):
  events = []
  fsync, rename, replace = os.fsync, os.rename, os.replace

  def record(name, function):
    def call(*args):
      events.append(
        name or os.path.basename(os.readlink(f'/proc/self/fd/{args[0]}'))
      )
      return function(*args)

    return call

  monkeypatch.setattr(os, 'fsync', record(None, fsync))
  monkeypatch.setattr(os, 'rename', record('rename', rename))
  monkeypatch.setattr(os, 'replace', record('replace', replace))
  with files.new_folder(tmp_path / 'folder') as folder:
    (folder / 'a').write_text('a')
  # Whether the name of the parent directory was synced earlier is unknown.
  around = tmp_path.parent.name
  assert events == [around, 'a', folder.name, 'rename', tmp_path.name]
  events.clear()
  files.write_text(tmp_path / 'file', 'x')
  assert events[0] == around and events[2:] == ['replace', tmp_path.name]
  assert events[1].startswith('.file.partial-')
  events.clear()
  files.make_folder(tmp_path / 'b' / 'c')
  assert events == [tmp_path.name, 'b']


@pytest.mark.parametrize('supported', [True, False])
def test_one_of_two_writers_creates_a_file(tmp_path, monkeypatch, supported):
  if not supported:
    monkeypatch.setattr(files, '_rename', lambda one, other, flag: False)
  with pytest.raises(FileExistsError):
    with files.new_file(tmp_path / 'file', replaces=False) as slow:
      slow.write(b'slow')
      files.write_text(tmp_path / 'file', 'fast', replaces=False)
  assert [path.read_text() for path in tmp_path.iterdir()] == ['fast']


def test_check_writable(tmp_path):
  (tmp_path / 'file').write_text('mine')
  for name in ('file', 'new', 'folder/new'):
    files.check_writable(tmp_path / name)
  for name in ('.', 'file/new', 'file/folder/new', 'x' * 240, '/proc/x'):
    with pytest.raises(OSError):
      files.check_writable(tmp_path / name)
  assert [path.name for path in tmp_path.iterdir()] == ['file']
