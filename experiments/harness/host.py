"""Executes one task after the other, as the worker that started it says.

  python -m experiments.harness.host DESCRIPTOR

DESCRIPTOR is that of a connection. It brings a task, its folder and the file
for its output, and takes pairs: (False, news of the task), and (True, the exit
code) after its end.
"""

import os
import sys
import traceback
from multiprocessing import connection

if __name__ == '__main__':
  worker = connection.Connection(int(sys.argv[1]))
  while True:
    try:
      task, folder, log = worker.recv()
    except EOFError:  # The worker is gone.
      break
    with open(log, 'wb') as file:
      for descriptor in (1, 2):
        os.dup2(file.fileno(), descriptor)
    code = 0
    try:
      task.execute(folder, lambda news: worker.send((False, news)))
    except Exception:
      traceback.print_exc()
      code = 1
    sys.stdout.flush()
    worker.send((True, code))
