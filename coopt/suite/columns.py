"""The columns that every row of results has, in their order, with their types in Parquet.

`docs/suites.md` says what each means. Axes of a grid become columns of their own, before these.
"""

from __future__ import annotations

from typing import Literal

Kind = Literal["text", "whole", "real"]

COLUMNS: dict[str, Kind] = {
    "suite": "text",
    "grid": "text",
    "case_id": "text",
    "instance": "text",
    "action": "text",
    "status": "text",
    "stop_reason": "text",
    "why": "text",
    "objective": "text",
    "value": "real",
    "bound": "real",
    "gap": "real",
    "capex_usd": "real",
    "power_w": "real",
    "tco_usd": "real",
    "gpus": "whole",
    "spare_gpus": "whole",
    "hb_name": "text",
    "hb_size": "whole",
    "hb_count": "whole",
    "fabric": "text",
    "tiers": "whole",
    "planes": "whole",
    "oversubscription": "real",
    "nic": "text",
    "nics_per_gpu": "whole",
    "switch": "text",
    "switches": "whole",
    "transceivers": "whole",
    "uplinks": "whole",
    "racks": "whole",
    "network_usd": "real",
    "network_w": "real",
    "any_to_any_usd": "real",
    "any_to_any_w": "real",
    "saving": "real",
    "power_saving": "real",
    "workload": "text",
    "iteration_time_s": "real",
    "bound_s": "real",
    "tp": "whole",
    "pp": "whole",
    "dp": "whole",
    "cp": "whole",
    "ep": "whole",
    "micro_batch": "whole",
    "interleave": "whole",
    "recompute": "text",
    "zero": "whole",
    "memory_gib": "real",
    "mfu": "real",
    "hfu": "real",
    "tokens_per_s": "real",
    "families": "whole",
    "mappings": "whole",
    "nodes": "whole",
    "cpu_s": "real",
    "wall_s": "real",
    "coopt": "text",
}
LATER = ("workloads", "overrides")
"""What follows: a list of all workloads with their figures, and the changes of the case as JSON."""
