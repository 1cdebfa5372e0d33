"""Designs counted plainly: end points are dealt to leaves one by one, switches added until everything fits."""

from collections import Counter
from itertools import count
from typing import Any

from hypothesis import strategies as st

from coopt.instance.designs import PublishedDesign

Table = dict[str, Any]


@st.composite
def tables(draw: st.DrawFn) -> Table:
    """Small designs of every form, wirable or not."""
    fabric = draw(st.sampled_from(["rail-only", "rail-optimized", "clos"]))
    rails = draw(st.sampled_from([1, 2, 3, 4]))
    nic_ports = draw(st.sampled_from([1, 1, 2, 4]))
    domains = draw(st.integers(1, 24))
    table: Table = {
        "id": "drawn",
        "fabric": fabric,
        "domains": domains,
        "gpus_per_domain": rails * draw(st.sampled_from([1, 1, 2])),
        "rails": rails,
        "nic_ports": nic_ports,
        "planes": draw(st.sampled_from([k for k in (1, 2, 4) if nic_ports % k == 0])),
        "bundles": draw(st.sampled_from(["even", "even", "any"])),
    }
    tiers = draw(st.integers(1, 3))
    if draw(st.booleans()):
        table["unit_domains"] = draw(st.integers(1, 8))
    if draw(st.booleans()):
        table["leaf_domains"] = draw(st.integers(1, table.get("unit_domains", 8)))
    if tiers > 1 and draw(st.booleans()):
        table["pod"] = draw(st.sampled_from(["unit", "rail"] if fabric != "clos" else ["unit"]))
    table["tiers"] = [draw(_tier()) for _ in range(tiers)]
    if draw(st.integers(0, 3)) == 0:
        table["tiers"][0]["down_gbit_s"] = 400.0
        for tier in table["tiers"]:
            tier["gbit_s"] = 800.0
    ends = table["gpus_per_domain"] * nic_ports // table["planes"]
    if fabric != "clos" and ends > rails == table["gpus_per_domain"] and draw(st.booleans()):
        table["rails"] = ends  # each port has a leaf of its own
    if fabric == "clos":
        del table["rails"]  # every leaf serves all, or some ports of each GPU
        if tiers > 1 and draw(st.booleans()):
            table["rails"] = draw(st.sampled_from([k for k in (1, 2, 4) if nic_ports // table["planes"] % k == 0]))
    return table


@st.composite
def _tier(draw: st.DrawFn) -> Table:
    tier: Table = {"ports": draw(st.sampled_from([4, 6, 8, 12, 16, 24, 36, 64]))}
    for key in ("down", "up"):
        if draw(st.integers(0, 3)) == 0:
            tier[key] = draw(st.integers(1, tier["ports"]))
    return tier


def counts(design: PublishedDesign) -> tuple[list[int], list[int]] | None:
    """Switches and links of each tier over all networks; None where it cannot be wired."""
    rails = design.rails or design.gpus_per_domain
    networks = design.planes * (rails if design.fabric == "rail-only" else 1)
    ends = design.domains * design.gpus_per_domain * design.nic_ports
    tiers = design.tiers
    split = [2 if tier.down_gbit_s else 1 for tier in tiers]  # cables down that a port breaks out into
    caps = [_cap(design, number, split[number]) for number in range(len(tiers))]
    if any(-(-(tier.down or 1) // two) + (tier.up or 0) > tier.ports for tier, two in zip(tiers, split, strict=True)):
        return None
    if len(tiers) == 1:
        return _one_tier(design, caps[0], networks, ends)
    dealt = _leaves(design, caps[0])
    if dealt is None:
        return None
    pods, fill = dealt
    uplinks = tiers[0].up or -(-fill // split[0])
    if -(-fill // split[0]) + uplinks > tiers[0].ports:
        return None
    if design.pod is None:
        every = [leaf for pod in pods for leaf in pod]
        most = caps[1] if len(tiers) == 3 else len(every)
        pods = [every[first : first + most] for first in range(0, len(every), most)]
    spines: list[int] = []  # cables up of each, where there are three tiers
    owner: list[int] = []
    for number, pod in enumerate(pods):
        needed = _spines(len(pod), uplinks, caps[1], design.bundles)
        if needed is None:
            return None
        down = -(-len(pod) * uplinks // needed)
        up = 0 if len(tiers) == 2 else tiers[1].up or down
        if down + up > tiers[1].ports:
            return None
        spines += [up] * needed
        owner += [number] * needed
    leaves = sum(map(len, pods))
    switches, links = [networks * leaves, networks * len(spines)], [ends, networks * leaves * uplinks]
    if len(tiers) == 3:
        cores = _cores(spines, owner, caps[2], design.bundles)
        if cores is None:
            return None
        switches, links = [*switches, networks * cores], [*links, networks * sum(spines)]
    return switches, links


def _cap(design: PublishedDesign, number: int, split: int) -> int:
    tier, top = design.tiers[number], number == len(design.tiers) - 1
    if tier.down:
        return tier.down
    left = tier.ports - (tier.up or 0)
    return split * (left if top else min(left, tier.ports // 2))


def _one_tier(design: PublishedDesign, cap: int, networks: int, ends: int) -> tuple[list[int], list[int]] | None:
    unit = design.unit_domains or design.domains
    domains = -(-design.domains // unit) * unit
    in_network = domains * design.gpus_per_domain * design.nic_ports // networks
    if in_network > cap or (design.leaf_domains or unit) < design.domains:
        return None
    switches = 0
    for _ in range(design.planes):
        left = 0
        for _ in range(networks // design.planes):
            if left < in_network:
                switches, left = switches + 1, cap
            left -= in_network
    return [switches], [ends]


def _leaves(design: PublishedDesign, cap: int) -> tuple[list[list[int]], int] | None:
    """Leaves pod by pod (by unit, by rail, or all), and the end points a leaf is sized for."""
    clos = design.fabric == "clos"
    rails = design.rails or (1 if clos else design.gpus_per_domain)
    unit = design.unit_domains or design.domains
    block = design.gpus_per_domain * design.nic_ports // design.planes // rails
    served = design.leaf_domains
    if served is not None:
        fill = served * block
        if design.tiers[0].down and fill > cap:
            return None
    elif clos:
        fill = min(cap, unit * block)
    else:
        fill = min(cap // block, unit) * block
        if not fill or (design.unit_domains and unit * block % fill):
            return None
    leaves: Counter[tuple[int, int, int]] = Counter()
    for domain in range(-(-design.domains // unit) * unit):
        for rail in range(1 if design.fabric == "rail-only" else rails):
            for end in range(block):
                leaves[rail, domain // unit, (domain % unit * block + end) // fill] += 1
    pods: dict[tuple[int, ...], list[int]] = {}
    for (rail, which, _), size in leaves.items():
        pods.setdefault((0 if clos else rail, which) if design.pod == "unit" else (rail,), []).append(size)
    assert max(leaves.values()) <= fill
    return list(pods.values()), fill


def _spines(leaves: int, uplinks: int, cap: int, bundles: str) -> int | None:
    for spines in range(1, uplinks + 1):
        load = Counter((leaf * uplinks + cable) % spines for leaf in range(leaves) for cable in range(uplinks))
        if max(load.values()) <= cap and (bundles == "any" or uplinks % spines == 0):
            return spines
    return None


def _cores(spines: list[int], owner: list[int], cap: int, bundles: str) -> int | None:
    for cores in count(1):
        for step in range(1, min(cap, *spines) + 1) if bundles == "even" else [1]:
            if any(up % step for up in spines) or (bundles == "even" and max(spines) // step > cores):
                continue
            dealt = [pod for up, pod in zip(spines, owner, strict=True) for _ in range(up // step)]
            load = Counter(number % cores for number in range(len(dealt)))
            reached = max(Counter(dealt).values())
            if max(load.values()) * step <= cap and reached >= cores:
                return cores
        if cores > sum(spines):
            return None
    return None
