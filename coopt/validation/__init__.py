"""The performance model against published measurements: how far it is off, and what its few
parameters should be.
"""
