"""Simulate one iteration of a plan: passes and messages as events, traffic as flows on the network
that is built.
"""
