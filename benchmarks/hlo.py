"""What a compiled program does on a device: its kernels and their memory.

XLA's own analysis counts the body of a loop once. The text of the program says
how often each loop runs.
"""

import math
import re
from typing import Dict, Iterator, List, NamedTuple, Tuple

# Operations that name or wait for memory, and launch nothing.
_FREE = frozenset(
  'parameter constant tuple get-tuple-element bitcast after-all while call '
  'conditional partition-id replica-id opt-barrier'.split()
)
_SLICES = ('dynamic-slice', 'slice', 'gather')
_SHAPE = re.compile(r'([a-z]+\d*\w*)\[([\d,]*)\](\{[^}]*\})?')
_CALLED = re.compile(
  r'(?:body|to_apply|calls|true_computation|false_computation)=%?([\w.\-]+)'
)
_BRANCHES = re.compile(r'branch_computations=\{([^}]*)\}')
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"\}')
_CYCLES = re.compile(r'"estimated_cycles":"(\d+)"')


class Operation(NamedTuple):
  """An operation of a program.

  Attributes:
    name: its name in the program.
    code: what it does, such as `fusion` or `dynamic-slice`.
    result: the type of the result, as text.
    operands: the names of the operands.
    value: the text between the parentheses: a constant, or a number.
    rest: everything else, as text.
    is_root: whether its result is that of its computation.
  """

  name: str
  code: str
  result: str
  operands: Tuple[str, ...]
  value: str
  rest: str
  is_root: bool

  @property
  def cycles(self) -> int:
    """The duration in clock cycles, estimated by the compiler for TPUs."""
    found = _CYCLES.search(self.rest)
    return int(found[1]) if found else 0


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


Computations = Dict[str, Dict[str, Operation]]


def kernels(text: str) -> List[Kernel]:
  """Returns the kernels of a program.

  All branches of a conditional count, and a loop without a known number of
  iterations counts once.

  Args:
    text: the compiled program, `compiled.as_text()`.
  """
  computations, entry = _parse(text)
  return list(_kernels(computations, entry, 1))


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


def _parse(text: str) -> Tuple[Computations, str]:
  """Returns the operations of all computations, and the entry's name."""
  computations: Computations = {}
  entry, current = '', ''
  for line in text.splitlines():
    if line.endswith('{') and not line.startswith((' ', 'HloModule')):
      words = line.split()
      is_entry = words[0] == 'ENTRY'
      current = words[is_entry].lstrip('%')
      entry = current if is_entry else entry
      computations[current] = {}
    elif ' = ' in line and current:
      operation = _operation(re.sub(r'/\*.*?\*/', '', line.strip()))
      computations[current][operation.name] = operation
  return computations, entry


def _operation(line: str) -> Operation:
  name, _, right = line.partition(' = ')
  is_root = name.startswith('ROOT ')
  end = _end(right) if right.startswith('(') else right.index(' ')
  result, right = right[:end], right[end:].lstrip()
  start = right.index('(')
  end = start + _end(right[start:])
  return Operation(
    name=name.removeprefix('ROOT ').lstrip('%'),
    code=right[:start],
    result=result,
    operands=tuple(re.findall(r'%([\w.\-]+)', right[start:end])),
    value=right[start + 1 : end - 1],
    rest=right[end:],
    is_root=is_root,
  )


def _end(text: str) -> int:
  """Returns the position after the parenthesis that closes the first one."""
  depth = 0
  for i, character in enumerate(text):
    depth += (character == '(') - (character == ')')
    if not depth:
      return i + 1
  raise ValueError(f'A parenthesis is not closed: {text[:80]!r}.')


