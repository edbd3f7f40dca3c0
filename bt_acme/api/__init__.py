"""Runs in one process, in a few lines of a notebook or a script.

  import bt_acme

  world = 'MiniGrid-FourRooms-v0'
  ngu = bt_acme.pretrain(f'{world}:no_goal', max_actor_steps=40_000)
  behavior = ngu.export('behavior')
  task = f'{world}:fixed'
  bt = bt_acme.transfer(task, behavior, max_actor_steps=40_000)
  r2d2 = bt_acme.train(task, max_actor_steps=40_000)
  bt_acme.evaluate(bt, episodes=50)
  bt_acme.plots.learning_curves({'R2D2': r2d2, 'BT': bt})
  bt_acme.video.show(bt)

Acme, Reverb and Launchpad are not needed, so that this works on any Python that
JAX supports. The launch scripts do the same with many processes.
"""
