"""Enumerate mappings on HB domains and turn them into the coefficients of a formulation. Knows
nothing of Pyomo.
"""
