"""The directive `api`: documents public names from their docstrings.

The package is read, not imported, so that none of its dependencies is needed:

  ```{api} bt_acme.behaviors
  ActionRepeat FromCallable
  ```

The build warns unless each public name of the packages in `PUBLIC` is on a page
and has a docstring, as well as the public members of its classes.
"""

import ast
import functools
import re

import griffe
from docutils import nodes, statemachine
from repository_links import ROOT
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

import bt_acme

logger = logging.getLogger(__name__)
PUBLIC = (
  'bt_acme',
  'bt_acme.agents',
  'bt_acme.behaviors',
  'bt_acme.config',
  'bt_acme.environments',
  'bt_acme.evaluation',
)
_FENCE = '`' * 3


@functools.cache
def package():
  """Returns the package as griffe reads it."""
  return griffe.load(
    'bt_acme',
    search_paths=[str(ROOT)],
    allow_inspection=False,
    docstring_parser='google',
    docstring_options={'warnings': False},
  )


def public_names(module):
  """Returns the names that a public package exports."""
  if module == 'bt_acme':
    return [name for name in bt_acme.__all__ if name != '__version__']
  assigned = package()[module.removeprefix('bt_acme.')].members['__all__']
  return list(ast.literal_eval(str(assigned.value)))


def find(module, name):
  """Returns the function, class or module behind a public name."""
  if module == 'bt_acme':  # Its names are loaded when they are used.
    source = bt_acme._MODULES.get(name)
    if source is None:
      source = f'{bt_acme._API[name]}.{bt_acme._NAMES_THERE.get(name, name)}'
  else:
    source = f'{module}.{name}'
  found = package()[source.removeprefix('bt_acme.')]
  return found.final_target if found.is_alias else found


def public_members(found):
  """Returns the members of a class or module that its users see."""
  members = []
  for name, member in found.members.items():
    if name.startswith('_') or member.is_alias:
      continue
    if found.is_class and not member.docstring and _inherits(found, name):
      continue  # The base class describes it.
    if member.is_function or (found.is_module and member.is_class):
      members.append(member)
    elif member.is_attribute and 'property' in member.labels:
      members.append(member)
  return sorted(members, key=lambda member: member.lineno)


def _inherits(found, name):
  """Returns whether a base class has a docstring for a member."""
  return any(
    getattr(base.members.get(name), 'docstring', None) or _inherits(base, name)
    for base in found.resolved_bases
  )


def _comment(attribute):
  """Returns the lines of the comment above an assignment."""
  lines = attribute.filepath.read_text().splitlines()[: attribute.lineno - 1]
  comment = []
  while lines and lines[-1].startswith('#'):
    comment.insert(0, lines.pop().lstrip('# '))
  return comment


def _signature(function, *, is_method):
  """Returns a function's parameters as they are declared."""
  parts, seen_star = [], False
  parameters = list(function.parameters)
  if is_method and 'staticmethod' not in function.labels:
    parameters = parameters[1:]
  for parameter in parameters:
    kind = parameter.kind.name
    if kind == 'keyword_only' and not seen_star:
      parts.append('*')
      seen_star = True
    stars = {'var_positional': '*', 'var_keyword': '**'}.get(kind, '')
    seen_star |= kind == 'var_positional'
    text = stars + parameter.name
    if parameter.annotation is not None:
      text += f': {parameter.annotation}'
    if parameter.default is not None and not stars:
      text += f' = {_default(str(parameter.default))}'
    parts.append(text)
  returns = f' -> {function.returns}' if function.returns else ''
  return f'({", ".join(parts)}){returns}'


def _default(code):
  """Returns the code of a default; of a setting, without its limits."""
  tree = ast.parse(code, mode='eval').body
  if isinstance(tree, ast.Call) and ast.unparse(tree.func) == 'checks.setting':
    return ast.unparse(tree.args[0])
  return code


def _class_signature(found):
  """Returns the parameters of a class: of `__init__`, or its fields."""
  init = found.members.get('__init__')
  if init is not None and init.is_function:
    return _signature(init, is_method=True).split(' -> ')[0]
  return ''


def _items(title, items):
  lines = [f'**{title}**', '']
  for name, text in items:
    first, *rest = text.strip().splitlines() or ['']
    lines.append(f'- `{name}`: {first}' if name else f'- {first}')
    lines += [f'  {line.strip()}' for line in _listed(rest)]
  return [*lines, '']


def _listed(lines):
  """Turns indented lines `name: text` into items of a list."""
  for line in lines:
    match = re.match(r'(\w+): (.*)', line.strip())
    if match and not line.startswith('    '):
      yield from ('', f'- `{match[1]}`: {match[2]}')
    else:
      yield line


