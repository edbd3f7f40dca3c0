"""The paper's 22 quantitative claims, and what a data set says about each.

`data/claims.csv` states the claims; each has a few effects, which are positive
if it holds. A claim is `supported` if the 95 % intervals of all its effects lie
above 0, `contradicted` if one lies below, `open` if neither, and `not run` if
nothing of it was measured. Intervals are of single effects: one below 0 among
many may be chance. Effects that do not decide are only reported.
"""

import functools
import math
from typing import Any, Dict, Iterator, List, NamedTuple, Sequence, Tuple

from bt_acme.evaluation import tables
from experiments.harness import dataset as dataset_lib
from experiments.paper import artifacts, data_files, effects, results

SUPPORTED, CONTRADICTED = 'supported', 'contradicted'
OPEN, NOT_RUN = 'open', 'not run'


class Claim(NamedTuple):
  """One claim.

  Attributes:
    id: such as `C3`.
    artifact: the table or figure that shows it.
    statement: what is claimed, with the paper's numbers.
    note: what else a reader should know.
    effects: the numbers that are positive if it holds.
  """

  id: str
  artifact: str
  statement: str
  note: str
  effects: Tuple[effects.Effect, ...]


def _claims() -> Iterator[Claim]:
  by_claim = effects.read()
  for row in data_files.rows('claims.csv'):
    yield Claim(
      *(row['claim'], row['artifact'], row['statement'], row['note']),
      by_claim.get(row['claim'], ()),
    )


CLAIMS = tuple(_claims())


class Verdict(NamedTuple):
  """What a data set says about a claim.

  Attributes:
    claim: the claim.
    verdict: `SUPPORTED`, `CONTRADICTED`, `OPEN` or `NOT_RUN`.
    findings: of its effects, in their order.
    paper: the paper's value of each effect; NaN if it has none.
  """

  claim: Claim
  verdict: str
  findings: Tuple[effects.Finding, ...]
  paper: Tuple[float, ...]

  @property
  def deciding(self) -> Tuple[effects.Finding, ...]:
    """The findings that the verdict depends on."""
    return tuple(f for f in self.findings if f.effect.decides)

  @property
  def points_agree(self) -> bool:
    """Whether all that was measured is positive, whatever its interval."""
    return all(f.estimate.value > 0 for f in self.deciding if f.is_measured)


def evaluate(
  dataset: dataset_lib.Dataset,
  suites: artifacts.Suites = artifacts.PAPER_SUITES,
) -> Tuple[Verdict, ...]:
  """Says of each claim what the runs of a data set say.

  Args:
    dataset: what runs came to.
    suites: the worlds of each role, at the data set's scale.
  """
  indexed = results.Results(dataset)
  return tuple(verdict_on(claim, indexed, suites) for claim in CLAIMS)


def verdict_on(
  claim: Claim, indexed: results.Results, suites: artifacts.Suites
) -> Verdict:
  """Says of one claim what runs say."""
  findings = tuple(effects.measure(e, indexed, suites) for e in claim.effects)
  return Verdict(claim, _judged(findings), findings, _paper(claim))


def _judged(findings: Sequence[effects.Finding]) -> str:
  """The verdict that the findings of a claim come to."""
  deciding = [finding for finding in findings if finding.effect.decides]
  if not any(finding.is_measured for finding in deciding):
    return NOT_RUN
  if any(finding.estimate.high < 0 for finding in deciding):
    return CONTRADICTED
  if all(finding.estimate.low > 0 for finding in deciding):
    return SUPPORTED
  return OPEN


@functools.lru_cache
def _paper(claim: Claim) -> Tuple[float, ...]:
  return tuple(effects.of_the_paper(e, claim.artifact) for e in claim.effects)


def counts(verdicts: Sequence[Verdict]) -> Dict[str, int]:
  """How many claims have each verdict."""
  found = [verdict.verdict for verdict in verdicts]
  kinds = (SUPPORTED, CONTRADICTED, OPEN, NOT_RUN)
  return {kind: found.count(kind) for kind in kinds}


def markdown(verdicts: Sequence[Verdict]) -> str:
  """The verdicts, the effects behind them, and what is missing."""
  return f'{summary(verdicts)}\n{details(verdicts)}'


