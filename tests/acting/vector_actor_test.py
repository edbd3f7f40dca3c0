"""What an actor of N environments does, step for step."""

import dataclasses
import functools

import jax
import numpy as np
import pytest

from bt_acme import assembly, behaviors, environments, learner_assembly
from bt_acme import config as config_lib
from bt_acme.acting import transition as transition_lib
from bt_acme.acting import vector_actor
from bt_acme.core import frame_stacking, types
from bt_acme.core.intrinsic import features as features_lib
from bt_acme.core.intrinsic import host as host_reward
from bt_acme.environments import vector
from bt_acme.replay import builder as builder_lib
from bt_acme.replay import in_process as in_process_replay
from bt_acme.replay import sinks as adder
from tests.agents import fakes
from tests.reference import intrinsic as reference
from tests.reference import losses, returns
from tests.reference import network as network_reference

KINDS = ('r2d2', 'ngu', 'bt')
# What is put around the agent, and how it is rewarded, in all combinations.
VARIANTS = (
  'bt:extra_action=False',
  'bt:flights=False',
  'bt:flight_recurrent_state=hold',
  'ngu:intrinsic_reward=rnd',
  'ngu:intrinsic_reward=constant',
  'ngu:reward_observation=next',
)
N, TURNS, REFRESH = 4, 60, 17
EPSILONS = (0.5, 0.3, 0.2, 0.0)


class Recorder:
  """Keeps what a sink is given."""

  def __init__(self):
    self.transitions, self.ends = [], []

  def add(self, transition):
    # The actor may go on to use its arrays.
    self.transitions.append(jax.tree.map(np.array, transition))

  def end_episode(self, *final):
    self.ends.append(jax.tree.map(np.array, final))


def play(agent, indices, variables, *, sinks, reward_scale=1.0, turns=TURNS):
  """Acts in the environments of these indices; the second parameters come in
  the middle of episodes."""
  environment = vector.VectorEnvironment(
    [fakes.MarkedEnvironment(i, reward_scale=reward_scale) for i in indices]
  )
  actor = vector_actor.VectorActor(
    agent,
    epsilons=[EPSILONS[i] for i in indices],
    seed=5,
    first_environment=indices[0],
    sinks=sinks,
  )
  actor.update_variables(variables[0])
  step = environment.reset()
  rows = []
  for turn in range(turns):
    if turn == REFRESH:
      actor.update_variables(variables[1])
    step = environment.step(actor.select_actions(step))
    rows += actor.observe(step)
  return actor, rows


@pytest.fixture(name='agents', scope='module')
def make_agents(tmp_path_factory):
  folder = tmp_path_factory.mktemp('behavior') / 'exported'

  @functools.cache
  def make(kind):
    agent = fakes.make_agent(kind, folder)
    return agent, [fakes.variables_of(agent, seed) for seed in (0, 1)]

  return make


@pytest.mark.parametrize('kind', KINDS)
def test_environments_do_not_depend_on_their_neighbors(agents, kind):
  agent, variables = agents(kind)
  together = [Recorder() for _ in range(N)]
  actor, _ = play(agent, range(N), variables, sinks=together)
  sources = set()
  for i in (1, N - 1):
    alone = Recorder()
    alone_actor, _ = play(agent, [i], variables, sinks=[alone])
    assert len(alone.ends) == len(together[i].ends) >= 4
    assert len(alone.transitions) == len(together[i].transitions) > 40
    for one, other in zip(
      [*alone.transitions, *alone.ends],
      [*together[i].transitions, *together[i].ends],
      strict=True,
    ):
      jax.tree.map(
        lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5),
        one,
        other,
      )
    sources |= {int(x.source) for x in alone.transitions}
    if kind == 'ngu':
      for mine, all_of_them in zip(
        alone_actor.statistics(), actor.statistics(), strict=True
      ):
        np.testing.assert_allclose(mine[0], all_of_them[i], rtol=1e-4)
  # All ways to act took part.
  wanted = {types.OWN, types.EXTRA, types.FLIGHT}
  assert sources == (wanted if kind == 'bt' else {types.OWN})


