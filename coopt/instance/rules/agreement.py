"""Contradictions between the tables of an instance, each as one sentence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product

from coopt.instance.base import alternatives, both, numbers
from coopt.instance.hardware import Nic, mate
from coopt.instance.network import Network
from coopt.instance.question import Question
from coopt.instance.rules.couplings import (
    exclusions,
    partition_disagreements,
    phase_disagreements,
    regrets_of_choices,
    robust_disagreements,
    site_disagreements,
    unsearched_runners_up,
)
from coopt.instance.workload import ONE_BOUND

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


TCP_GBIT_S = 25.0  # rate up to which the efficiency of TCP is known


def disagreements(instance: Question) -> Iterator[str]:
    """Yield sentences about inconsistent parts of an instance."""
    if instance.catalog.files:
        yield "catalog.files: only `coopt.load` reads them, needs an instance that it loads"
    yield from _missing_bounds(instance)
    yield from _repeated_names(instance)
    yield from fabric_disagreements(instance)
    yield from _racks(instance)
    yield from _optics_inside(instance)
    yield from _hosts(instance)
    yield from _precisions(instance)
    yield from _offloads(instance)
    yield from _transports(instance)
    yield from exclusions(instance)
    yield from unsearched_runners_up(instance)
    yield from site_disagreements(instance)
    yield from robust_disagreements(instance)
    yield from partition_disagreements(instance)
    yield from phase_disagreements(instance)
    yield from direct_disagreements(instance)
    yield from switch_disagreements(instance)
    yield from _failures(instance)
    yield from _timed_objective(instance)


def open_disagreements(instance: Question) -> Iterator[str]:
    """Yield sentences about parts that are inconsistent with open lists, whose choices are
    questions of their own.
    """
    yield from _missing_bounds(instance)
    yield from regrets_of_choices(instance)


def _missing_bounds(instance: Question) -> Iterator[str]:
    """Yield workloads without a bound where the cheapest plan is required, which would hardly
    train.
    """
    if instance.objective.minimize == instance.objective.billed:
        for w, workload in enumerate(instance.workload):
            if not workload.bounded:
                yield (
                    f"workload[{w}]: no bound given, needs {ONE_BOUND}, or objective.minimize ="
                    " 'time' for the fastest plan within [limits]"
                )


def _timed_objective(instance: Question) -> Iterator[str]:
    """Yield complaints about objectives that weigh a bill by time but have more than one
    workload.
    """
    objective, kind = instance.objective, instance.objective.minimize
    if kind == objective.billed:
        return
    place = f"objective.minimize = {kind!r}"
    if instance.beyond_one_network or len(instance.workload) > 1:
        yield f"{place}: needs one workload on one network"
    if kind == "usd_per_token" and objective.years == 0:
        yield f"{place}: objective.years = 0: no token is trained in no time, needs years above 0"
    if kind == "carbon" and objective.kg_co2_per_kwh is None:
        yield f"{place}: needs objective.kg_co2_per_kwh (carbon of the electricity that is drawn)"
    if kind == "carbon" and instance.workload[0].train_tokens is None:
        yield f"{place}: needs train_tokens (from which the electricity of the training follows)"


def _failures(instance: Question) -> Iterator[str]:
    """Yield complaints about failure rates together with shared NICs."""
    if instance.availability is None:
        return
    hosted, sharing = instance.availability.rates.gpus_per_host, instance.network.gpus_per_nic
    if any(hosted % gpus for gpus in sharing):
        yield (
            f"network.gpus_per_nic = {numbers(sharing)}: GPUs that fail with their NIC are of one"
            f" host, needs divisors of availability.rates.gpus_per_host = {hosted}"
        )


def _repeated_names(instance: Question) -> Iterator[str]:
    network = instance.network
    lists = {
        "workload": instance.workload,
        "network.hb_domains": network.hb_domains,
        "network.nics": network.nics,
        "network.switches": network.switches,
        "network.optics": network.optics,
        "network.panels": network.panels,
    }
    for key, parts in lists.items():
        names = [part.name for part in parts]  # type: ignore[attr-defined]
        for name in dict.fromkeys(names):
            if names.count(name) > 1:
                yield f"{key}: name {name!r} appears twice, needs different names"
    idle = instance.cluster.gpu.idle_name
    if any(domain.name == idle for domain in network.hb_domains):
        yield (
            f"network.hb_domains: name {idle!r} is that of idle GPUs in the bill, needs another"
            " name"
        )


def _racks(instance: Question) -> Iterator[str]:
    if instance.limits.racks is None:
        return
    for domain in instance.network.hb_domains:
        if domain.racks is None:
            yield (
                f"limits.racks: HB domain {domain.name!r} does not say how many racks it fills, "
                "needs `racks` in its table"
            )


def _optics_inside(instance: Question) -> Iterator[str]:
    for switch in instance.network.switches:
        if switch.optics_inside:
            yield (
                f"network.switches: {switch.name!r} has its optics inside, which only designs count"
                " (docs/designs.md), needs a switch that takes modules"
            )


def _hosts(instance: Question) -> Iterator[str]:
    include = instance.objective.include
    if "host" not in include:
        return
    if "hb" not in include:
        yield "objective.include: hosts stand with HB domains, needs 'hb' beside 'host'"
    for domain in instance.network.hb_domains:
        for key in ("host_usd_per_gpu", "host_w_per_gpu"):
            if getattr(domain, key) is None:
                yield (
                    f"objective.include: HB domain {domain.name!r} has no host to count, needs"
                    f" `{key}` in its table"
                )


def _precisions(instance: Question) -> Iterator[str]:
    gpu = instance.cluster.gpu
    for workload in instance.workload:
        if not gpu.peak_flop_s(workload.precision):
            yield (
                f"workload {workload.name!r}: precision = {workload.precision!r}: GPU {gpu.name!r}"
                f" has no such peak, needs another precision or {workload.precision}_tflop_s in the"
                " GPU's table"
            )


def _offloads(instance: Question) -> Iterator[str]:
    gpu = instance.cluster.gpu
    for w, workload in enumerate(instance.workload):
        shares = workload.mapping.offload_percent
        if any(shares) and gpu.host_gbyte_s is None:
            yield (
                f"workload[{w}].mapping.offload_percent = {list(shares)}: nothing is known of the"
                f" way from GPU {gpu.name!r} to its host, needs [0], or host_gbyte_s in the GPU's"
                " table"
            )


def _transports(instance: Question) -> Iterator[str]:
    fast = [nic for nic in instance.network.nics if nic.gbit_s > TCP_GBIT_S]
    for workload in instance.workload:
        if workload.options.transport == "tcp" and fast:
            yield (
                f"workload {workload.name!r}: options.transport = 'tcp': what TCP reaches is known"
                f" up to {TCP_GBIT_S:g} Gbit/s and {fast[0].name!r} has {fast[0].gbit_s:g}, needs"
                " 'ipoib' or 'rdma', or slower adapters"
            )


def switch_disagreements(instance: Question) -> Iterator[str]:
    """Yield sentences about switches that cannot sum gradients although this is required."""
    names = [switch.name for switch in instance.network.switches if not switch.reduces]
    asking = [
        workload.name
        for workload in instance.workload
        if workload.options.collectives == "in-network"
    ]
    if names and asking:
        yield (
            f'workload {asking[0]!r}: options.collectives = "in-network", and network.switches has'
            f" {names[0]!r}, which does not add up what passes (reduces = false), needs switches"
            ' that do, or "fastest"'
        )


def direct_disagreements(instance: Question) -> Iterator[str]:
    """Yield sentences about direct links that are inconsistent with other tables."""
    network = instance.network
    if "direct" not in network.fabrics:
        if network.panels:
            yield (
                "network.panels: patch direct links, and network.fabrics allows none, needs"
                " 'direct' in it"
            )
        return
    if not network.switched:
        yield "network.fabrics: 'direct' is compared with switches, needs another fabric beside it"
    if len(instance.workload) > 1:
        yield (
            "network.fabrics: 'direct' links are for the traffic of one workload, and there are "
            f"{len(instance.workload)}, needs one [[workload]] or other fabrics"
        )
    if (way := instance.workload[0].options.collectives) != "levels":
        yield (
            f'workload.options.collectives = "{way}": direct links have schedules of their own'
            " between domains, needs \"levels\" or fabrics without 'direct'"
        )
    rates = {nic.gbit_s for nic in network.nics}
    reach_m = network.link_reach_m[1]
    if not rates & {optic.gbit_s for optic in network.optics if optic.reach_m >= reach_m}:
        yield (
            f"network.optics: none of a NIC's rate reaches the {reach_m:g} m of a direct link, the"
            " second of network.link_reach_m, needs one that does"
        )
