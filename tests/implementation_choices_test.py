"""The implementation choices are complete and name existing settings."""

import dataclasses
import pathlib
import re

from bt_acme import config
from bt_acme.config import checks
from bt_acme.config import run as run_config
from bt_acme.launching import initial_weights

ROOT = pathlib.Path(__file__).parents[1]
GROUPS = (
  *(
    type(field.default)
    for config_class in (config.NGUConfig, config.BTConfig)
    for field in dataclasses.fields(config_class)
  ),
  run_config.RunConfig,
  initial_weights.WeightsConfig,
)
ROW = re.compile(r'^\| (?!Question )(.+?) \| (.+?) \| (.+?) \|$', re.MULTILINE)
ROWS = ROW.findall((ROOT / 'docs' / 'implementation_choices.md').read_text())
NAMES = [name for row in ROWS for name in re.findall(r'`(.+?)`', row[-1])]
HELP = {
  name: text for group in GROUPS for name, text in checks.help_of(group).items()
}


def test_every_row_names_existing_settings_or_files():
  assert len(ROWS) > 25
  assert all('`' in row[-1] for row in ROWS)
  names = set(NAMES)
  assert {x for x in names - set(HELP) if not (ROOT / x).is_file()} == set()
  settings = [name for name in NAMES if name in HELP]
  assert len(set(settings)) == len(settings)


def test_every_setting_that_the_papers_do_not_specify_is_listed():
  silent = [
    name
    for name, text in HELP.items()
    if re.search(r'papers? do(es)? not (say|specify)', text)
  ]
  assert len(silent) > 10
  assert set(silent) <= set(NAMES)
