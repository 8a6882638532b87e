"""What a target did over many runs: how much its figures vary, and where their level changed.

`between_runs` is the variation that one run each is compared with. `reading` takes from run folders what can be
compared, `change_points` finds where the level of a series changed, `trends` puts both together for each load on each
target, `facts` says what else changed there. `baseline` keeps what runs are compared with, `gate` judges a run by it.
"""
