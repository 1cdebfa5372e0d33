"""What a reader of a plan has to know to read it rightly."""

from __future__ import annotations

from collections.abc import Iterator

from coopt.instance.schema import CostKind, Instance
from coopt.plan.schema import Design

COUNTED: dict[CostKind, str] = {
    "hb": "HB interconnect with idle GPUs",
    "nic": "NICs",
    "switch": "switches",
    "optics": "optics",
    "gpu": "GPUs that train",
}


def notes(instance: Instance, design: Design) -> Iterator[str]:
    """What is counted and what is not, how bounds are meant, and how far figures carry."""
    yield _counted(instance)
    gpu = instance.cluster.gpu
    domain = next((hb for hb in instance.network.hb_domains if hb.name == design.hb_domain.name), None)
    if domain is not None and domain.usd_per_gpu == 0 and "hb" in instance.objective.include:
        yield f"The interconnect of {domain.name} is part of its servers' price and counts as $0 here."
    if domain is not None and domain.gpus and gpu.name not in domain.gpus:
        yield f"{domain.name} is sold with {' or '.join(domain.gpus)}, not with {gpu.name}: this is a study."
    if len(instance.workload) > 1:
        yield "Each workload meets its bound while it has the whole cluster to itself; they take turns."
    shares = [source for source in gpu.sources if any(f.startswith("efficiency") for f in source.fields)]
    if any("fitted" in source.source for source in shares):
        yield f"Times are estimates: efficiencies of {gpu.name} fitted to published runs of its generation."
    elif any(source.tag in ("D", "M") for source in shares):
        yield f"Times are estimates: the efficiencies of {gpu.name} are not fitted to its own measurements."


def _counted(instance: Instance) -> str:
    included = [text for kind, text in COUNTED.items() if kind in instance.objective.include]
    left = [text for kind, text in COUNTED.items() if kind not in instance.objective.include]
    rest = [*left, "servers", "racks", "cooling"]
    return f"Counted: {', '.join(included)}. Not counted: {', '.join(rest)}."
