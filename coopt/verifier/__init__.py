"""Doubt a plan: re-derive all it claims from the instance and the plan alone.

Written from docs/model.md and docs/network.md; shares no code with the rooms that search.
"""
