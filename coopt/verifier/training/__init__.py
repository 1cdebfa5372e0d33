"""How long an iteration takes and how much memory it needs, one mapping at a time, from
docs/model.md.
"""
