"""Which core each flow takes: two-layer Clos networks as arrays, paths, loads and fair rates
(docs/routing.md).

Symbols: leaf, core and flow numbers count from 0; -1 in place of a core means that a flow stays
inside its leaf.
"""
