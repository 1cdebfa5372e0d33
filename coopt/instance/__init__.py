"""Instances: load, validate, resolve catalog names. Knows nothing of optimisation."""
