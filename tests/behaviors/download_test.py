"""Tests downloading behaviors from a local server with its own certificate."""

import gzip
import hashlib
import http.server
import io
import pathlib
import shutil
import ssl
import subprocess
import tarfile
import threading

import pytest

import bt_acme
from bt_acme import behaviors
from bt_acme import config as config_lib
from bt_acme.behaviors import download
from bt_acme.launching import named_behaviors

_CERTIFICATE = (
  'openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost '
  '-addext subjectAltName=DNS:localhost -keyout key.pem -out certificate.pem'
)


class Handler(http.server.BaseHTTPRequestHandler):
  """Answers with the files of the server, or redirects."""

  def do_GET(self):  # The name that the base class expects.
    self.server.requests.append(self.path)
    target = self.server.files.get(self.path)
    if target is None:
      self.send_error(404)
    elif isinstance(target, threading.Event):
      target.wait()
    elif isinstance(target, str):
      self.send_response(302)
      self.send_header('Location', target)
      self.end_headers()
    else:
      self.send_response(200)
      self.end_headers()
      self.wfile.write(target)

  def log_message(self, *unused):
    pass


@pytest.fixture(name='server', scope='module')
def serve(tmp_path_factory):
  if shutil.which('openssl') is None:
    pytest.skip('openssl, which makes the certificate, is not installed')
  folder = tmp_path_factory.mktemp('certificate')
  subprocess.run(
    _CERTIFICATE.split(), cwd=folder, check=True, capture_output=True
  )
  context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
  context.load_cert_chain(folder / 'certificate.pem', folder / 'key.pem')
  with http.server.ThreadingHTTPServer(('localhost', 0), Handler) as server:
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.address = f'https://localhost:{server.server_port}'
    server.certificate = str(folder / 'certificate.pem')
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()


@pytest.fixture(autouse=True)
def trust(server, tmp_path, monkeypatch):
  monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path / 'cache'))
  monkeypatch.setenv('SSL_CERT_FILE', server.certificate)
  for name in ('https_proxy', 'HTTPS_PROXY', 'all_proxy', 'ALL_PROXY'):
    monkeypatch.delenv(name, raising=False)
  server.requests, server.files = [], {}


def pack(*members):
  """Returns an archive of tuples of name, content and changed attributes."""
  packed = io.BytesIO()
  with tarfile.open(fileobj=packed, mode='w:gz') as archive:
    for name, content, attributes in members:
      info = tarfile.TarInfo(name)
      info.size = len(content)
      for attribute, value in attributes.items():
        setattr(info, attribute, value)
      archive.addfile(info, io.BytesIO(content))
  return packed.getvalue()


def pack_folder(folder, *more, top='explorer/'):
  paths = pathlib.Path(folder).iterdir()
  files = [(top + p.name, p.read_bytes(), {}) for p in paths]
  return pack(*files, *more)


def offer(server, data, path='/explorer.tar.gz'):
  """Offers an archive; returns its address with its checksum."""
  server.files[path] = data
  return f'{server.address}{path}#sha256={hashlib.sha256(data).hexdigest()}'


@pytest.mark.parametrize('top', ['', 'a/b/'])
def test_an_archive_is_downloaded_once(server, exported, top):
  address = offer(server, pack_folder(exported, top=top))
  behavior = bt_acme.load_behavior(address)
  assert behavior.name == 'explorer'
  assert behavior.params_sha256 == behaviors.Exported(exported).params_sha256
  url, digest = address.split('#sha256=')
  again = bt_acme.load_behavior(url, sha256=digest.upper())
  (named,) = named_behaviors.make(address, config_lib.TransferConfig())
  assert again.folder == named.folder == behavior.folder
  assert server.requests == ['/explorer.tar.gz']
  # An incomplete directory is replaced.
  (pathlib.Path(behavior.folder) / 'behavior.json').unlink()
  assert bt_acme.load_behavior(address).folder == behavior.folder
  assert server.requests == ['/explorer.tar.gz'] * 2
  # A redirection to https is followed.
  server.files['/latest.tgz?v=1'] = f'{server.address}/explorer.tar.gz'
  moved = address.replace('explorer.tar.gz', 'latest.tgz?v=1')
  assert bt_acme.load_behavior(moved).name == 'latest'