def _docstring(found):
  """Returns the lines of a docstring as Markdown."""
  if found.is_attribute and not found.docstring:
    return _comment(found)
  lines = []
  for section in found.docstring.parsed if found.docstring else ():
    kind = section.kind.name
    if kind == 'text':
      lines += [*_literal_blocks(section.value), '']
    elif kind in ('parameters', 'attributes'):
      items = [(item.name, item.description) for item in section.value]
      title = 'Arguments' if kind == 'parameters' else 'Attributes'
      lines += _items(title, items)
    elif kind == 'raises':
      items = [(str(i.annotation), i.description) for i in section.value]
      lines += _items('Raises', items)
    elif kind in ('returns', 'yields'):
      text = ' '.join(item.description for item in section.value)
      lines += [f'**{kind.capitalize()}** {text}', '']
    elif kind == 'examples':
      for _, value in section.value:
        lines += [*_literal_blocks(value), '']
    else:  # An admonition, such as a note.
      text = section.value.contents
      lines += [f'**{section.title}**', '', *_literal_blocks(text), '']
  return lines


def _literal_blocks(text):
  """Fences the indented lines of a docstring, which are Python."""
  if _FENCE in text:  # It is Markdown already.
    yield from text.splitlines()
    return
  block = []
  for line in [*text.splitlines(), None]:
    if line is not None and (line.startswith('  ') or (block and not line)):
      block.append(line)
      continue
    if any(block):
      yield from (f'{_FENCE}python', *_dedented(block), _FENCE, '')
    block = []
    if line is not None:
      yield line


def _dedented(block):
  while block and not block[-1]:
    block.pop()
  indent = min(len(line) - len(line.lstrip()) for line in block if line)
  return [line[indent:] for line in block]


def _describe(found, name, members=True):
  """Returns Markdown that describes a name and its members."""
  depth = 6
  if found.is_function:
    is_method = found.parent is not None and found.parent.is_class
    kind = 'py:method' if is_method else 'py:function'
    signature = _signature(found, is_method=is_method)
    options = ['classmethod'] if 'classmethod' in found.labels else []
  elif found.is_class:
    kind, signature, options = 'py:class', _class_signature(found), []
  elif found.is_module:
    kind, signature, options, depth = 'py:module', '', [], 7
  else:
    is_property = 'property' in found.labels
    kind = 'py:property' if is_property else 'py:data'
    signature, options = '', []
    if found.annotation:
      options = [f'type: {found.annotation}']
  body = _docstring(found)
  if members and (found.is_class or found.is_module):
    for member in public_members(found):
      body += ['', *_describe(member, f'{name}.{member.name}')]
  if found.is_module:
    return [f'{":" * depth}{{{kind}}} {name}', ':' * depth, '', *body]
  fence = ':' * (depth if found.is_class else 4)
  return [
    f'{fence}{{{kind}}} {name}{signature}',
    *(f':{option}' + ('' if ':' in option else ':') for option in options),
    '',
    *body,
    fence,
  ]


class Api(SphinxDirective):
  """Documents names of one public package."""

  required_arguments = 1
  has_content = True

  def run(self):
    """Returns the descriptions of the names that the directive lists."""
    module = self.arguments[0]
    lines = []
    for name in ' '.join(self.content).split():
      found = find(module, name)
      _documented(self.env).setdefault(self.env.docname, set()).add(
        f'{module}.{name}'
      )
      self.env.note_dependency(str(found.filepath))
      self._check(found)
      lines += _describe(found, f'{module}.{name}')
    container = nodes.container()
    self.state.nested_parse(
      statemachine.StringList(lines, source=module),
      self.content_offset,
      container,
    )
    return container.children

  def _check(self, found):
    """Warns of a name, or a member of it, without a docstring."""
    if not _docstring(found):
      logger.warning(
        '%s has no docstring',
        found.canonical_path,
        location=self.get_location(),
      )
    if found.is_class or found.is_module:
      for member in public_members(found):
        self._check(member)


def _documented(env):
  if not hasattr(env, 'bt_acme_api'):
    env.bt_acme_api = {}
  return env.bt_acme_api


def _forget(app, env, docname):
  del app
  _documented(env).pop(docname, None)


def _check_all(app, env):
  """Warns of every public name that no page documents."""
  del app
  documented = set().union(*_documented(env).values())
  for module in PUBLIC:
    for name in public_names(module):
      if f'{module}.{name}' not in documented:
        logger.warning('%s.%s is on no page of the reference', module, name)


def setup(app):
  """Registers the directive and the check that nothing is missing."""
  app.add_directive('api', Api)
  app.connect('env-purge-doc', _forget)
  app.connect('env-check-consistency', _check_all)
  return {'parallel_read_safe': False, 'parallel_write_safe': True}
