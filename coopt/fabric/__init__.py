"""Networks as chains of tiers: counted, drawn as graphs and billed (docs/designs.md). Knows nothing
of workloads.
"""
