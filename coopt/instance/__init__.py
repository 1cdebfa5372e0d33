"""Instances: loading, validation, and resolution of catalog names. Independent of optimisation."""