def _kernels(
  computations: Computations, name: str, times: int
) -> Iterator[Kernel]:
  operations = computations[name]
  for operation in operations.values():
    code, called = operation.code, _CALLED.findall(operation.rest)
    if code in ('while', 'call', 'conditional', 'async-start'):
      branches = _BRANCHES.search(operation.rest)
      if branches:
        called += [x.strip(' %') for x in branches[1].split(',')]
      trips = _trips(computations, operation) if code == 'while' else 1
      for inner in called:
        yield from _kernels(computations, inner, times * trips)
    elif code not in _FREE and not code.endswith(('-done', '-update')):
      yield Kernel(
        operation, times, _bytes(computations, operations, operation)
      )


def _trips(computations: Computations, loop: Operation) -> int:
  """Returns the number of iterations of a loop; 1 if it is unknown."""
  if found := _TRIPS.search(loop.rest):
    return int(found[1])
  # On TPUs, only the condition has the number, which a counter is compared to.
  condition = re.findall(r'condition=%?([\w.\-]+)', loop.rest)
  numbers = [
    int(operation.value)
    for name in condition
    for operation in computations.get(name, {}).values()
    if operation.code == 'constant' and operation.value.isdigit()
  ]
  return max(numbers, default=1)


def _bytes(
  computations: Computations,
  operations: Dict[str, Operation],
  operation: Operation,
) -> float:
  """Returns the bytes that a kernel reads and writes."""
  if operation.code in ('fusion', 'fusion-start'):
    return _fusion_bytes(computations, operations, operation)
  if operation.code in _SLICES:
    return 2 * size(operation.result)
  if operation.code == 'dynamic-update-slice':
    return 2 * size(operations[operation.operands[1]].result)
  read = sum(size(operations[x].result) for x in operation.operands)
  if operation.code.endswith('-start'):  # The result repeats the operand.
    return 2 * read
  return read + size(operation.result)


def _fusion_bytes(
  computations: Computations,
  operations: Dict[str, Operation],
  operation: Operation,
) -> float:
  """Returns the bytes that a fusion reads and writes.

  A fusion reads only the slices that it uses, and an update in place writes
  only what changes.
  """
  fused = computations[_CALLED.findall(operation.rest)[0]]
  total = 0.0
  for inner in fused.values():
    if inner.code == 'parameter':
      whole = size(operations[operation.operands[int(inner.value)]].result)
      total += min(whole, _read_bytes(fused, inner))
    if inner.is_root:
      written = [inner]
      if inner.code == 'tuple':
        written = [fused[x] for x in inner.operands]
      bytes_written = sum(_written_bytes(fused, x) for x in written)
      if operation.code == 'fusion':
        bytes_written = min(size(operation.result), bytes_written)
      total += bytes_written
  return total


def _read_bytes(fused: Dict[str, Operation], operation: Operation) -> float:
  """Returns the bytes of a parameter, or of its slice, that a fusion reads."""
  whole, read = size(operation.result), 0.0
  users = list(_users(fused, operation))
  if not users and operation.code != 'parameter':
    return whole  # The slice is the result.
  for user in users:
    is_operand = user.operands[0] in _names(fused, operation)
    if user.code in _SLICES and is_operand:
      read += _read_bytes(fused, user)
    elif user.code != 'dynamic-update-slice' or not is_operand:
      return whole
  return min(read, whole)


def _names(fused: Dict[str, Operation], operation: Operation) -> List[str]:
  """Returns the names of an operation's result, which bitcasts add."""
  names = [operation.name]
  for name in names:
    names += [
      x.name
      for x in fused.values()
      if x.code == 'bitcast' and name in x.operands
    ]
  return names


def _users(
  fused: Dict[str, Operation], operation: Operation
) -> Iterator[Operation]:
  names = set(_names(fused, operation))
  for other in fused.values():
    if other.code != 'bitcast' and names & set(other.operands):
      yield other


def _written_bytes(fused: Dict[str, Operation], operation: Operation) -> float:
  """Returns the bytes of a result that a fusion writes."""
  while operation.code == 'bitcast':
    operation = fused[operation.operands[0]]
  if operation.code == 'dynamic-update-slice':
    return size(fused[operation.operands[1]].result)
  return size(operation.result)
