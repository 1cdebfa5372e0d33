"""What was asked, how far a plan is from its bounds, and what a reader has to know to read it rightly."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from coopt.instance.hardware import Gpu
from coopt.instance.schema import CostKind, Instance, Limits
from coopt.instance.workload import Workload
from coopt.plan.direct_links import DirectLinks
from coopt.plan.evaluation import LimitCheck
from coopt.plan.schema import Design, WorkloadPlan
from coopt.report import words
from coopt.report.direct_links import relay_remarks
from coopt.report.parts import training_text
from coopt.report.tables import FigureTable, figures, verdict_word

MINIMISED = {"capex": "the purchase", "power": "the power", "tco": "purchase plus electricity"}
COUNTED: dict[CostKind, str] = {
    "hb": "HB interconnect with idle GPUs",
    "nic": "NICs",
    "switch": "switches",
    "optics": "optics",
    "gpu": "GPUs that train",
}


def margins_table(checks: Iterable[LimitCheck]) -> FigureTable:
    """Bounds with their slack; the tightest has the smallest percentage."""
    return figures(
        "How far each bound is",
        ("bound",),
        ("plan", "limit", "slack", "slack %", "met"),
        [
            (
                check.name,
                words.with_unit(check.value, check.unit),
                words.with_unit(check.limit, check.unit),
                words.with_unit(check.limit - check.value, check.unit),
                words.percent((check.limit - check.value) / check.limit),
                verdict_word(check.ok),
            )
            for check in checks
        ],
    )


def question_rows(instance: Instance) -> Iterator[tuple[str, str]]:
    """What is trained and how fast, what may be built, and what is minimised."""
    network = instance.network
    for workload in instance.workload:
        yield f"Train {workload.name}", f"{training_text(workload)}; {_bound(workload)}"
    yield "GPUs", f"{_alternatives(map(words.count, instance.cluster.gpus))} x {instance.cluster.gpu.name}"
    yield "HB domains", _alternatives(domain.name for domain in network.hb_domains)
    yield "Networks", f"{_alternatives(network.fabrics)}, up to {words.counted(network.max_tiers, 'tier')}"
    yield "Oversubscription", _ratios(instance)
    per_gpu = _alternatives(map(words.count, network.nics_per_gpu))
    yield "NICs", f"{_alternatives(nic.name for nic in network.nics)}, {per_gpu} per GPU"
    yield "Switches", _alternatives(switch.name for switch in network.switches)
    yield "Optics", _alternatives(optic.name for optic in network.optics)
    yield "Minimised", MINIMISED[instance.objective.minimize]
    if limits := list(_limits(instance.limits)):
        yield "Limits", ", ".join(limits)


def _bound(workload: Workload) -> str:
    bound = f"at most {words.seconds(workload.bound_s)} an iteration"
    rate = workload.in_own_units(workload.bound_s)
    return f"{bound} ({rate})" if rate else bound


def _ratios(instance: Instance) -> str:
    ratios = instance.network.ratios
    if ratios is not None:
        return _alternatives(map(words.ratio, ratios))
    largest = instance.network.largest_ratio
    return "none" if largest <= 1 else f"up to {words.ratio(largest)}"


def _limits(limits: Limits) -> Iterator[str]:
    if limits.power_mw is not None:
        yield f"at most {limits.power_mw:g} MW"
    if limits.capex_usd is not None:
        yield f"at most {words.money(limits.capex_usd)} of purchase"
    if limits.racks is not None:
        yield f"at most {limits.racks:g} racks"


def _alternatives(names: Iterable[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} or {last}" if most else last


def notes(
    instance: Instance, designs: Sequence[Design | DirectLinks], workloads: Sequence[WorkloadPlan]
) -> Iterator[str]:
    """What is counted and what is not, how bounds are meant, and how far figures carry."""
    yield counting_sentence(instance)
    gpu, named = instance.cluster.gpu, {design.hb_domain.name for design in designs}
    for domain in (hb for hb in instance.network.hb_domains if hb.name in named):
        if domain.usd_per_gpu == 0 and "hb" in instance.objective.include:
            yield f"The interconnect of {domain.name} is part of its servers' price and counts as $0 here."
        if domain.gpus and gpu.name not in domain.gpus:
            yield f"{domain.name} is sold with {' or '.join(domain.gpus)}, not with {gpu.name}: this is a study."
    if len(instance.workload) > 1:
        yield "Each workload meets its bound while it has the whole cluster to itself; they take turns."
    yield from accuracy(instance, workloads)
    for network in designs:
        if isinstance(network, DirectLinks):
            yield from relay_remarks(network)


def accuracy(instance: Instance, workloads: Sequence[WorkloadPlan]) -> Iterator[str]:
    """How far the model is off where that is known, and which bounds are nearer than that."""
    gpu, runs = instance.cluster.gpu, {run.name: run for run in workloads}
    slack: dict[tuple[str, float], list[tuple[str, float]]] = {}
    for workload, plan in ((one, runs[one.name]) for one in instance.workload if one.name in runs):
        error = gpu.error(workload.precision)
        if error is not None:
            kind: str = workload.precision if workload.precision in ("fp8", "fp4") else "16-bit"
            slack.setdefault((kind, error), []).append((plan.name, 1.0 - plan.iteration_time_s / plan.bound_s))
    for (kind, error), margins in slack.items():
        narrow_margins = [(name, share) for name, share in margins if 0.0 <= share < error]
        yield (
            f"Times are estimates: on published {kind} runs of {gpu.generation or gpu.name} GPUs the model is off by "
            f"{words.percent(error)} on average{_margins_text(narrow_margins, alone=len(runs) == 1)}."
        )
    if not slack:
        yield from _origin(gpu)


def _margins_text(tight: Sequence[tuple[str, float]], *, alone: bool) -> str:
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


def counting_sentence(instance: Instance) -> str:
    """What the bill holds and what it leaves out."""
    included = [text for kind, text in COUNTED.items() if kind in instance.objective.include]
    included += ["wide-area channels"] if instance.wan else []
    excluded = [text for kind, text in COUNTED.items() if kind not in instance.objective.include]
    not_counted = [*excluded, "servers", "racks", "cooling"]
    return f"Counted: {', '.join(included)}. Not counted: {', '.join(not_counted)}."
