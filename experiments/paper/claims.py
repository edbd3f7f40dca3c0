"""What a data set says about each of the paper's claims.

A claim is `supported` if the 95 % intervals of all its effects lie above 0,
`contradicted` if one lies below, `open` if neither, and `not run` if nothing of
it was measured. Intervals are of single effects: one below 0 among many may be
chance. Effects that do not decide are only reported.
"""

import csv
import functools
import io
import math
from typing import Dict, List, NamedTuple, Sequence, Tuple

from experiments.harness import dataset as dataset_lib
from experiments.paper import artifacts, effects, results, table_formats
from experiments.paper.claim_list import CLAIMS, Claim

SUPPORTED, CONTRADICTED = 'supported', 'contradicted'
OPEN, NOT_RUN = 'open', 'not run'

_CSV_HEADER = (
  *('claim', 'verdict', 'effect', 'decides', 'ours', 'low', 'high', 'paper'),
  *('seeds', 'worlds', 'scale', 'missing'),
)


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
  return tuple(_evaluate(claim, indexed, suites) for claim in CLAIMS)


def judge(findings: Tuple[effects.Finding, ...]) -> str:
  """The verdict that the findings of a claim come to."""
  deciding = [finding for finding in findings if finding.effect.decides]
  if not any(finding.is_measured for finding in deciding):
    return NOT_RUN
  if any(finding.estimate.high < 0 for finding in deciding):
    return CONTRADICTED
  if all(finding.estimate.low > 0 for finding in deciding):
    return SUPPORTED
  return OPEN


def _evaluate(
  claim: Claim, indexed: results.Results, suites: artifacts.Suites
) -> Verdict:
  findings = tuple(
    effects.measure(effect, indexed, suites) for effect in claim.effects
  )
  return Verdict(claim, judge(findings), findings, _paper(claim))


@functools.lru_cache
def _paper(claim: Claim) -> Tuple[float, ...]:
  return tuple(effects.of_the_paper(e, claim.artifact) for e in claim.effects)


def report(
  dataset: dataset_lib.Dataset,
  suites: artifacts.Suites = artifacts.PAPER_SUITES,
) -> str:
  """What the runs of a data set say of each claim, as Markdown."""
  return markdown(evaluate(dataset, suites))


def counts(verdicts: Sequence[Verdict]) -> Dict[str, int]:
  """How many claims have each verdict."""
  found: List[str] = [verdict.verdict for verdict in verdicts]
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
  lines = [
    f'{count}. A claim is supported if the 95 % intervals of all its effects '
    'lie above 0, contradicted if one lies below, and open otherwise.',
    '',
    "| claim | verdict | statement, with the paper's numbers |",
    '| --- | --- | --- |',
    *(
      f'| {v.claim.id} | {_shown(v)} | {_statement(v.claim)} |'
      for v in verdicts
    ),
  ]
  return '\n'.join(lines) + '\n'


def details(verdicts: Sequence[Verdict]) -> str:
  """The effects behind the verdicts, and what is missing."""
  lines = [
    '## Effects behind the claims',
    '',
    'Each is positive if the claim holds. Effects in parentheses do not '
    "decide. The paper's values come from its own games and budget.",
    '',
    '| claim | effect | ours | paper | seeds | worlds | scale |',
    '| --- | --- | --: | --: | --: | --: | --- |',
    *(
      _markdown_row(verdict.claim.id, finding, paper)
      for verdict in verdicts
      for finding, paper in zip(verdict.findings, verdict.paper, strict=True)
      if finding.is_measured
    ),
    '',
  ]
  problems = [p for v in verdicts for f in v.findings for p in f.problems]
  missing = [f'- {sentence}' for sentence in results.sentences(problems, 5)]
  if missing:
    lines += ['What is missing:', '', *missing, '']
  return '\n'.join(lines)


def csv_text(verdicts: Sequence[Verdict]) -> str:
  """One row for each effect, and one for a claim without any."""
  text = io.StringIO()
  writer = csv.writer(text, lineterminator='\n')
  writer.writerow(_CSV_HEADER)
  for verdict in verdicts:
    start = (verdict.claim.id, verdict.verdict)
    if not verdict.findings:
      blanks = [''] * (len(_CSV_HEADER) - 3)
      writer.writerow([*start, *blanks, verdict.claim.note])
    for finding, paper in zip(verdict.findings, verdict.paper, strict=True):
      writer.writerow(
        [
          *(*start, finding.effect.name, int(finding.effect.decides)),
          *map(table_formats.number, (*finding.estimate, paper)),
          *(finding.seeds, len(finding.worlds), ' '.join(finding.scales)),
          ' '.join(results.sentences(finding.problems)),
        ]
      )
  return text.getvalue()


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


def _statement(claim: Claim) -> str:
  return f'{claim.statement} {claim.note}'.strip()


def _markdown_row(claim: str, finding: effects.Finding, paper: float) -> str:
  effect = finding.effect
  name = effect.name if effect.decides else f'({effect.name})'
  value, low, high, paper_value = map(_short, (*finding.estimate, paper))
  interval = f' [{low}, {high}]' if low else ''
  scales = ', '.join(finding.scales)
  count = len(finding.worlds)
  worlds = finding.worlds[0] if count == 1 else str(count)
  cells = (
    *(claim, name, f'{value}{interval}', paper_value),
    *(str(finding.seeds), worlds, scales),
  )
  return f'| {" | ".join(cells)} |'


def _short(value: float) -> str:
  """For readers: two digits after the point, or three that count."""
  if math.isnan(value):
    return ''
  return f'{value:.2f}' if abs(value) >= 1 else f'{value:.3g}'
