"""Which islands could each workload have? Options of a partition, listed and filtered."""