@pytest.mark.parametrize(
  'target, message',
  [
    (None, 'HTTPError: HTTP Error 404'),
    # A redirection to http is not followed.
    ('http://localhost:1/x.tar.gz', 'cannot be downloaded .*type: http'),
    (threading.Event(), 'cannot be downloaded .*timed out'),
    (pack(('behavior.json', b'', {})), 'has the SHA-256 [0-9a-f]{64}: the'),
  ],
  ids=['missing', 'http', 'no answer', 'checksum'],
)
def test_a_download_that_fails(server, monkeypatch, tmp_path, target, message):
  server.files['/x.tar.gz'] = target
  if isinstance(target, threading.Event):
    monkeypatch.setattr(download, '_TIMEOUT', 0.3)
  with pytest.raises(ValueError, match=message):
    bt_acme.load_behavior(f'{server.address}/x.tar.gz', sha256='0' * 64)
  if isinstance(target, threading.Event):
    target.set()
  assert not list(tmp_path.rglob('behavior.json'))


@pytest.mark.parametrize(
  'address, sha256, message',
  [
    ('http://localhost/x.tar.gz', '0' * 64, 'not an https address'),
    ('https://localhost/x.tar.gz', '12', 'no valid checksum'),
    ('https://localhost:1/x.tar.gz', '0' * 64, 'Check the address'),
    ('runs/explorer', '0' * 64, 'is not an address. Omit sha256'),
  ],
)
def test_a_bad_address(address, sha256, message):
  with pytest.raises(ValueError, match=f'folder=.{address}.*{message}'):
    bt_acme.load_behavior(address, sha256=sha256)


def test_an_unknown_certificate_is_refused(server, exported, monkeypatch):
  address = offer(server, pack_folder(exported))
  monkeypatch.delenv('SSL_CERT_FILE')
  with pytest.raises(ValueError, match='CERTIFICATE_VERIFY_FAILED'):
    bt_acme.load_behavior(address)


def with_member(name, **attributes):
  return lambda folder: pack_folder(folder, (name, b'{}', attributes))


_LINK = {'type': tarfile.SYMTYPE, 'linkname': '/etc/passwd'}
_HARD_LINK = {'type': tarfile.LNKTYPE, 'linkname': 'explorer/behavior.json'}


@pytest.mark.parametrize(
  'make_archive, message',
  [
    (with_member('explorer/x', **_LINK), "contains 'explorer/x', which is not"),
    (with_member('explorer/x', **_HARD_LINK), 'not a plain file'),
    (with_member('explorer/x', type=tarfile.GNUTYPE_SPARSE), 'plain file'),
    (with_member('/x'), "contains '/x', which .* leads out"),
    (with_member('explorer/../../x'), 'or leads out of the directory. Pack'),
    (with_member('other/behavior.json'), 'contains 2 files behavior.json'),
    (lambda _: b'text', 'not a valid .tar.gz archive .*. Pack the directory'),
    (lambda _: gzip.compress(b'x' * 500), 'not a valid .tar.gz archive'),
    (lambda _: pack(('x', b'1', {})), 'contains 0 files behavior.json instead'),
    (lambda _: bytes(20_000), 'is larger than 10,000 bytes'),
    (lambda _: gzip.compress(bytes(20_000)), 'is larger than 10,000 bytes'),
  ],
)
def test_a_hostile_archive(
  server, tmp_path, exported, monkeypatch, make_archive, message
):
  data = make_archive(exported)
  if '10,000' in message:
    monkeypatch.setattr(download, '_LARGEST', 10_000)
  address = offer(server, data)
  with pytest.raises(ValueError, match=message) as info:
    bt_acme.load_behavior(address)
  assert '\n' not in str(info.value)
  assert not [path for path in tmp_path.rglob('*') if path.is_file()]


def test_a_cache_that_is_not_writable(server, exported, tmp_path, monkeypatch):
  (tmp_path / 'file').touch()
  monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path / 'file'))
  address = offer(server, pack_folder(exported))
  with pytest.raises(ValueError, match='be stored: .*Not a.* XDG_CACHE_HOME'):
    bt_acme.load_behavior(address)


def test_the_files_are_checked_like_any_others(server, exported, tmp_path):
  folder = shutil.copytree(exported, tmp_path / 'b')
  (folder / 'params.npz').write_bytes(b'x')
  with pytest.raises(ValueError, match='params.npz is damaged'):
    bt_acme.load_behavior(offer(server, pack_folder(folder)))