class Log:
  """An independent record of a run, by (index, episode, step)."""

  def __init__(self, agent, variables, index, *, reward_scale=1.0):
    """Recomputes what the actor of one environment must have done.

    It is told nothing but the actions that the environment received.
    """
    self.steps = {}
    self._agent, self._variables = agent, variables
    self._environment = fakes.MarkedEnvironment(
      index, reward_scale=reward_scale
    )

  def follow(self, actions, held):
    """Takes the recorded actions, one for each step that was one.

    Args:
      actions: of the environment.
      held: whether the step left the recurrent state as it was.
    """
    agent = self._agent
    rewards_next = (
      agent.intrinsic is not None
      and agent.config.intrinsic.reward_observation == 'next'
    )

    def novelty(embedding, params, observation, is_first):
      rnd = {k: v for k, v in params.intrinsic.items() if k.startswith('rnd')}
      features = embed(embedding.intrinsic.get('embedding', {}), observation)
      return reward_of.step(
        features_lib.Features(
          np.asarray(features)[None],
          np.asarray(error(rnd, observation))[None],
        ),
        np.array([is_first]),
      )[0]

    network_step = jax.jit(agent.network.step)
    reward_of = embedding = None
    if agent.intrinsic is not None:
      reward_of = host_reward.HostReward(agent.config.intrinsic, 1)
      embed = jax.jit(agent.intrinsic.networks.embed)
      error = jax.jit(agent.intrinsic.networks.error)
    timestep = self._environment.reset()
    actions, held = iter(actions), iter(held)
    previous = None  # The step before, of this episode.
    for turn in range(TURNS + 1):
      params = self._variables[turn >= REFRESH]
      key = fakes.marks(timestep.observation[..., -1:])
      if timestep.first():
        prev_action, prev_reward = types.NO_ACTION, 0.0
        state = agent.network.initial_state()
        embedding, previous = params, None
      entry = {
        'observation': timestep.observation,
        'prev_action': prev_action,
        'prev_reward': prev_reward,
      }
      self.steps[key] = entry
      if turn == TURNS:
        break  # What the last step led to.
      if reward_of is not None and (rewards_next or not timestep.last()):
        reward = novelty(
          embedding, params, timestep.observation, timestep.first()
        )
        if rewards_next and previous is not None:
          previous['reward'] = reward
      if timestep.last():
        timestep = self._environment.step(0)
        continue
      inputs = types.AgentInput(
        timestep.observation,
        np.int32(prev_action),
        np.float32(prev_reward),
        np.array(timestep.first()),
      )
      q_values, after = network_step(params.agent, inputs, state)
      action = next(actions, None)
      if action is None and rewards_next:
        break  # The newest waits for its reward.
      timestep = self._environment.step(action)
      if reward_of is None:
        reward = timestep.reward
      entry.update(
        recurrent_state=state,
        action=action,
        greedy=int(np.argmax(q_values)),
        reward=reward,
        discount=timestep.discount,
      )
      prev_action, prev_reward, previous = action, reward, entry
      state = state if next(held) else after
    assert next(actions, None) is None
    self.statistics = reward_of and reward_of.statistics()


