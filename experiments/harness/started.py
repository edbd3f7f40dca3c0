"""Executes a program on given cores; it stops when the one who asked dies.

  python started.py CORES PROGRAM [ARGUMENT ...]

CORES are numbers separated by commas; `all` keeps those of the caller. The
program gets a SIGTERM, upon which a run saves itself, when the process that
started this one is killed. This is a script of its own because both have to be
said between the fork and the program, where Python code of a process with
threads is not safe.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1

if __name__ == '__main__':
  cores, program = sys.argv[1], sys.argv[2:]
  if hasattr(ctypes.CDLL(None), 'prctl'):
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
  if cores != 'all' and hasattr(os, 'sched_setaffinity'):
    os.sched_setaffinity(0, {int(core) for core in cores.split(',')})
  os.execv(program[0], program)
