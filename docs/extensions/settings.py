"""Directives that print every setting and preset from `bt_acme.config`.

`settings` takes the path of a group and the name of its class. The groups
outside of `bt_acme/config` are read, not imported, because their modules need
JAX.
"""

import ast
import dataclasses
import importlib

from docutils import nodes, statemachine
from repository_links import ROOT
from sphinx.util.docutils import SphinxDirective

from bt_acme.config import agent, checks, presets
from bt_acme.config import run as run_config


def group(module, class_name):
  """Returns a group of settings, read from its source.

  Args:
    module: the module's name, such as `bt_acme.config.run`.
    class_name: the name of the dataclass.

  Returns:
    A dataclass with the same settings and docstring.
  """
  if module.startswith('bt_acme.config.'):
    return getattr(importlib.import_module(module), class_name)
  path = ROOT / (module.replace('.', '/') + '.py')
  for node in ast.parse(path.read_text()).body:
    if isinstance(node, ast.ClassDef) and node.name == class_name:
      made = dataclasses.make_dataclass(class_name, _fields(node))
      made.__doc__ = ast.get_docstring(node)
      return made
  raise ValueError(f'{path} has no class {class_name}.')


def _fields(class_node):
  """Evaluates the fields of a class, which only need other settings."""
  known = {'checks': checks, 'run_config': run_config}
  for node in class_node.body:
    if isinstance(node, ast.AnnAssign):
      code = compile(ast.Expression(node.value), '', 'eval')
      yield node.target.id, ast.unparse(node.annotation), eval(code, known)


def _range(limits):
  """Returns what values a setting may have, in words; empty for any."""
  names = ('minimum', 'above', 'maximum', 'choices')
  minimum, above, maximum, choices = map(limits.get, names)
  if choices:
    return 'one of ' + ', '.join(f'`{choice}`' for choice in choices)
  parts = []
  if minimum is not None:
    parts.append(f'at least {minimum:,}')
  if above is not None:
    parts.append(f'greater than {above:,}')
  if maximum is not None:
    parts.append(f'at most {maximum:,}')
  return ', '.join(parts)


def _entry(field, text, prefix):
  """Returns the Markdown of one setting: its name, default, range and help."""
  kind = type(field.default).__name__
  facts = [
    kind,
    f'default `{field.default!r}`',
    _range(checks.limits_of(field)),
  ]
  return [
    f'({prefix}-{field.name})=',
    f'`--{field.name}`',
    f': *{"; ".join(fact for fact in facts if fact)}*',
    '',
    f'  {text}',
    '',
  ]


class Settings(SphinxDirective):
  """Lists all settings of one group."""

  required_arguments = 2

  def run(self):
    """Returns a definition list of the settings."""
    module, class_name = self.arguments
    self.env.note_dependency(str(ROOT / (module.replace('.', '/') + '.py')))
    found = group(module, class_name)
    texts = checks.help_of(found)
    prefix = 'evaluate' if class_name == 'EvaluationConfig' else 'setting'
    lines = [
      line
      for field in dataclasses.fields(found)
      for line in _entry(field, texts[field.name], prefix)
    ]
    return _parse(self, lines)


class Presets(SphinxDirective):
  """Shows what each preset changes, and why."""

  def run(self):
    """Returns a table for each preset."""
    for suffix in ('.py', '.json'):
      self.env.note_dependency(str(ROOT / f'bt_acme/config/presets{suffix}'))
    defaults = {
      **presets.names.defaults_of(agent.NGUConfig),
      **presets.names.defaults_of(agent.BTConfig),
      **presets.names.to_dict(run_config.RunConfig()),
    }
    lines = []
    for name, preset in presets.PRESETS.items():
      lines += [f'**`{name}`**: {preset.purpose}.', '']
      if preset.all_settings:
        lines += ['| setting | default | value | agents |', '|---|---|---|---|']
      lines += [
        f'| `{setting}` | `{defaults[setting]}` | `{value}` | '
        f'{agents.lstrip(", ") or "all"} |'
        for setting, value, agents in preset.all_settings
      ]
      lines.append('')
      lines += [f'- `{name}`: {text}' for name, text in preset.reasons.items()]
      lines.append('')
    return _parse(self, lines)


def _parse(directive, lines):
  container = nodes.container()
  directive.state.nested_parse(
    statemachine.StringList(lines, source='settings'),
    directive.content_offset,
    container,
  )
  return container.children


def setup(app):
  """Registers the directives."""
  app.add_directive('settings', Settings)
  app.add_directive('presets', Presets)
  return {'parallel_read_safe': True, 'parallel_write_safe': True}