def assert_matches_log(batch, agent, log, epsilons):
  """Each real step of each sequence is the one that its marks say."""
  num_choices = agent.network.num_choices
  seen = set()
  for column in range(batch.action.shape[1]):
    first = fakes.marks(batch.frames[fakes.STACKED - 1, column])
    jax.tree.map(
      lambda x, y, c=column: np.testing.assert_allclose(
        x[c], y, rtol=1e-4, atol=1e-5
      ),
      batch.recurrent_state,
      log[first]['recurrent_state'],
    )
    num_steps = int(batch.valid[:, column].sum())
    assert num_steps >= 1
    assert batch.valid[:num_steps, column].all()
    for t in range(num_steps + 1):
      stack = batch.frames[t : t + fakes.STACKED, column]
      key = fakes.marks(stack[-1])
      assert key == (*first[:2], first[2] + t)
      entry = log[key]
      np.testing.assert_array_equal(
        np.concatenate(stack, axis=-1), entry['observation']
      )
      assert batch.prev_action[t, column] == entry['prev_action']
      np.testing.assert_allclose(
        batch.prev_reward[t, column], entry['prev_reward'], rtol=1e-4
      )
      if t == num_steps:
        continue
      seen.add(key)
      action, choice = batch.action[t, column], batch.choice[t, column]
      source = batch.source[t, column]
      assert action == entry['action']
      np.testing.assert_allclose(
        batch.reward[t, column], entry['reward'], rtol=1e-4
      )
      assert batch.discount[t, column] == entry['discount']
      if source == types.OWN or num_choices == fakes.ACTIONS:
        assert choice == action
      else:
        assert choice >= fakes.ACTIONS
        scripted = fakes.scripted()(entry['observation'], 0, False)
        assert choice != fakes.ACTIONS or action == scripted
      epsilon = epsilons[first[0]]
      probability = epsilon / num_choices + (1 - epsilon) * (
        choice == entry['greedy']
      )
      if source == types.FLIGHT:
        probability = 1.0
      np.testing.assert_allclose(
        batch.probability[t, column], probability, rtol=1e-5
      )
  return seen


def through_local_replay(agent):
  replay = in_process_replay.InProcessReplay(
    agent.config.replay, agent.replay_shapes, seed=0
  )
  sinks = [
    adder.SequenceSink(
      builder_lib.SequenceBuilder(agent.config.replay, agent.replay_shapes),
      replay.writer(),
    )
    for _ in range(N)
  ]
  return sinks, lambda: (replay.sample(400).batch, replay.num_inserts)


def of_log(batch, log, columns, num_stacked):
  """The batch again, but for padding, from what a log has of its steps."""
  again = jax.tree.map(lambda x: np.zeros_like(x[:, columns]), batch[:-1])
  result = types.SequenceBatch(
    *again, jax.tree.map(lambda x: x[columns].copy(), batch.recurrent_state)
  )
  for i, column in enumerate(columns):
    first = fakes.marks(batch.frames[num_stacked - 1, column])
    state = log[first]['recurrent_state']
    result.recurrent_state.hidden[i] = state.hidden
    result.recurrent_state.cell[i] = state.cell
    for t in range(int(batch.valid[:, column].sum()) + 1):
      entry = log[(*first[:2], first[2] + t)]
      result.frames[t : t + num_stacked, i] = np.moveaxis(
        entry['observation'], -1, 0
      )[..., None]
      result.prev_action[t, i] = entry['prev_action']
      result.prev_reward[t, i] = entry['prev_reward']
      if not batch.valid[t : t + 1, column].any():
        break
      for name in ('action', 'reward', 'discount'):
        getattr(result, name)[t, i] = entry[name]
      for name in ('choice', 'source', 'probability', 'valid'):
        getattr(result, name)[t, i] = getattr(batch, name)[t, column]
  return result


