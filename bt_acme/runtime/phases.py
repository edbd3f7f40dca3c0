"""The phases of a run, which the coordinator sets and the other nodes poll."""

import enum


class Phase(enum.IntEnum):
  """The phases in order; a run never returns to an earlier phase.

  Courier sends a phase to another process as a plain integer, which compares
  equal to the phase.
  """

  STARTING = 0  # The learner restores its checkpoint and compiles.
  RUNNING = 1  # Actors act and the learner learns.
  LEARNER_FINISHES = 2  # The budget is used up; the learner saves and exports.
  EVALUATORS_FINISH = 3  # Evaluators evaluate the final parameters.
  DONE = 4  # All nodes have finished, which ends the program.
