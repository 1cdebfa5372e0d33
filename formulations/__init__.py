"""Mathematics only: arrays in, Pyomo models out.

A formulation is a tuple of functions; each adds one labelled equation to a model, and its docstring
is that equation. The docstring of a module lists its symbols: name in the code, sets that it ranges
over, unit and meaning.
"""
