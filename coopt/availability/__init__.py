"""Share of time in which a cluster trains: failures, checkpoints, restarts and spares in closed
form (docs/days.md).
"""
