"""What a reader of a plan has to know to read it rightly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from coopt.instance.hardware import Gpu
from coopt.instance.schema import CostKind, Instance
from coopt.plan.direct_links import DirectLinks
from coopt.plan.schema import Design, WorkloadPlan
from coopt.report import words

COUNTED: dict[CostKind, str] = {
    "hb": "HB interconnect with idle GPUs",
    "nic": "NICs",
    "switch": "switches",
    "optics": "optics",
    "gpu": "GPUs that train",
}


def notes(
    instance: Instance, designs: Sequence[Design | DirectLinks], workloads: Sequence[WorkloadPlan]
) -> Iterator[str]:
    """What is counted and what is not, how bounds are meant, and how far figures carry."""
    yield counted(instance)
    gpu, named = instance.cluster.gpu, {design.hb_domain.name for design in designs}
    for domain in (hb for hb in instance.network.hb_domains if hb.name in named):
        if domain.usd_per_gpu == 0 and "hb" in instance.objective.include:
            yield f"The interconnect of {domain.name} is part of its servers' price and counts as $0 here."
        if domain.gpus and gpu.name not in domain.gpus:
            yield f"{domain.name} is sold with {' or '.join(domain.gpus)}, not with {gpu.name}: this is a study."
    if len(instance.workload) > 1:
        yield "Each workload meets its bound while it has the whole cluster to itself; they take turns."
    yield from accuracy(instance, workloads)


def accuracy(instance: Instance, workloads: Sequence[WorkloadPlan]) -> Iterator[str]:
    """How far the model is off where that is known, and which bounds are nearer than that."""
    gpu = instance.cluster.gpu
    slack: dict[tuple[str, float], list[tuple[str, float]]] = {}
    for asked, plan in zip(instance.workload, workloads, strict=True):
        error = gpu.error(asked.precision)
        if error is not None:
            kind: str = asked.precision if asked.precision in ("fp8", "fp4") else "16-bit"
            slack.setdefault((kind, error), []).append((plan.name, 1.0 - plan.iteration_time_s / plan.bound_s))
    for (kind, error), margins in slack.items():
        tight = [(name, share) for name, share in margins if 0.0 <= share < error]
        yield (
            f"Times are estimates: on published {kind} runs of {gpu.generation or gpu.name} GPUs the model is off by "
            f"{words.percent(error)} on average{_nearer(tight, alone=len(workloads) == 1)}."
        )
    if not slack:
        yield from _origin(gpu)


def _nearer(tight: Sequence[tuple[str, float]], *, alone: bool) -> str:
    """`; the slack of 2.8% is less than that`."""
    if not tight:
        return ""
    if alone:
        return f"; the slack of {words.percent(tight[0][1])} is less than that"
    named = " and ".join(f"{name} ({words.percent(share)})" for name, share in tight)
    return f"; the slack of {named} is less than that"


def _origin(gpu: Gpu) -> Iterator[str]:
    """Where efficiencies without a known error come from."""
    shares = [source for source in gpu.sources if any(f.startswith("efficiency") for f in source.fields)]
    if any("fitted" in source.source for source in shares):
        yield f"Times are estimates: efficiencies of {gpu.name} fitted to published runs of its generation."
    elif any(source.tag in ("D", "M") for source in shares):
        yield f"Times are estimates: the efficiencies of {gpu.name} are not fitted to its own measurements."


def counted(instance: Instance) -> str:
    """What the bill holds and what it leaves out."""
    included = [text for kind, text in COUNTED.items() if kind in instance.objective.include]
    included += ["wide-area channels"] if instance.site else []
    left = [text for kind, text in COUNTED.items() if kind not in instance.objective.include]
    rest = [*left, "servers", "racks", "cooling"]
    return f"Counted: {', '.join(included)}. Not counted: {', '.join(rest)}."
