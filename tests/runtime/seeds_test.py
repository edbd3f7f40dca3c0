"""Seeds of restarted nodes."""

from bt_acme.runtime import seeds


def test_each_attempt_has_a_seed_of_its_own():
  drawn = {seeds.for_node(seed, i) for seed in range(20) for i in range(5)}
  assert len(drawn) == 100 and 0 <= min(drawn) <= max(drawn) < 2**32
  # A node's second attempt and a run's second session use different seeds.
  assert len({f(7, 1) for f in (seeds.for_node, seeds.for_run)}) == 2
  # A first attempt uses the seed of the run.
  assert seeds.for_node(7, 0) == 7 and seeds.for_node(7, 1) != 7
