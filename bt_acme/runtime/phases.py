"""The phases of a run, which the coordinator decides and the nodes ask for."""

import enum


class Phase(enum.IntEnum):
  """Phases in their order; a run never goes back to an earlier one.

  Courier hands one to another process as a plain integer, which compares
  equal to it.
  """

  STARTING = 0  # The learner restores its checkpoint and compiles.
  RUNNING = 1  # Actors act and the learner learns.
  LEARNER_FINISHES = 2  # The budget is used up; the learner saves and exports.
  EVALUATORS_FINISH = 3  # Evaluators evaluate the parameters it ended with.
  DONE = 4  # All of them have finished, which ends the program.
