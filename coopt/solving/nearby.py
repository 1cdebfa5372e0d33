"""Numbers of GPUs near those asked for."""

from __future__ import annotations

from coopt.instance.schema import Instance


def nearby_counts(instance: Instance) -> tuple[int, ...]:
    """Counts that fill whole HB domains, nearest first; without 0."""
    counts = instance.cluster.gpus
    near = {
        whole
        for gpus in counts
        for hb in instance.network.hb_domains
        for whole in (gpus // hb.size * hb.size, -(-gpus // hb.size) * hb.size)
    }
    return tuple(sorted(near - {0, *counts}, key=lambda n: min(abs(n - gpus) for gpus in counts)))