def summary(verdicts: Sequence[Verdict]) -> str:
  """The verdicts, under a title."""
  return f'## Claims\n\n{verdict_table(verdicts)}'


def verdict_table(verdicts: Sequence[Verdict]) -> str:
  """The verdicts, and how many there are of each kind."""
  count = ', '.join(f'{n} {kind}' for kind, n in counts(verdicts).items())
  rows = [
    (v.claim.id, _shown(v), f'{v.claim.statement} {v.claim.note}'.strip())
    for v in verdicts
  ]
  header = ('claim', 'verdict', "statement, with the paper's numbers")
  return (
    f'{count}. A claim is supported if the 95 % intervals of all its effects '
    'lie above 0, contradicted if one lies below, and open otherwise.\n\n'
    f'{tables.markdown(header, rows, "lll")}\n'
  )


def _shown(verdict: Verdict) -> str:
  """The verdict; of an open one, why it is open."""
  if verdict.verdict != OPEN:
    return verdict.verdict
  measured = [f for f in verdict.deciding if f.is_measured]
  reasons = []
  if len(measured) < len(verdict.deciding):
    reasons.append(f'{len(measured)} of {len(verdict.deciding)} effects')
  if min(finding.seeds for finding in measured) == 1:
    reasons.append('one seed')
  reasons.append('as claimed' if verdict.points_agree else 'not as claimed')
  return f'{OPEN} ({"; ".join(reasons)})'


def details(verdicts: Sequence[Verdict]) -> str:
  """The effects behind the verdicts, and what is missing."""
  header = ('claim', 'effect', 'ours', 'paper', 'seeds', 'worlds', 'scale')
  rows = [
    _effect_row(verdict.claim.id, finding, paper)
    for verdict in verdicts
    for finding, paper in zip(verdict.findings, verdict.paper, strict=True)
    if finding.is_measured
  ]
  lines = [
    '## Effects behind the claims',
    '',
    'Each is positive if the claim holds. Effects in parentheses do not '
    "decide. The paper's values come from its own games and budget.",
    '',
    tables.markdown(header, rows, 'llrrrrl'),
    '',
  ]
  problems = [p for v in verdicts for f in v.findings for p in f.problems]
  missing = [f'- {sentence}' for sentence in results.sentences(problems, 5)]
  if missing:
    lines += ['What is missing:', '', *missing, '']
  return '\n'.join(lines)


def _effect_row(
  claim: str, finding: effects.Finding, paper: float
) -> Tuple[str, ...]:
  effect, worlds = finding.effect, finding.worlds
  value, low, high = map(_short, finding.estimate)
  return (
    claim,
    effect.name if effect.decides else f'({effect.name})',
    f'{value} [{low}, {high}]' if low else value,
    _short(paper),
    str(finding.seeds),
    worlds[0] if len(worlds) == 1 else str(len(worlds)),
    ', '.join(finding.scales),
  )


def _short(value: float) -> str:
  """For readers: two digits after the point, or three that count."""
  if math.isnan(value):
    return ''
  return f'{value:.2f}' if abs(value) >= 1 else f'{value:.3g}'


def csv_text(verdicts: Sequence[Verdict]) -> str:
  """One row for each effect, and one for a claim without any."""
  rows = [row for verdict in verdicts for row in _csv_rows(verdict)]
  return tables.csv_text(rows, digits=10)


def _csv_rows(verdict: Verdict) -> List[Dict[str, Any]]:
  claim = {'claim': verdict.claim.id, 'verdict': verdict.verdict}
  if not verdict.findings:
    return [{**claim, 'missing': verdict.claim.note}]
  return [
    {
      **claim,
      'effect': finding.effect.name,
      'decides': int(finding.effect.decides),
      **dict(zip(('ours', 'low', 'high'), finding.estimate, strict=True)),
      'paper': paper,
      'seeds': finding.seeds,
      'worlds': len(finding.worlds),
      'scale': ' '.join(finding.scales),
      'missing': ' '.join(results.sentences(finding.problems)),
    }
    for finding, paper in zip(verdict.findings, verdict.paper, strict=True)
  ]
