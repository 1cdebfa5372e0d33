"""Contradictions between the tables of an instance, each as one sentence."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, product

from coopt.instance.base import Entry
from coopt.instance.fibre_lists import missing_fibre
from coopt.instance.hardware import Nic
from coopt.instance.network import Network
from coopt.instance.question import Question
from coopt.instance.rules.couplings import (
    exclusions,
    mixed_disagreements,
    partition_disagreements,
    phase_disagreements,
    regrets_of_choices,
    robust_disagreements,
    site_disagreements,
    unsearched_runners_up,
)
from coopt.instance.texts import alternatives, both, broken, numbers, that_hold
from coopt.instance.workload import BOUNDS, ONE_BOUND, Workload

MOST_IDLE_SITES = 1000
MAX_NAMED = 4  # maximum number of products named in a complaint


def _switches(instance: Question) -> Iterator[str]:
    """Yield switches that fit into no rack of the hall, or that only designs have."""
    hall = instance.network.hall
    most_kw = math.inf if hall.switch_rack_kw is None else hall.switch_rack_kw
    for switch in instance.network.switches:
        units = switch.rack_units or 0.0
        yield from broken(
            (
                units > hall.switch_rack_units,
                f"network.hall.switch_rack_units = {hall.switch_rack_units:g}: switch"
                f" {switch.name!r} takes {units:g} rack units, needs at least {units:g}",
            ),
            (
                switch.w > 1e3 * most_kw,
                f"network.hall.switch_rack_kw = {most_kw:g}: switch {switch.name!r} draws"
                f" {switch.w / 1e3:g} kW, needs at least {switch.w / 1e3:g}",
            ),
            (
                switch.optics_inside,
                f"network.switches: {switch.name!r} has built-in optics, which only files of"
                " designs support (docs/designs.md), needs a switch that takes modules",
            ),
        )


UNLAID = {"direct links": " (whose fewest are sought as if all cost the same)"}
"""Why lengths in the hall do not choose some cables."""


def _alike_ends(instance: Question) -> str:
    """The key by which both ends of links are of one product."""
    by_default = (
        "" if instance.network.buildable else " (buildable = false makes it 'own' if left out)"
    )
    return (
        f"network.link_ends other than 'any'{by_default}"
        if instance.same_ends
        else "network.link_ends = 'same'"
    )


def _cables(instance: Question) -> Iterator[str]:
    """Yield what lengths in the hall, where they choose cables, do not go with."""
    network = instance.network
    if network.cables == "tier":
        if network.fibre:
            yield (
                "network.fibre: is priced by lengths in the hall, needs network.cables = 'hall' or"
                " no fibre"
            )
        return
    rates = {
        nic.gbit_s / planes
        for nic, planes in product(network.nics, network.nic_planes)
        if planes in nic.ports
    }
    for text in missing_fibre(network.fibre, product(network.optics, rates)):
        yield f"network.{text}"
    key, without = "network.cables = 'hall'", "cables = 'tier'"
    if network.fibre:
        key, without = "network.fibre", "no fibre"
    unknown = [hb.name for hb in network.hb_domains if hb.racks is None]
    others = {
        "network.given = true": network.given,
        _alike_ends(instance): network.link_ends == "same",
        # as in a question that is written out, which has the keys that were left out
        "network.link_reach_m": network.link_reach_m
        != Network.model_fields["link_reach_m"].default,
        **dict.fromkeys(instance.asks("direct"), True),
    }
    given = [f"{name}{UNLAID.get(name, '')}" for name in that_hold(others)]
    yield from broken(
        (
            given,
            f"{key}: is not supported with {both(given)}, needs a question without"
            f" {'them' if len(given) > 1 else 'this'}, or {without}",
        ),
        (
            unknown,
            f"{key}: the racks of {both(unknown)} are not stated, needs `racks` in the table of"
            f" each HB domain, or {without}",
        ),
    )


def _wired(instance: Question) -> Iterator[str]:
    """Yield what keeps NICs, switches and optics of a network that is not given from joining."""
    return iter(()) if instance.network.given else _ports(instance)


def _ports(instance: Question) -> Iterator[str]:
    network, reach_m = instance.network, instance.network.needed_reach_m[0]
    nic_runs = [
        (nic, planes)
        for nic, planes in product(network.nics, network.nic_planes)
        if planes in nic.ports
    ]
    if not nic_runs:
        port_counts = sorted({ports for nic in network.nics for ports in nic.ports})
        yield (
            f"network.nic_planes = {numbers(network.nic_planes)}: no NIC of network.nics has that"
            f" many ports, needs {alternatives(map(str, port_counts))}"
        )
        return
    joints = list(network.joints(network.nics))
    if any(joints):
        return
    if joints:
        # a key that is given stays as it is
        frees = network.buildable and "tier_switches" not in network.model_fields_set
        yield (
            f"network.{_mating_key(network)}: no listed switch and optic match a NIC in rate,"
            " protocol and lane_gbit_s, needs such entries in network.switches and"
            f" network.optics{', or buildable = false' if frees else ''}"
        )
        return
    yield _missing_joint(network, nic_runs, reach_m)


def _mating_key(network: Network) -> str:
    """The key for which parts have to mate."""
    return "buildable = true" if network.buildable else "tier_switches = 'any'"


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
            f"network.nics: no listed switch has ports of a NIC's rate ({rates} Gbit/s), needs one"
            f" that has; listed: {switches}"
        )
    modules = dict.fromkeys(
        _module_text(nic.gbit_s / planes, planes // nic.cages) for nic, planes in served_runs
    )
    optics = _listing(
        f"{optic.name!r} {optic.gbit_s:g} Gbit/s over {optic.reach_m:g} m"
        for optic in network.optics
    )
    return (
        "network.optics: no listed optic joins a NIC to switch ports of its rate, needs one of"
        f" {alternatives(modules)}{f', which reaches {reach_m:g} m' if reach_m else ''}; listed:"
        f" {optics}"
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
    sizes = sorted({domain.size for domain in network.hb_domains})
    yield from broken(
        *(
            (
                contents and counts != (1,),
                f"network.{key} = {numbers(counts)}: {words} are not supported with"
                f" {both(contents)}, needs 1",
            )
            for key, (words, counts, contents) in lists.items()
        ),
        *(
            (
                gpus > 1 and (1 not in network.nics_per_gpu or all(size % gpus for size in sizes)),
                f"network.gpus_per_nic = {gpus}: needs 1 in network.nics_per_gpu and a divisor of"
                f" the GPUs of some HB domain ({numbers(sizes)})",
            )
            for gpus in network.gpus_per_nic
        ),
    )


def _fill(instance: Question) -> Iterator[str]:
    """Yield complaints about unevenly filled domains and bundles in pods."""
    network = instance.network
    unbundled = instance.asks("ring", "losses", "failures", "direct")
    if network.routing in ("pinned", "ecmp"):
        unbundled.append(f"network.routing = {network.routing!r}")
    alike = instance.one_product_for
    yield from broken(
        (
            network.pod_bundles != (1,) and unbundled,
            f"network.pod_bundles = {numbers(network.pod_bundles)}: parallel links inside a pod"
            f" are not supported with {both(unbundled)}, needs 1",
        ),
        (
            network.tier_switches == "any" and alike,
            "network.tier_switches = 'any': different products for each tier are not supported"
            f" with {both(alike)}, needs 'same'",
        ),
        (
            network.domain_fill == "any" and instance.even_for,
            "network.domain_fill = 'any': unevenly filled HB domains are not supported with"
            f" {both(instance.even_for)}, needs 'even' or 'fewest' (the default)",
        ),
    )


def _discipline(instance: Question) -> Iterator[str]:
    """Yield complaints about charging by ratio with single flows, and about direct links that need
    stages outermost.
    """
    network = instance.network
    by_ratio = network.charge == "ratio"
    # what leaves no choice of the outermost degree, and what does not
    ruling = {"network.charge = 'ratio'": "network.charge = 'loads'"} if by_ratio else {}
    if "direct" in network.fabrics:
        ruling["'direct' in network.fabrics"] = "fabrics without 'direct'"
    yield from broken(
        *(
            (
                ruling and "pp" not in workload.mapping.outermost,
                f"workload[{w}].mapping.outermost = ['dp']: with {both(ruling)} only pipeline"
                f" stages can be outermost, needs 'pp' in the list, or {both(ruling.values())}",
            )
            for w, workload in enumerate(instance.workload)
        ),
        (
            by_ratio and network.routing in ("pinned", "ecmp"),
            f"network.routing = {network.routing!r}: network.charge = 'ratio' does not follow"
            " single flows, needs 'spray', a number, or network.charge = 'loads'",
        ),
        (
            network.routing == "pinned" and network.bundles == "any",
            "network.bundles = 'any': pinned flows (network.routing = 'pinned') spread evenly"
            " only over equal bundles, needs 'even' or another routing",
        ),
    )


TCP_GBIT_S = 25.0  # rate up to which the efficiency of TCP is known


def _shared_batches(instance: Question) -> Iterator[str]:
    """Yield tolerances of batches that sites take equal shares of."""
    return broken(
        *(
            (
                workload.batch_tolerance and instance.cluster.shares,
                f"workload[{w}].batch_tolerance = {workload.batch_tolerance:g}: few nearby"
                " batches divide into equal shares (cluster.shares), needs a list of batches in"
                " global_batch",
            )
            for w, workload in enumerate(instance.workload)
        )
    )


def _missing_bounds(instance: Question) -> Iterator[str]:
    """Yield workloads without a bound where the cheapest plan is required, which would hardly
    train.
    """
    needs_bounds = (
        instance.objective.minimize == instance.objective.billed
        and instance.limits.train_days_total is None  # which says what it needs itself
    )
    alone = len(instance.workload) == 1 and not instance.several_networks
    # a run's own objective comes after this, and a plan of it could not be verified
    fastest = (
        ", or objective.minimize = 'time' (in the file or by --set) for the fastest plan within"
        " [limits]"
    ) * alone
    return broken(
        *(
            (
                needs_bounds and not workload.bounded,
                f"workload[{w}]: no bound is given, needs {ONE_BOUND}{fastest}",
            )
            for w, workload in enumerate(instance.workload)
        )
    )


def _in_turn(instance: Question) -> Iterator[str]:
    """Yield complaints about a limit on the days of workloads in turn."""
    total = instance.limits.train_days_total
    if total is None:
        return
    key = f"limits.train_days_total = {total:g}"
    sure = instance.availability is not None and instance.availability.confidence is not None
    others = [
        *instance.beyond_one_network,
        *(["availability.confidence"] if sure else []),
        *(["network.routing = 'pinned'"] if instance.network.routing == "pinned" else []),
    ]
    yield from broken(
        (
            len(instance.workload) == 1,
            f"{key}: adds up the days of several workloads, but there is only one, needs its"
            " train_days instead",
        ),
        (
            others,
            f"{key}: is not supported with {both(others)}, needs a question without"
            f" {'them' if len(others) > 1 else 'this'}",
        ),
    )
    for w, workload in enumerate(instance.workload if len(instance.workload) > 1 else ()):
        tokens = workload.train_tokens
        given = ": is missing, but" if tokens is None else f" = {tokens:g}:"
        bound = next((name for name in BOUNDS if getattr(workload, name) is not None), "")
        days = f"train_days = {workload.train_days or 0.0:g}"
        if workload.by is not None:
            days = f"by = {workload.by}, {workload.train_days or 0.0:g} days after cluster.start"
        yield from broken(
            (
                not workload.is_whole_run,
                f"workload[{w}].train_tokens{given} {key} counts the days of the whole run,"
                f" needs at least the {workload.tokens_per_iteration:,} tokens of an iteration",
            ),
            (
                workload.bounded and workload.train_days is None,
                f"workload[{w}].{bound}: {key} adds up the days of all workloads, needs train_days"
                " as the bound of the workload, or no bound",
            ),
            (
                (workload.train_days or 0.0) > total,
                f"workload[{w}].{days}: is more than {key}, needs at most that, or to be left out",
            ),
        )


def _timed_objective(instance: Question) -> Iterator[str]:
    """Yield complaints about objectives that weigh a bill by time but have more than one
    workload.
    """
    objective, kind = instance.objective, instance.objective.minimize
    place, carbon = f"objective.minimize = {kind!r}", kind == "carbon"
    several = [f"{len(instance.workload)} workloads"] if len(instance.workload) > 1 else []
    beyond = [*several, *instance.beyond_one_network]
    return broken(
        (
            kind != objective.billed and beyond,
            f"{place}: is not supported with {both(beyond)}, needs one workload on one network of"
            " switches",
        ),
        (
            kind == "usd_per_token" and objective.years == 0,
            f"{place}: objective.years = 0: no token is trained in 0 years, needs years above 0",
        ),
        (
            carbon and objective.kg_co2_per_kwh is None,
            f"{place}: needs objective.kg_co2_per_kwh (carbon of the electricity that is drawn)",
        ),
        (
            carbon and instance.workload[0].train_tokens is None,
            f"{place}: needs train_tokens (from which the electricity of the training follows)",
        ),
    )


def _failures(instance: Question) -> Iterator[str]:
    """Yield complaints about failure rates together with shared NICs."""
    terms, sharing = instance.availability, instance.network.gpus_per_nic
    hosted = 0 if terms is None else terms.rates.gpus_per_host
    return broken(
        (
            any(hosted % gpus for gpus in sharing),
            f"network.gpus_per_nic = {numbers(sharing)}: GPUs that share a NIC have to be in one"
            f" host, needs divisors of availability.rates.gpus_per_host = {hosted}",
        )
    )


def _idle_gpus(instance: Question) -> Iterator[str]:
    """Yield complaints about idle GPUs where they leave too many numbers to search."""
    cluster = instance.cluster
    count = sum(
        len(cluster.idle_sites(bought, domain.size))
        for bought in cluster.gpus
        for domain in instance.network.hb_domains
        if cluster.idle_gpus
    )
    return broken(
        (
            count > MOST_IDLE_SITES,
            f"cluster.idle_gpus = {str(cluster.idle_gpus).lower()}: leaves {count:,} choices of"
            f" how many GPUs train in how many HB domains, needs at most {MOST_IDLE_SITES:,}"
            " (fewer idle GPUs, or fewer entries in cluster.gpus or network.hb_domains)",
        )
    )


def _idle_elsewhere(instance: Question) -> Iterator[str]:
    """Yield complaints about idle GPUs where islands, sites or phases decide how many train."""
    idle_gpus, several = instance.cluster.idle_gpus, instance.several_networks
    return broken(
        (
            idle_gpus and several,
            f"cluster.idle_gpus = {str(idle_gpus).lower()}: idle GPUs are supported only on a"
            " single network that workloads use in turn, needs an instance without"
            f" {both(several)}",
        )
    )


def _repeated_names(instance: Question) -> Iterator[str]:
    network, idle = instance.network, instance.cluster.gpu.idle_name
    lists: dict[str, Sequence[Entry | Workload]] = {
        "workload": instance.workload,
        "network.hb_domains": network.hb_domains,
        "network.nics": network.nics,
        "network.switches": network.switches,
        "network.optics": network.optics,
        "network.fibre": network.fibre,
        "network.panels": network.panels,
    }
    names_by_key = {key: Counter(part.name for part in parts) for key, parts in lists.items()}
    return broken(
        *(
            (count > 1, f"{key}: name {name!r} appears more than once, needs different names")
            for key, names in names_by_key.items()
            for name, count in names.items()
        ),
        (
            idle in names_by_key["network.hb_domains"],
            f"network.hb_domains: the name {idle!r} is reserved for idle GPUs in the bill, needs"
            " another name",
        ),
    )


def _domains(instance: Question) -> Iterator[str]:
    """Yield HB domains without the racks or hosts that the instance counts."""
    hosts = "host" in instance.objective.include
    return broken(
        (
            hosts and "hb" not in instance.objective.include,
            "objective.include: hosts are priced together with HB domains, needs 'hb' beside"
            " 'host'",
        ),
        *(
            (
                instance.limits.racks is not None and domain.racks is None,
                f"limits.racks: HB domain {domain.name!r} does not state its racks, needs `racks`"
                " in its table",
            )
            for domain in instance.network.hb_domains
        ),
        *(
            (
                hosts and getattr(domain, key) is None,
                f"objective.include: HB domain {domain.name!r} does not state"
                f" {words} of its hosts, needs `{key}` in its table",
            )
            for domain in instance.network.hb_domains
            for key, words in (("host_usd_per_gpu", "the price"), ("host_w_per_gpu", "the power"))
        ),
    )


def _racks(instance: Question) -> Iterator[str]:
    """Yield HB domains that racks of the hall cannot hold."""
    hall = instance.network.hall
    for domain in instance.network.hb_domains:
        name = f"HB domain {domain.name!r}"
        yield from broken(
            (
                hall.cooling == "air" and domain.cooling is None,
                f"network.hall.cooling = 'air': {name} does not state its cooling, needs `cooling`"
                " in its table",
            ),
            (
                (hall.cooling, domain.cooling) == ("air", "liquid"),
                f"network.hall.cooling = 'air': {name} is cooled by liquid, needs"
                " cooling = 'liquid', or network.hb_domains without it",
            ),
        )
        for key, load in instance.rack_loads(domain).items():
            if load.amount is None or domain.racks is None:
                missing = "host_w_per_gpu" if load.unit == "kW" else "kg"
                needed = "racks" if domain.racks is None else missing
                yield (
                    f"network.hall.{key}: {name} does not state its {needed}, needs `{needed}` in"
                    " its table"
                )
            elif math.isinf(load.racks(domain.racks)):
                in_rack = load.amount / max(domain.racks, 1.0)
                yield (
                    f"network.hall.{key} = {load.cap:g}: {name} puts {in_rack:,.5g} {load.unit}"
                    " into a rack, needs a higher cap, or network.hb_domains without it"
                )


def _workloads(instance: Question) -> Iterator[str]:
    """Yield workloads whose precision, offloading or transport the hardware does not know."""
    gpu, nics = instance.cluster.gpu, instance.network.nics
    nic = next((nic for nic in nics if nic.gbit_s > TCP_GBIT_S), nics[0])
    for w, workload in enumerate(instance.workload):
        shares = workload.mapping.offload_percent
        yield from broken(
            (
                not gpu.peak_flop_s(workload.precision),
                f"workload {workload.name!r}: precision = {workload.precision!r}: GPU {gpu.name!r}"
                " has no peak rate at this precision, needs another precision or"
                f" {workload.precision}_tflop_s in the GPU's table",
            ),
            (
                any(shares) and gpu.host_gbyte_s is None,
                f"workload[{w}].mapping.offload_percent = {list(shares)}: the host bandwidth of"
                f" GPU {gpu.name!r} is not known, needs [0], or host_gbyte_s in the GPU's table",
            ),
            (
                workload.options.transport == "tcp" and nic.gbit_s > TCP_GBIT_S,
                f"workload {workload.name!r}: options.transport = 'tcp': the rate of TCP is known"
                f" only up to {TCP_GBIT_S:g} Gbit/s, but {nic.name!r} has {nic.gbit_s:g}, needs"
                " 'ipoib', 'rdma' or a slower NIC",
            ),
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
            f'workload {asking[0]!r}: options.collectives = "in-network": switch {names[0]!r}'
            " cannot reduce in the network (reduces = false), needs switches that can, or"
            ' "fastest"'
        )


def direct_disagreements(instance: Question) -> Iterator[str]:
    """Yield sentences about direct links that are inconsistent with other tables."""
    network = instance.network
    direct, reach_m = "direct" in network.fabrics, network.link_reach_m[1]
    way = instance.workload[0].options.collectives
    rates = {optic.gbit_s for optic in network.optics if optic.reach_m >= reach_m}
    return broken(
        (
            network.panels and not direct,
            "network.panels: panels join only direct links, needs 'direct' in network.fabrics",
        ),
        (
            direct and not network.switched,
            (
                "network.fabrics: 'direct' is always compared with a switched fabric, needs a"
                " switched fabric in the list too"
            ),
        ),
        (
            direct and len(instance.workload) > 1,
            "network.fabrics: 'direct' links serve one workload but there are"
            f" {len(instance.workload)}, needs one [[workload]] or other fabrics",
        ),
        (
            direct and way != "levels",
            f'workload.options.collectives = "{way}": direct links have collective schedules of'
            " their own, needs \"levels\" or fabrics without 'direct'",
        ),
        (
            direct and instance.workload[0].options.dp_replicate > 1,
            f"workload.options.dp_replicate = {instance.workload[0].options.dp_replicate}: direct"
            " links carry whole gradients, needs 1 or fabrics without 'direct'",
        ),
        (
            direct and not rates & {nic.gbit_s for nic in network.nics},
            f"network.optics: no optic of a NIC's rate reaches the {reach_m:g} m of a direct link"
            " (second in network.link_reach_m), needs one that does",
        ),
    )


def _catalog_files(instance: Question) -> Iterator[str]:
    """Yield a complaint about catalog files, which only instances from files have read."""
    return broken(
        (
            instance.catalog.files,
            "catalog.files: this question was not loaded from a file, needs `coopt.load` to read"
            " them",
        )
    )


FABRIC_RULES = (_wired, _planes, _fill, _discipline, _switches, _cables)
RULES = (
    *(_catalog_files, _missing_bounds, _repeated_names, *FABRIC_RULES, _domains, _racks),
    *(_workloads, exclusions, unsearched_runners_up, site_disagreements, robust_disagreements),
    *(partition_disagreements, mixed_disagreements, phase_disagreements, direct_disagreements),
    *(switch_disagreements, _failures, _idle_elsewhere, _idle_gpus, _timed_objective, _in_turn),
)
OPEN_RULES = (
    *(_missing_bounds, regrets_of_choices, _shared_batches, _idle_elsewhere, mixed_disagreements),
    _racks,
)
"""Rules of questions with open lists, whose choices are questions of their own."""


def disagreements(
    instance: Question, rules: Iterable[Callable[[Question], Iterator[str]]] = RULES
) -> Iterator[str]:
    """Yield sentences about inconsistent parts of an instance."""
    return chain.from_iterable(rule(instance) for rule in rules)
