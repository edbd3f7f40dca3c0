"""What a compiled program does on a device: its kernels and their memory.

XLA's own analysis counts the body of a loop once. The text of the program says
how often each loop runs.
"""

import dataclasses
import math
import re
from collections.abc import Iterator
from typing import NamedTuple

# Operations that name or wait for memory, and launch nothing.
_FREE = frozenset(
  'parameter constant tuple get-tuple-element after-all while call '
  'conditional partition-id replica-id opt-barrier'.split()
)
# The operand that an update in place writes.
_UPDATES = {'dynamic-update-slice': 1, 'scatter': 2}
_SLICES = ('dynamic-slice', 'slice', 'gather')
_SHAPE = re.compile(r'([a-z]+\d*\w*)\[([\d,]*)\](\{[^}]*\})?')
_ENTRY = 'ENTRY'  # Stands for the name of the computation that runs first.
_NAME = re.compile(r'[\w.\-]+')
_COMPUTATION = re.compile(r'(ENTRY)? ?%?([\w.\-]+) (?:\(.*)?\{$')
_OPERATION = re.compile(
  r'\s+(ROOT )?%?([\w.\-]+) = (.*?) ([a-z][\w\-]*)\((.*?)\)(?=,|$)(.*)'
)
_CALLED = re.compile(
  r'(?:body|to_apply|calls|true_computation|false_computation|'
  r'branch_computations)=(\{[^}]*\}|%?[\w.\-]+)'
)
_CONDITION = re.compile(r'condition=%?([\w.\-]+)')
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"\}')
_CYCLES = re.compile(r'"estimated_cycles":"(\d+)"')


@dataclasses.dataclass(eq=False)
class Operation:
  """An operation of a program, other than a bitcast, which only names memory.

  Attributes:
    name: its name in the program.
    code: what it does, such as `fusion` or `dynamic-slice`.
    result: the type of the result, as text.
    operands: the operations whose results it uses.
    value: the text between the parentheses: a constant, or a number.
    rest: everything else, as text.
    is_root: whether its result is that of its computation.
  """

  name: str
  code: str
  result: str
  operands: list['Operation']
  value: str
  rest: str
  is_root: bool = False

  @property
  def cycles(self) -> int:
    """The duration in clock cycles, estimated by the compiler for TPUs."""
    found = _CYCLES.search(self.rest)
    return int(found[1]) if found else 0

  @property
  def called(self) -> list[str]:
    """The names of the computations that it calls."""
    return _NAME.findall(' '.join(_CALLED.findall(self.rest)))


class Kernel(NamedTuple):
  """An operation that the device starts.

  Attributes:
    operation: the operation.
    times: how often the program starts it.
    bytes: the bytes that it reads and writes each time.
  """

  operation: Operation
  times: int
  bytes: float


Computations = dict[str, list[Operation]]


def kernels(text: str) -> list[Kernel]:
  """Returns the kernels of a program.

  All branches of a conditional count, and a loop without a known number of
  iterations counts once.

  Args:
    text: the compiled program, `compiled.as_text()`.
  """
  return list(_kernels(_parse(text), _ENTRY, 1))


def size(shape: str) -> float:
  """Returns the bytes of a type such as `(f32[64,512]{1,0}, s32[])`.

  Arrays in the fast memory of a TPU's core, in space `S(1)`, do not count, nor
  does int8, the scratch memory of libraries.
  """
  total = 0.0
  for dtype, dimensions, layout in _SHAPE.findall(shape):
    if 'S(' in layout or dtype == 's8':
      continue
    bits = re.search(r'\d+', dtype)
    width = int(bits[0]) / 8 if bits else float(dtype == 'pred')
    total += width * math.prod(int(x) for x in dimensions.split(',') if x)
  return total


def _parse(text: str) -> Computations:
  """Returns the operations of all computations."""
  computations: Computations = {}
  by_name: dict[str, Operation] = {}  # A bitcast's name is one of its operand.
  for line in re.sub(r'/\*.*?\*/', '', text).splitlines():
    if found := _COMPUTATION.match(line):
      current = found[1] or found[2]
      computations[current], by_name = [], {}
    elif found := _OPERATION.match(line):
      is_root, name, result, code, value, rest = found.groups()
      operands = [by_name[x] for x in re.findall(r'%([\w.\-]+)', value)]
      if code == 'bitcast':
        (operation,) = operands
      else:
        operation = Operation(name, code, result, operands, value, rest)
        computations[current].append(operation)
      by_name[name] = operation
      operation.is_root |= bool(is_root)
  return computations


def _kernels(
  computations: Computations, name: str, times: int
) -> Iterator[Kernel]:
  for operation in computations[name]:
    code = operation.code
    if code in ('while', 'call', 'conditional', 'async-start'):
      trips = _trips(computations, operation) if code == 'while' else 1
      for inner in operation.called:
        yield from _kernels(computations, inner, times * trips)
    elif code not in _FREE and not code.endswith(('-done', '-update')):
      yield Kernel(operation, times, _bytes(computations, operation))


def _trips(computations: Computations, loop: Operation) -> int:
  """Returns the number of iterations of a loop; 1 if it is unknown."""
  if found := _TRIPS.search(loop.rest):
    return int(found[1])
  # On TPUs, only the condition has the number, which a counter is compared to.
  numbers = [
    int(operation.value)
    for name in _CONDITION.findall(loop.rest)
    for operation in computations.get(name, ())
    if operation.code == 'constant' and operation.value.isdigit()
  ]
  return max(numbers, default=1)


def _bytes(computations: Computations, operation: Operation) -> float:
  """Returns the bytes that a kernel reads and writes."""
  code, result = operation.code, size(operation.result)
  if code in ('fusion', 'fusion-start'):
    return _fusion_bytes(computations, operation)
  if code in _SLICES:
    return 2 * result
  if code in _UPDATES:
    return 2 * _written_bytes(operation)
  read = sum(size(x.result) for x in operation.operands)
  # The result of an asynchronous operation repeats the operand.
  return 2 * read if code.endswith('-start') else read + result


def _fusion_bytes(computations: Computations, operation: Operation) -> float:
  """Returns the bytes that a fusion reads and writes.

  A fusion reads only the slices that it uses, and an update in place writes
  only what changes.
  """
  fused = computations[operation.called[0]]
  (root,) = (x for x in fused if x.is_root)
  results = root.operands if root.code == 'tuple' else [root]
  written = sum(map(_written_bytes, results))
  if operation.code == 'fusion':
    written = min(size(operation.result), written)
  return written + sum(
    min(
      size(operation.operands[int(inner.value)].result),
      _read_bytes(fused, inner),
    )
    for inner in fused
    if inner.code == 'parameter'
  )


def _read_bytes(fused: list[Operation], operation: Operation) -> float:
  """Returns the bytes of a parameter, or of its slice, that a fusion reads."""
  whole, read = size(operation.result), 0.0
  users = [x for x in fused if operation in x.operands]
  if not users and operation.code != 'parameter':
    return whole  # The slice is the result.
  for user in users:
    is_sliced = user.operands[0] is operation
    if user.code in _SLICES and is_sliced:
      read += _read_bytes(fused, user)
    elif user.code not in _UPDATES or not is_sliced:
      return whole
  return min(read, whole)


def _written_bytes(operation: Operation) -> float:
  """Returns the bytes of a result that a fusion writes."""
  if operation.code in _UPDATES:
    operation = operation.operands[_UPDATES[operation.code]]
  return size(operation.result)
