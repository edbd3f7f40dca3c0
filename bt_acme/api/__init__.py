"""The Python API: runs in one process, from a script or a notebook.

All public names are attributes of `bt_acme`. Acme, Reverb and Launchpad are not
needed, so the API works with any Python version that JAX supports. The launch
scripts run the same agents in many processes.

Example:
  ```python
  # Takes about five minutes on two cores.
  import bt_acme

  ngu = bt_acme.pretrain(
    'MiniGrid-FourRooms-v0:no_goal', max_actor_steps=40_000
  )
  behavior = ngu.export('runs/explorer')
  task = 'MiniGrid-FourRooms-v0:fixed'
  bt = bt_acme.transfer(task, behavior, max_actor_steps=40_000)
  r2d2 = bt_acme.train(task, max_actor_steps=40_000)
  print(bt_acme.evaluate(bt), bt_acme.evaluate(r2d2))
  bt_acme.plots.learning_curves({'R2D2': r2d2, 'BT': bt})
  bt_acme.video.show(bt)
  ```
"""