def assert_learned_from(batch, agent, variables, log):
  """What a learner step makes of a batch is what float64 makes of the log."""
  config = agent.config
  columns = np.argsort(batch.valid.sum(axis=0), kind='stable')
  columns = np.concatenate([columns[:3], columns[-5:]])
  steps = of_log(batch, log, columns, fakes.STACKED)
  real = steps.valid > 0

  core = learner_assembly.make_learner_core(agent)
  state = core.init(jax.random.key(0), variables[1].agent)._replace(
    target_params=variables[0].agent, intrinsic_params=variables[1].intrinsic
  )
  drawn = jax.tree.map(lambda x: x[:, columns], batch[:-1])
  drawn = types.SequenceBatch(
    *drawn, jax.tree.map(lambda x: x[columns], batch.recurrent_state)
  )
  _, priorities, metrics = jax.jit(core.step)(
    state, drawn, np.ones(len(columns), np.float32)
  )

  observations = np.concatenate(
    [steps.frames[i : i + fakes.T + 1] for i in range(fakes.STACKED)], axis=-1
  )
  scale = {'strides': (1, 2), 'divisor': 10.0}
  hold = np.zeros([fakes.T + 1, len(columns)], bool)
  if agent.transfer is not None:
    if agent.transfer.flight_recurrent_state == 'hold':
      hold[:-1] = steps.source == types.FLIGHT
  q_online, q_target = (
    np.stack(
      [
        network_reference.q_values(
          params,
          observations[:, i],
          steps.prev_action[:, i],
          steps.prev_reward[:, i],
          num_actions=fakes.ACTIONS,
          state=[x[i] for x in steps.recurrent_state],
          hold=hold[:, i],
          **scale,
        )
        for i in range(len(columns))
      ],
      axis=1,
    )
    for params in (variables[1].agent, variables[0].agent)
  )
  learner = config.learner
  common = {
    'trace_decay': learner.trace_decay,
    'epsilon': learner.value_rescaling_epsilon,
  }
  discount_t = learner.discount * steps.discount
  if learner.loss == 'retrace':
    targets = returns.retrace_targets(
      q_online,
      q_target,
      steps.choice,
      steps.probability,
      steps.reward,
      discount_t,
      steps.valid,
      target_policy_epsilon=learner.target_policy_epsilon,
      **common,
    )
  else:
    targets = returns.q_lambda_targets(
      q_online, q_target, steps.reward, discount_t, steps.valid, **common
    )
  loss, _, expected = losses.loss_gradient_priorities(
    q_online,
    targets,
    steps.choice,
    steps.action,
    steps.source,
    real,
    num_actions=fakes.ACTIONS,
    duplicate_flights=learner.duplicate_flights,
    max_weight=config.replay.max_priority_weight,
  )
  np.testing.assert_allclose(metrics['loss'], loss, rtol=1e-3)
  np.testing.assert_allclose(priorities, expected, rtol=1e-3, atol=1e-5)
  if 'inverse_dynamics_loss' in metrics:
    inverse, rnd, _ = reference.sequence_losses(
      variables[1].intrinsic,
      observations,
      steps.action,
      steps.valid,
      frame_channels=1,
      num_steps=config.intrinsic.intrinsic_steps,
      **scale,
    )
    np.testing.assert_allclose(
      metrics['inverse_dynamics_loss'], inverse, rtol=1e-3
    )
    np.testing.assert_allclose(metrics['rnd_loss'], rnd, rtol=1e-3)


@pytest.mark.parametrize(
  'kind, through',
  [
    *((kind, 'local') for kind in KINDS),
    *((kind, 'reverb') for kind in (*KINDS, *VARIANTS)),
  ],
  indirect=['through'],
)
def test_each_step_is_learned_from_as_it_was(agents, kind, through):
  """One step after another, from the environments to the learner's loss."""
  agent, variables = agents(kind)
  holds = kind.endswith('hold')
  sinks, sample = through(agent)
  recorders = [Recorder() for _ in range(N)]
  actor, _ = play(
    agent,
    range(N),
    variables,
    sinks=[Both(*x) for x in zip(recorders, sinks, strict=True)],
  )
  log, num_steps = {}, 0
  for i, recorder in enumerate(recorders):
    one = Log(agent, variables, i)
    one.follow(
      [int(x.action) for x in recorder.transitions],
      [holds and x.source == types.FLIGHT for x in recorder.transitions],
    )
    log.update(one.steps)
    num_steps += len(recorder.transitions)
    if kind == 'ngu':
      # Nothing but real steps left a trace, and episodes do not end it.
      assert actor.statistics().error_count[i] == len(recorder.transitions)
      for mine, theirs in zip(actor.statistics(), one.statistics, strict=True):
        np.testing.assert_allclose(mine[i], theirs[0], rtol=1e-4)
  batch, num_inserts = sample()
  seen = assert_matches_log(batch, agent, log, EPSILONS)
  assert_learned_from(batch, agent, variables, log)
  # All but those of blocks that are not finished yet, and what was not drawn.
  assert num_inserts > 20
  assert num_steps - N * fakes.P - 10 < len(seen) <= num_steps
  kinds_seen = set(batch.source[batch.valid > 0].tolist())
  wanted = {types.OWN}
  if kind.startswith('bt'):
    transfer = agent.config.transfer
    wanted |= {types.EXTRA} if transfer.extra_action else set()
    wanted |= {types.FLIGHT} if transfer.flights else set()
  assert kinds_seen == wanted


