"""A private network for a run, which nothing outside the run can reach.

Courier and Reverb listen on all interfaces, without a password. A network
namespace (`network_namespaces(7)`) contains only its own loopback interface,
which neither other machines nor other users of this machine can reach.
"""

import os
import subprocess
import sys

# A child process makes the namespaces, prints their kinds, and stays until
# it is killed. Root needs no user namespace; other users do.
_MAKE = """
import ctypes, fcntl, os, socket, struct, sys
CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
libc = ctypes.CDLL(None, use_errno=True)
kinds = 'net'
uid, gid = os.getuid(), os.getgid()
if libc.unshare(CLONE_NEWNET):
  if libc.unshare(CLONE_NEWUSER | CLONE_NEWNET):
    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
  kinds = 'user net'
  for name, text in (
    ('setgroups', 'deny'),
    ('uid_map', '%d %d 1' % (uid, uid)),
    ('gid_map', '%d %d 1' % (gid, gid)),
  ):
    with open('/proc/self/' + name, 'w') as file:
      file.write(text)
with socket.socket() as any_socket:
  request = struct.pack('16sh14s', b'lo', IFF_UP, b'')
  fcntl.ioctl(any_socket, SIOCSIFFLAGS, request)
print(kinds, flush=True)
sys.stdin.read()
"""

# Moves a process into namespaces, given by file descriptors, before it executes
# the code that follows.
ENTER = """
import ctypes, os, sys
for descriptor in sys.argv.pop(1).split(','):
  if descriptor:
    if ctypes.CDLL(None, use_errno=True).setns(int(descriptor), 0):
      raise OSError(ctypes.get_errno(), 'cannot enter the network of the run')
    os.close(int(descriptor))
"""


def make() -> tuple[int, ...]:
  """Makes a network that only has a loopback interface.

  Returns:
    The file descriptors of its namespaces, in the order in which processes have
    to enter them; none where the system forbids namespaces, as in many
    containers. The network exists until all descriptors are closed and its last
    process has exited.
  """
  with subprocess.Popen(
    [sys.executable, '-IS', '-c', _MAKE],
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
    stderr=subprocess.DEVNULL,
    start_new_session=True,
  ) as process:
    assert process.stdout is not None
    kinds = process.stdout.readline().decode().split()
    folder = f'/proc/{process.pid}/ns'
    made = tuple(os.open(f'{folder}/{kind}', os.O_RDONLY) for kind in kinds)
    # The end of its input would not end it while another process, forked by
    # a thread of this one, holds that pipe.
    process.kill()
  return made
