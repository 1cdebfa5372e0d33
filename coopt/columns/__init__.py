"""Enumerates mappings on HB domains and computes their coefficients for a formulation.

This package knows nothing of solvers.
"""