@pytest.mark.parametrize('num_stacked', [4, 1])
def test_stacked_frames_of_a_game_survive_the_replay(num_stacked):
  environment = environments.make(
    'montezuma_revenge', seed=0, num_stacked=num_stacked, max_frames=100
  )
  spec = assembly.spec_of(environment, 'montezuma_revenge')
  assert (spec.num_stacked, spec.frame_channels) == (num_stacked, 1)
  agent = assembly.Agent(fakes.make_config(), spec)
  assert agent.replay_shapes.frame == (84, 84, 1)
  variables = fakes.variables_of(agent)
  sinks, sample = through_local_replay(agent)
  recorder = Recorder()
  actor = vector_actor.VectorActor(
    agent, epsilons=[0.5], seed=0, sinks=[Both(recorder, sinks[0])]
  )
  actor.update_variables(variables)
  worlds = vector.VectorEnvironment([environment])
  step = worlds.reset()
  for _ in range(60):
    step = worlds.step(actor.select_actions(step))
    actor.observe(step)
  assert len(recorder.ends) == 2
  batch, _ = sample()
  assert batch.frames.shape[-1] == 1
  stacks = np.asarray(frame_stacking.stack_frames(batch.frames, num_stacked))
  seen = {t.observation.tobytes() for t in recorder.transitions}
  found = {
    stacks[t, i].tobytes() for t, i in np.argwhere(np.asarray(batch.valid) > 0)
  }
  assert found <= seen and len(found) > 10


class Both:
  """Two sinks as one."""

  def __init__(self, *sinks):
    self._sinks = sinks

  def add(self, transition):
    for sink in self._sinks:
      sink.add(transition)

  def end_episode(self, *final):
    for sink in self._sinks:
      sink.end_episode(*final)


@pytest.fixture(name='through')
def make_replay(request):
  if request.param == 'local':
    yield through_local_replay
    return
  reverb = pytest.importorskip('reverb', reason='needs the full environment')
  from bt_acme.replay import sampler as sampler_lib
  from bt_acme.replay import table, writer

  opened = []

  def through_reverb(agent):
    config, shapes = agent.config.replay, agent.replay_shapes
    server = reverb.Server(
      [table.make_table(config, shapes, batch_size=10_000)], port=None
    )
    client = reverb.Client(f'localhost:{server.port}')
    writers = [writer.ReverbWriter(client, config, shapes) for _ in range(N)]
    sinks = [
      adder.SequenceSink(builder_lib.SequenceBuilder(config, shapes), w)
      for w in writers
    ]

    def sample():
      for w in writers:
        w.flush()
      sampler = sampler_lib.SequenceSampler(
        client, config, shapes, batch_size=400
      )
      opened.append(sampler.stop)
      result = next(sampler)
      return result.batch, result.table_size

    opened.extend([server.stop, *(w.close for w in writers)])
    return sinks, sample

  yield through_reverb
  for close in reversed(opened):
    close()


def test_held_states_are_those_of_the_learners_unroll(tmp_path):
  """From each stored state on, over what replay was given."""
  agent = fakes.make_agent('bt', tmp_path / 'behavior')
  transfer = dataclasses.replace(
    agent.config.transfer, flight_recurrent_state='hold'
  )
  agent = dataclasses.replace(
    agent, config=dataclasses.replace(agent.config, transfer=transfer)
  )
  variables = fakes.variables_of(agent)
  recorder = Recorder()
  play(agent, [1], [variables] * 2, sinks=[recorder])
  unroll = jax.jit(agent.network.unroll)
  sources = []
  for before, after in zip(
    recorder.transitions, recorder.transitions[1:], strict=False
  ):
    sources.append(int(before.source))
    if after.prev_action == types.NO_ACTION:
      continue  # An episode starts.
    row = [np.asarray(x)[None, None] for x in before[:3]]
    state = jax.tree.map(lambda x: x[None], before.recurrent_state)
    held = np.full([1, 1], before.source == types.FLIGHT)
    _, expected = unroll(variables.agent, *row, state, held)
    jax.tree.map(
      lambda x, y: np.testing.assert_allclose(x, y[0], rtol=1e-4, atol=1e-5),
      after.recurrent_state,
      expected,
    )
  assert set(sources) == {types.OWN, types.EXTRA, types.FLIGHT}


