"""Evaluates the paper's 22 quantitative claims on a dataset.

`data/claims.csv` lists the claims. Each claim has several effects, which are
positive if the claim holds. A claim is `supported` if the 95% intervals of all
its effects are above 0, `contradicted` if any interval is below 0, `open` if
neither, and `not run` if no effect was measured. Intervals refer to single
effects, so one of many may be below 0 by chance. Effects that do not decide are
only reported.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from bt_acme.evaluation import tables
from experiments.harness import dataset as dataset_lib
from experiments.paper import artifacts, effects, results

SUPPORTED, CONTRADICTED = 'supported', 'contradicted'
OPEN, NOT_RUN = 'open', 'not run'


class Claim(NamedTuple):
  """One claim.

  Attributes:
    id: identifier such as `C3`.
    artifact: the table or figure that shows the claim.
    statement: the claim, with the paper's numbers.
    note: additional information for readers.
  """

  id: str
  artifact: str
  statement: str
  note: str

  @property
  def effects(self) -> tuple[effects.Effect, ...]:
    """The effects, which are positive if the claim holds."""
    return tuple(e for e in effects.EFFECTS if e.claim == self.id)


CLAIMS = dataset_lib.read_rows(artifacts.DATA / 'claims.csv', Claim)


class Verdict(NamedTuple):
  """The verdict of a dataset on a claim.

  Attributes:
    claim: the claim.
    findings: the finding for each effect.
  """

  claim: Claim
  findings: tuple[effects.Finding, ...]

  @property
  def deciding(self) -> tuple[effects.Finding, ...]:
    """The findings that the verdict depends on."""
    return tuple(f for f in self.findings if f.effect.decides)

  @property
  def verdict(self) -> str:
    """The verdict: `SUPPORTED`, `CONTRADICTED`, `OPEN` or `NOT_RUN`."""
    if not any(finding.is_measured for finding in self.deciding):
      return NOT_RUN
    if any(finding.estimate.high < 0 for finding in self.deciding):
      return CONTRADICTED
    is_clear = all(finding.estimate.low > 0 for finding in self.deciding)
    return SUPPORTED if is_clear else OPEN

  @property
  def points_agree(self) -> bool:
    """Whether all measured values are positive, regardless of intervals."""
    return all(f.estimate.value > 0 for f in self.deciding if f.is_measured)


def evaluate(found: results.Results) -> tuple[Verdict, ...]:
  """Evaluates all claims on a dataset."""
  return tuple(verdict_on(claim, found) for claim in CLAIMS)


def verdict_on(claim: Claim, found: results.Results) -> Verdict:
  """Evaluates one claim."""
  findings = (effects.measure(effect, found) for effect in claim.effects)
  return Verdict(claim, tuple(findings))


def counts(verdicts: Sequence[Verdict]) -> dict[str, int]:
  """Counts the claims with each verdict."""
  found = [verdict.verdict for verdict in verdicts]
  kinds = (SUPPORTED, CONTRADICTED, OPEN, NOT_RUN)
  return {kind: found.count(kind) for kind in kinds}


def markdown(verdicts: Sequence[Verdict]) -> str:
  """Formats verdicts, effects and missing data as Markdown."""
  return f'## Claims\n\n{verdict_table(verdicts)}\n{details(verdicts)}'


def verdict_table(verdicts: Sequence[Verdict]) -> str:
  """Formats the verdicts and their counts as Markdown."""
  count = ', '.join(f'{n} {kind}' for kind, n in counts(verdicts).items())
  rows = [
    (v.claim.id, _shown(v), f'{v.claim.statement} {v.claim.note}'.strip())
    for v in verdicts
  ]
  header = ('claim', 'verdict', "statement, with the paper's numbers")
  return (
    f'{count}. A claim is supported if the 95% intervals of all its effects '
    'are above 0, contradicted if any interval is below 0, and open '
    'otherwise. *One pre-training*: the claim is about policies that were '
    'pre-trained once for all seeds, so its intervals do not include the '
    'differences between runs of pre-training.\n\n'
    f'{tables.markdown(header, rows, "lll")}\n'
  )


def _shown(verdict: Verdict) -> str:
  """Formats a verdict, with the reasons if the claim is open."""
  if verdict.verdict != OPEN:
    is_narrow = any(f.one_pretraining for f in verdict.deciding)
    return f'{verdict.verdict}{" (one pre-training)" if is_narrow else ""}'
  measured = [f for f in verdict.deciding if f.is_measured]
  reasons = []
  if len(measured) < len(verdict.deciding):
    reasons.append(f'{len(measured)} of {len(verdict.deciding)} effects')
  if min(finding.seeds for finding in measured) == 1:
    reasons.append('one seed')
  reasons.append('as claimed' if verdict.points_agree else 'not as claimed')
  return f'{OPEN} ({"; ".join(reasons)})'


def details(verdicts: Sequence[Verdict]) -> str:
  """Formats the effects behind the verdicts and the missing data."""
  header = 'claim effect ours paper seeds environments scale'.split()
  rows = [
    _effect_row(verdict.claim, finding)
    for verdict in verdicts
    for finding in verdict.findings
    if finding.is_measured
  ]
  lines = [
    '## Effects behind the claims',
    '',
    'Each effect is positive if the claim holds. Effects in parentheses do not '
    "affect the verdict. The paper's values come from its own games and "
    'budget.',
    '',
    tables.markdown(header, rows, 'llrrrrl'),
    '',
  ]
  problems = [p for v in verdicts for f in v.findings for p in f.problems]
  missing = [f'- {sentence}' for sentence in dataset_lib.sentences(problems, 5)]
  if missing:
    lines += ['Missing data:', '', *missing, '']
  return '\n'.join(lines)


def _effect_row(claim: Claim, finding: effects.Finding) -> tuple[str, ...]:
  effect, envs = finding.effect, finding.envs
  value, low, high = map(_short, finding.estimate)
  return (
    claim.id,
    effect.name if effect.decides else f'({effect.name})',
    f'{value} [{low}, {high}]' if low else value,
    _short(effects.of_the_paper(effect, claim.artifact)),
    str(finding.seeds),
    envs[0] if len(envs) == 1 else str(len(envs)),
    ', '.join(finding.scales),
  )


def _short(value: float) -> str:
  """Formats a value with two decimals, or three significant digits below 1."""
  if math.isnan(value):
    return ''
  return f'{value:.2f}' if abs(value) >= 1 else f'{value:.3g}'


def csv_text(verdicts: Sequence[Verdict]) -> str:
  """Formats a CSV row for each effect."""
  rows: list[dict[str, Any]] = [
    {
      'claim': verdict.claim.id,
      'verdict': verdict.verdict,
      'effect': finding.effect.name,
      'decides': int(finding.effect.decides),
      **dict(zip(('ours', 'low', 'high'), finding.estimate, strict=True)),
      'paper': effects.of_the_paper(finding.effect, verdict.claim.artifact),
      'seeds': finding.seeds,
      'worlds': len(finding.envs),  # english: ok
      'scale': ' '.join(finding.scales),
      'missing': ' '.join(dataset_lib.sentences(finding.problems)),
    }
    for verdict in verdicts
    for finding in verdict.findings
  ]
  return tables.csv_text(rows, digits=10)
