"""What share of the time a cluster trains: failures, checkpoints, restarts and spares in closed
form (docs/days.md).
"""