def assert_rewards_match_reference(agent, variables, recorder):
  """Of all finished episodes that a recorder holds."""
  config = agent.config.intrinsic
  episodes = []
  for transition in recorder.transitions:
    transition = transition_lib.Transition(*transition)
    if transition.prev_action == types.NO_ACTION:
      episodes.append([])
    episodes[-1].append(transition)
  episodes = episodes[: len(recorder.ends)]
  assert len(episodes) > 3
  shown = [[x.observation for x in episode] for episode in episodes]
  if config.reward_observation == 'next':
    for observations, final in zip(shown, recorder.ends, strict=True):
      observations.append(final[0])
  rnd = {k: v for k, v in variables.intrinsic.items() if k.startswith('rnd')}
  embed, error = (
    jax.jit(jax.vmap(f, in_axes=(None, 0)))
    for f in (agent.intrinsic.networks.embed, agent.intrinsic.networks.error)
  )
  together = np.concatenate(shown)
  novelties, _, _ = reference.rewards(
    config,
    np.asarray(embed(variables.intrinsic['embedding'], together)),
    np.asarray(error(rnd, together)),
    np.concatenate([np.arange(len(x)) == 0 for x in shown]),
  )
  credited = reference.credit(
    np.split(novelties, np.cumsum([len(x) for x in shown])[:-1]), config
  )
  for episode, final, (rewards, inputs) in zip(
    episodes, recorder.ends, credited, strict=True
  ):
    np.testing.assert_allclose(
      [x.reward for x in episode], rewards, rtol=1e-3, atol=1e-6
    )
    np.testing.assert_allclose(
      [*(x.prev_reward for x in episode), final[2]],
      inputs,
      rtol=1e-3,
      atol=1e-6,
    )


@pytest.mark.parametrize('scope', ['life', 'episode'])
@pytest.mark.parametrize('observation', ['current', 'next'])
def test_an_action_is_rewarded_by_the_observation_configured(
  observation, scope
):
  agent = agent_rewarded(reward_observation=observation, statistics_scope=scope)
  variables = fakes.variables_of(agent)
  recorders = [Recorder() for _ in range(2)]
  actor, _ = play(agent, [0, 1], [variables] * 2, sinks=recorders)
  for recorder in recorders:
    assert_rewards_match_reference(agent, variables, recorder)
  assert actor.awaits_reward == (observation == 'next')


def agent_rewarded(**intrinsic):
  """An NGU agent with these settings of its reward."""
  config = fakes.make_config(config_lib.NGUConfig)
  return fakes.make_agent(
    'ngu', intrinsic=dataclasses.replace(config.intrinsic, **intrinsic)
  )


class EpisodeRecorder(Recorder):
  """Keeps what an adder's sink is given: whole episodes alone."""

  _kept = 0

  def end_episode(self, *final):
    super().end_episode(*final)
    self._kept = len(self.transitions)

  def reset(self):
    del self.transitions[self._kept :]


def acme_actor(agent, variables, sink):
  """An Acme actor with fixed parameters, whose adder writes to the sink."""
  pytest.importorskip('acme', reason='needs the full environment')
  from bt_acme.agents import acme_actor as actor_lib

  class Source:
    def get_variables(self, names):
      return [getattr(variables, name) for name in names]

  return actor_lib.Actor(
    agent,
    jax.random.key(0),
    epsilon=0.3,
    evaluation=False,
    variable_source=Source(),
    adder=adder.SequenceAdder(sink),
  )


@pytest.mark.parametrize('observation', ['current', 'next'])
def test_acmes_loop_gives_the_same_rewards(observation):
  acme = pytest.importorskip('acme', reason='needs the full environment')
  from acme.utils import loggers

  agent = agent_rewarded(reward_observation=observation)
  variables = fakes.variables_of(agent)
  sink = EpisodeRecorder()
  loop = acme.EnvironmentLoop(
    fakes.MarkedEnvironment(1),
    acme_actor(agent, variables, sink),
    logger=loggers.InMemoryLogger(),
  )
  lengths = [loop.run_episode()['episode_length'] for _ in range(6)]
  assert len(sink.ends) == 6
  assert len(sink.transitions) == sum(lengths)
  assert_rewards_match_reference(agent, variables, sink)


