"""One part of the cluster for each workload: arrays, search, bill and plan."""
