"""A plan on direct links: what joins which domains, what it carries, and what switches would cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rich.console import RenderableType

from coopt.instance.schema import Instance
from coopt.plan.direct_links import DirectLinks
from coopt.plan.margins import limit_checks
from coopt.plan.schema import Cost, ObjectiveClaim, Plan, Rivals
from coopt.report import words
from coopt.report.parts import bill_table, tco_sentence, workload_tables
from coopt.report.remarks import margins_table, notes
from coopt.report.tables import facts, figures

PHASES = {"pp": "sends to the next stage", "dp": "exchanges of replicas"}


def direct_report(instance: Instance, plan: Plan, cost: Cost, direct: DirectLinks) -> Iterator[RenderableType]:
    """Domains and links, phases, bill, workload, bounds, and how to read them."""
    yield ""
    yield facts("Direct links", _built(direct))
    yield ""
    yield _bundles(direct)
    yield ""
    yield _phases(direct)
    yield ""
    yield bill_table(cost)
    yield tco_sentence(instance, cost)
    for workload, asked in zip(plan.workloads, instance.workload, strict=True):
        yield ""
        yield from workload_tables(workload, asked)
    yield ""
    yield margins_table(tuple(limit_checks(instance, direct, cost, plan.workloads)))
    yield ""
    yield from notes(instance, [direct], plan.workloads)
    if any(len(route.path) > 2 for phase in direct.phases for route in phase.routes):
        yield "Passing on through other domains takes no time in the model beyond the links' own (docs/direct.md)."


def rivals_sentence(rivals: Rivals) -> str:
    """What the cheapest of either kind costs."""
    return f"Direct links: {_standing(rivals.direct)}. Switches: {_standing(rivals.switched)}."


def _standing(claim: ObjectiveClaim) -> str:
    if claim.value is not None:
        gap = "nothing proven" if claim.gap is None else f"gap {words.percent(claim.gap)}"
        return f"{words.amount(claim.kind, claim.value)}, {gap}"
    if claim.bound is not None:
        return f"none cheaper found, none below {words.amount(claim.kind, claim.bound)}"
    return "none found"


def _built(direct: DirectLinks) -> Iterator[tuple[str, str]]:
    domain = direct.hb_domain
    active = words.counted(domain.active, "GPU")
    yield "HB domain", f"{words.count(domain.count)} x {domain.name}, {active} of each train"
    yield (
        "Grid",
        f"{words.counted(direct.stages, 'stage')} by {words.counted(direct.replicas, 'replica')}, one a domain",
    )
    yield "Links", f"{words.count(direct.links)}; this mapping needs at least {words.count(direct.links_bound)}"
    used: Counter[int] = Counter()
    for bundle in direct.bundles:
        used.update(dict.fromkeys(bundle.between, bundle.links))
    yield "Ports", f"{min(used.values())} to {max(used.values())} used of {direct.ports} in each domain"
    yield "NIC", f"{direct.nic.name}, one at each end of a link"
    yield "Optic", direct.optic
    yield "Panel", direct.panel or "none, links are plugged directly"
    yield "Racks", f"{'not known' if direct.racks is None else words.count(direct.racks)} for HB domains"


def _bundles(direct: DirectLinks) -> RenderableType:
    """How many pairs of domains have so many links, by where they lie in the grid."""
    counts = Counter((_offset(direct, *bundle.between), bundle.links) for bundle in direct.bundles)
    rows = [
        (words.count(s), words.count(d), words.count(n), words.count(k)) for ((s, d), n), k in sorted(counts.items())
    ]
    return figures("Bundles of links", (), ("stages apart", "replicas apart", "links", "bundles"), rows)


def _offset(direct: DirectLinks, one: int, other: int) -> tuple[int, int]:
    """How far apart two domains are in stages, and round the ring in replicas."""
    (s, d), (t, e) = divmod(one, direct.replicas), divmod(other, direct.replicas)
    return abs(t - s), min((d - e) % direct.replicas, (e - d) % direct.replicas)


def _phases(direct: DirectLinks) -> RenderableType:
    rows = []
    for phase in direct.phases:
        relayed = sum(route.share for route in phase.routes if len(route.path) > 2)
        whole = sum(route.share for route in phase.routes)
        hops = max(len(route.path) for route in phase.routes) - 1
        rows.append((PHASES[phase.name], f"{phase.pace_links:.4g}", words.percent(relayed / whole), words.count(hops)))
    return figures(
        "Traffic between domains", ("phase",), ("as fast as links", "passed on by others", "most hops"), rows
    )