@pytest.mark.parametrize('observation', ['current', 'next'])
def test_an_episode_broken_off_leaves_no_transition(observation):
  agent = agent_rewarded(
    reward_observation=observation, statistics_scope='episode'
  )
  variables = fakes.variables_of(agent)
  sink, environment = EpisodeRecorder(), fakes.MarkedEnvironment(1)
  actor = acme_actor(agent, variables, sink)
  broken = 0
  for episode in range(12):
    timestep = environment.reset()
    actor.observe_first(timestep)
    while not timestep.last():
      action = actor.select_action(timestep.observation)
      timestep = environment.step(action)
      actor.observe(action, timestep)
      if episode % 2 and not timestep.last():
        broken += 1
        break
  assert broken > 3
  assert len(sink.ends) == 12 - broken
  # Each as it would be without the others.
  assert_rewards_match_reference(agent, variables, sink)


def test_the_task_reward_reaches_nothing_in_pre_training(agents):
  agent, variables = agents('ngu')
  runs, returns = [], []
  for scale in (1.0, -100.0):
    recorders = [Recorder() for _ in range(N)]
    actor, rows = play(
      agent, range(N), variables, sinks=recorders, reward_scale=scale
    )
    runs.append(([r.transitions for r in recorders], actor.statistics()))
    returns.append([row['episode_return'] for row in rows])
  jax.tree.map(np.testing.assert_array_equal, *runs)
  np.testing.assert_allclose(returns[1], -100 * np.array(returns[0]), rtol=1e-5)


@pytest.mark.parametrize('bootstrap', [True, False])
def test_episodes_that_the_time_limit_cut(bootstrap):
  config = fakes.make_config(
    acting=config_lib.ActingConfig(bootstrap_truncations=bootstrap)
  )
  agent = assembly.Agent(config, fakes.SPEC)
  recorders = [Recorder() for _ in range(N)]
  variables = [fakes.variables_of(agent)] * 2
  play(agent, range(N), variables, sinks=recorders)
  ended = {True: [], False: []}
  for recorder in recorders:
    for transition in recorder.transitions:
      _, episode, step = fakes.marks(transition.observation[..., -1:])
      rng = np.random.default_rng([recorders.index(recorder), episode])
      if step + 1 == rng.integers(1, 14):
        ended[episode % 2 == 1].append(float(transition.discount))
      else:
        assert transition.discount == 1
  truncated, terminal = ended[True], ended[False]
  assert len(truncated) > 3 and set(truncated) == {float(bootstrap)}
  assert len(terminal) > 3 and set(terminal) == {0.0}


def test_an_evaluator_flies_no_flights(agents):
  agent, variables = agents('bt')
  actor = vector_actor.VectorActor(
    agent, epsilons=[0.5] * N, seed=0, evaluation=True
  )
  environment = vector.VectorEnvironment(
    [fakes.MarkedEnvironment(i) for i in range(N)]
  )
  actor.update_variables(variables[0])
  step, rows = environment.reset(), []
  for _ in range(TURNS):
    step = environment.step(actor.select_actions(step))
    rows += actor.observe(step)
  assert len(rows) > 10
  assert not any(row['flights'] or row['flight_share'] for row in rows)
  assert any(row['behavior_share'] for row in rows)


