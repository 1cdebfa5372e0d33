"""Consistency rules of links, planes, shared NICs, bundles, unevenly filled domains and routing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product

from coopt.instance.errors import alternatives, both, numbers
from coopt.instance.hardware import Nic, mate
from coopt.instance.network import Network
from coopt.instance.question import Question

MAX_NAMED = 4  # maximum number of products named in a complaint


def fabric_disagreements(instance: Question) -> Iterator[str]:
    """Yield sentences about networks that cannot be wired or are inconsistent with other tables."""
    yield from _ports(instance)
    yield from _planes(instance)
    yield from _fill(instance)
    yield from _discipline(instance)
    yield from _switch_racks(instance)


def _switch_racks(instance: Question) -> Iterator[str]:
    """Yield switches that fit into no rack of the hall."""
    hall = instance.network.hall
    for switch in instance.network.switches:
        if switch.rack_units is not None and switch.rack_units > hall.switch_rack_units:
            yield (
                f"network.hall.switch_rack_units = {hall.switch_rack_units:g}: switch"
                f" {switch.name!r} takes {switch.rack_units:g}, needs at least so many"
            )
        if hall.switch_rack_kw is not None and switch.w > 1e3 * hall.switch_rack_kw:
            yield (
                f"network.hall.switch_rack_kw = {hall.switch_rack_kw:g}: switch {switch.name!r}"
                f" draws {switch.w / 1e3:g} kW, needs at least so many"
            )


def _ports(instance: Question) -> Iterator[str]:
    network, reach_m = instance.network, instance.network.link_reach_m[0]
    nic_runs = [
        (nic, planes)
        for nic, planes in product(network.nics, network.nic_planes)
        if planes in nic.ports
    ]
    if not nic_runs:
        port_counts = sorted({ports for nic in network.nics for ports in nic.ports})
        yield (
            f"network.nic_planes = {numbers(network.nic_planes)}: no NIC of network.nics can be run"
            f" with so many ports, needs one of {numbers(port_counts)}"
        )
        return
    optics_in_reach = [optic for optic in network.optics if optic.reach_m >= reach_m]
    joints = [
        (nic, switch, optic)
        for nic, planes in nic_runs
        for switch in network.switch_modes
        if switch.port_gbit_s == (rate := nic.gbit_s / planes)
        for optic in optics_in_reach
        if optic.links_of(rate)
        == planes // nic.cages  # a module fills a cage, whose planes it breaks out into
    ]
    if any(network.tier_switches == "same" or mate(*ends) for ends in joints):
        return
    if joints:
        yield (
            "network.tier_switches = 'any': no NIC mates with a switch and an optic of its rate"
            " (protocol, lane_gbit_s), needs network.switches and network.optics of its lanes"
        )
        return
    yield _missing_joint(network, nic_runs, reach_m)


def _missing_joint(network: Network, nic_runs: list[tuple[Nic, int]], reach_m: float) -> str:
    """Return the first missing component on the path from NIC over switch to optic."""
    ports = {way.port_gbit_s for way in network.switch_modes}
    served_runs = [(nic, planes) for nic, planes in nic_runs if nic.gbit_s / planes in ports]
    if not served_runs:
        rates = numbers(sorted({nic.gbit_s / planes for nic, planes in nic_runs}))
        switches = _listing(
            f"{way.name!r} {way.port_gbit_s:g} Gbit/s" for way in network.switch_modes
        )
        return (
            f"network.nics: no switch has ports of a NIC's rate ({rates} Gbit/s), needs one; there"
            f" are {switches}"
        )
    modules = dict.fromkeys(
        _module_text(nic.gbit_s / planes, planes // nic.cages) for nic, planes in served_runs
    )
    optics = _listing(
        f"{optic.name!r} {optic.gbit_s:g} Gbit/s over {optic.reach_m:g} m"
        for optic in network.optics
    )
    return (
        "network.optics: none joins a NIC to ports of its rate: needs one of "
        f"{alternatives(modules)}, over {reach_m:g} m at least; there are {optics}"
    )


def _module_text(gbit_s: float, links: int) -> str:
    """Describe a module: `400 Gbit/s that breaks out into 2 x 200`."""
    return f"{links * gbit_s:g} Gbit/s" + (
        f" that breaks out into {links} x {gbit_s:g}" if links > 1 else ""
    )


def _listing(texts: Iterable[str]) -> str:
    """Return the first text of a list and the number of further ones."""
    items = list(texts)
    remainder = [f"{len(items) - MAX_NAMED} more"] if len(items) > MAX_NAMED else []
    return both([*items[:MAX_NAMED], *remainder])


def _planes(instance: Question) -> Iterator[str]:
    """Yield complaints about multi-plane or shared NICs, such as direct links that need whole
    NICs.
    """
    network = instance.network
    direct = instance.asks("direct")
    domains = ["robust.survive = 'domain'"] if "domain" in instance.losses else []
    lists = {
        "nic_planes": ("several planes", network.nic_planes, direct),
        "gpus_per_nic": ("NICs of several GPUs", network.gpus_per_nic, direct + domains),
    }
    for key, (words, counts, contents) in lists.items():
        if contents and counts != (1,):
            yield (
                f"network.{key} = {numbers(counts)}: {words} do not go with {both(contents)},"
                " needs 1"
            )
    sizes = sorted({domain.size for domain in network.hb_domains})
    for gpus in network.gpus_per_nic:
        if gpus > 1 and (1 not in network.nics_per_gpu or all(size % gpus for size in sizes)):
            yield (
                f"network.gpus_per_nic = {gpus}: needs 1 in network.nics_per_gpu, and a divisor of"
                f" the GPUs of an HB domain ({numbers(sizes)})"
            )


def _fill(instance: Question) -> Iterator[str]:
    """Yield complaints about unevenly filled domains and bundles in pods."""
    network = instance.network
    contents = instance.asks("ring", "losses", "failures", "direct")
    if network.routing in ("pinned", "ecmp"):
        contents.append(f"network.routing = {network.routing!r}")
    if network.pod_bundles != (1,) and contents:
        yield (
            f"network.pod_bundles = {numbers(network.pod_bundles)}: bundles of links in pods do not"
            f" go with {both(contents)}, needs 1"
        )
    contents = instance.asks("core", "phases", "ring", "direct")
    if network.tier_switches == "any" and contents:
        yield (
            f"network.tier_switches = 'any': products by tier do not go with {both(contents)},"
            " needs 'same'"
        )
    if network.domain_fill == "any" and instance.even_for:
        yield (
            "network.domain_fill = 'any': domains that are not filled alike do not go with"
            f" {both(instance.even_for)}, needs 'even' or the default, 'fewest', which is 'even'"
            " there"
        )


def _discipline(instance: Question) -> Iterator[str]:
    """Yield complaints about charging by ratio with single flows, and about direct links that need
    stages outermost.
    """
    network = instance.network
    key = (
        "charge = 'ratio'"
        if network.charge == "ratio"
        else "fabrics"
        if "direct" in network.fabrics
        else ""
    )
    for w, workload in enumerate(instance.workload if key else ()):
        if "pp" not in workload.mapping.outermost:
            yield (
                f"workload[{w}].mapping.outermost = ['dp']: network.{key} knows stages outermost"
                " alone, needs 'pp' in the list, or charge = 'loads' and fabrics of switches"
            )
    if network.charge == "ratio" and network.routing in ("pinned", "ecmp"):
        yield (
            f"network.routing = {network.routing!r}: needs network.charge = 'loads'; the ratio goes"
            " with a number"
        )
    if network.routing == "pinned" and network.bundles == "any":
        yield (
            "network.bundles = 'any': flows that are pinned to paths (network.routing = 'pinned')"
            " are as even as they are charged only over bundles that are equal, needs 'even', or"
            " another routing"
        )
