"""One network with what trains on it: all designs, its graph, its bill, and the checks of one part
of a plan.
"""
