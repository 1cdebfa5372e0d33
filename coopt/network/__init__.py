"""Networks between HB domains: wiring, counts, prices. Knows nothing of workloads."""