def test_metrics_of_episodes(agents):
  agent, variables = agents('bt')
  recorder = Recorder()
  _, rows = play(agent, [1], variables, sinks=[recorder])
  assert len(rows) == len(recorder.ends) > 3
  log = Log(agent, variables, 1)
  actions = [int(x.action) for x in recorder.transitions]
  log.follow(actions, [False] * len(actions))
  start, shares = 0, []
  for row in rows:
    episode = recorder.transitions[start : start + row['episode_length']]
    start += row['episode_length']
    np.testing.assert_allclose(
      row['episode_return'], sum(x.reward for x in episode), rtol=1e-5
    )
    sources = np.array([x.source for x in episode])
    assert row['flight_share'] == np.mean(sources == types.FLIGHT)
    assert row['behavior_share'] == np.mean(sources != types.OWN)
    in_flight = sources == types.FLIGHT
    stretches = np.sum(in_flight & ~np.append(False, in_flight[:-1]))
    assert stretches <= row['flights'] <= in_flight.sum()
    # As flown, however long they were drawn.
    assert row['mean_flight_length'] * max(row['flights'], 1) == pytest.approx(
      in_flight.sum()
    )
    greedy = [
      log.steps[fakes.marks(x.observation[..., -1:])]['greedy'] for x in episode
    ]
    assert row['greedy_extra_share'] == np.mean(
      np.array(greedy) >= fakes.ACTIONS
    )
    shares.append((row['greedy_extra_share'], np.mean(sources == types.EXTRA)))
    assert episode[0].prev_action == types.NO_ACTION
  # The greedy choice, not what epsilon and flights made of it.
  assert any(greedy != chosen for greedy, chosen in shares)
  assert 0 < np.mean([greedy for greedy, _ in shares]) < 1


def test_behaviors_stay_as_they_are(tmp_path):
  agent = fakes.make_agent('bt', tmp_path / 'behavior')
  before = [jax.tree.map(np.array, b.params()) for b in agent.behaviors]
  assert len(jax.tree.leaves(before)) > 10
  files = [x.read_bytes() for x in sorted((tmp_path / 'behavior').iterdir())]
  variables = [fakes.variables_of(agent, seed) for seed in (0, 1)]
  play(agent, range(N), variables, sinks=None)
  after = [b.params() for b in agent.behaviors]
  jax.tree.map(np.testing.assert_array_equal, before, after)
  assert files == [
    x.read_bytes() for x in sorted((tmp_path / 'behavior').iterdir())
  ]


def test_parameters_come_first(agents):
  agent, _ = agents('r2d2')
  actor = vector_actor.VectorActor(agent, epsilons=[0.0], seed=0)
  step = vector.VectorEnvironment([fakes.MarkedEnvironment()]).reset()
  with pytest.raises(RuntimeError, match='update_variables must come before'):
    actor.select_actions(step)


def test_behaviors_and_their_configuration_go_together():
  with pytest.raises(ValueError, match='behaviors and BTConfig go together'):
    assembly.Agent(fakes.make_config(), fakes.SPEC, (behaviors.Uniform(),))


def act_with(behavior):
  """Takes two steps beside a behavior."""
  agent = assembly.Agent(
    fakes.make_config(config_lib.BTConfig), fakes.SPEC, (behavior,)
  )
  environment = vector.VectorEnvironment([fakes.MarkedEnvironment(3)])
  actor = vector_actor.VectorActor(agent, epsilons=[0.5], seed=0)
  actor.update_variables(fakes.variables_of(agent))
  step = environment.reset()
  for _ in range(2):
    step = environment.step(actor.select_actions(step))
    actor.observe(step)


def test_a_behavior_cannot_change_what_the_agent_sees():
  def policy(image, action, is_first):
    if not is_first:
      image += 1
    return 0

  with pytest.raises(RuntimeError, match='raised ValueError: .*read-only') as e:
    act_with(behaviors.FromCallable(lambda seed: policy, 'mine'))
  assert "behavior 'mine'" in str(e.value)
  assert 'at actor step 1 of environment 0' in str(e.value)


@pytest.mark.parametrize('action', [-3, 3])
def test_a_jitted_behavior_acts_in_range(action):
  message = f"'mine' returned {action} at actor step 0 of environment 0: out of"
  with pytest.raises(ValueError, match=message):
    act_with(fakes.Proposing(action))


def test_a_jitted_behavior_is_checked_before_it_acts():
  with pytest.raises(TypeError, match="'mine' returns float32 of shape"):
    assembly.Agent(
      fakes.make_config(config_lib.BTConfig),
      fakes.SPEC,
      (fakes.Proposing(2.7),),
    )
