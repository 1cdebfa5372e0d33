"""Direct links: what joins which domains, and what they carry."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rich.console import RenderableType

from coopt.plan.parts import DirectLinks
from coopt.report import words
from coopt.report.tables import facts, figures

PHASES = {
    "pp": "sends to the next stage",
    "dp": "exchanges of replicas or contexts",
    "tp": "TP collectives",
    "cp": "keys and values of contexts",
    "ep": "tokens to experts",
    "edp": "gradients of experts",
}


def link_tables(direct: DirectLinks, title: str) -> Iterator[RenderableType]:
    """Domains with their links, the bundles by where their ends lie, and the traffic of each
    phase.
    """
    yield facts(title, _link_rows(direct))
    yield ""
    yield _bundles(direct)
    yield ""
    yield _phases(direct)


def relay_remarks(direct: DirectLinks) -> Iterator[str]:
    """What is left out where domains pass traffic on."""
    if any(len(route.path) > 2 for phase in direct.phases for route in phase.routes):
        yield (
            "Passing on through other domains takes no time in the model beyond the links' own"
            " (docs/direct.md)."
        )


def _link_rows(direct: DirectLinks) -> Iterator[tuple[str, str]]:
    domain = direct.hb_domain
    active_text = words.counted(domain.active, "GPU")
    yield "HB domain", f"{words.times(domain.count, domain.name)}, {active_text} of each train"
    yield (
        "Grid",
        (
            f"{words.counted(direct.stages, 'block')} of stages, of"
            f" {words.counted(direct.replicas, 'domain')} each"
        ),
    )
    yield (
        "Links",
        (
            f"{words.count(direct.links)}; this mapping needs at least"
            f" {words.count(direct.links_bound)}"
        ),
    )
    ports: Counter[int] = Counter()
    for bundle in direct.bundles:
        ports.update(dict.fromkeys(bundle.between, bundle.links))
    yield (
        "Ports",
        f"{min(ports.values())} to {max(ports.values())} used of {direct.ports} in each domain",
    )
    yield "NIC", f"{direct.nic.name}, one at each end of a link"
    yield "Optic", direct.optic
    yield "Panel", direct.panel or "none, links are plugged directly"
    yield (
        "Racks",
        f"{'not known' if direct.racks is None else words.count(direct.racks)} for HB domains",
    )


def _bundles(direct: DirectLinks) -> RenderableType:
    """How many pairs of domains have so many links, by where they lie in the grid."""
    counts = Counter((_offset(direct, *bundle.between), bundle.links) for bundle in direct.bundles)
    rows = [
        (words.count(s), words.count(d), words.count(n), words.count(k))
        for ((s, d), n), k in sorted(counts.items())
    ]
    return figures(
        "Bundles of links", (), ("blocks apart", "apart in the ring", "links", "bundles"), rows
    )


def _offset(direct: DirectLinks, domain: int, peer: int) -> tuple[int, int]:
    """How far apart two domains are in stages, and round the ring in replicas."""
    (s, d), (t, e) = divmod(domain, direct.replicas), divmod(peer, direct.replicas)
    return abs(t - s), min((d - e) % direct.replicas, (e - d) % direct.replicas)


def _phases(direct: DirectLinks) -> RenderableType:
    rows = []
    for phase in direct.phases:
        relayed_share = sum(route.share for route in phase.routes if len(route.path) > 2)
        total = sum(route.share for route in phase.routes)
        hops = max(len(route.path) for route in phase.routes) - 1
        rows.append(
            (
                PHASES[phase.name],
                f"{phase.pace_links:.4g}",
                words.percent(relayed_share / total),
                words.count(hops),
            )
        )
    return figures(
        "Traffic between domains",
        ("phase",),
        ("as fast as links", "passed on by others", "most hops"),
        rows,
    )
