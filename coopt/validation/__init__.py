"""Validation of the performance model against published measurements, and calibration of its
parameters.
"""
