"""Why no design answers an instance: sentences that name the limit and how far it must give."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import islice
from operator import itemgetter
from typing import Any

import numpy as np

from coopt.columns.feasible import divisions_asked, ruling_out
from coopt.columns.grid import (
    Context,
    allowed_recompute,
    context_of,
    degrees_up_to,
    divisors,
    mappings,
)
from coopt.columns.pools import Pool, in_orders, place, undominated_rows
from coopt.columns.table import Columns, full_bandwidth, needs
from coopt.columns.times import bound_shares
from coopt.instance.catalog import entries
from coopt.instance.couplings import OF_SUM, Limits
from coopt.instance.hardware import HbDomain, Optic, mate
from coopt.instance.network import MAX_TIERS
from coopt.instance.schema import Instance, text_of, typed, with_part
from coopt.instance.texts import alternatives, both, change_text, counted, grouped
from coopt.instance.workload import NEAR_BATCH, Workload, batches_within
from coopt.network.family import Family, LinkEnds
from coopt.network.laying import least_laid, least_resources, unreached
from coopt.network.optics import optic_choices
from coopt.network.parts import resources
from coopt.network.shortfalls import nearest_shortfall
from coopt.network.space import Space, families
from coopt.perf.memory import GIB
from coopt.solving.days import interrupted_paces
from coopt.solving.runs import StoppedError

LINK_ENDS = (
    "from NIC to leaf",
    "from leaf to the next tier",
    "to the core",
)  # of network.link_reach_m
PROMISING = 100  # mappings that are timed before all others, most of which their best rules out
NEAR = 128  # batches, or domains, on either side that are tried as others to ask for


def no_family(instance: Instance, *, may_own_ends: bool = False) -> tuple[str, ...]:
    """Nothing in [network] can join the GPUs.

    Parameters
    ----------
    may_own_ends
        Whether the question that is asked may give each end of a link its own product.
    """
    network, counts, space = (
        instance.network,
        instance.cluster.counts_text,
        Space(instance=instance),
    )
    sizes = ", ".join(f"{hb.name} ({hb.size})" for hb in network.hb_domains)
    if next(space.all_sites(), None) is None:
        neighbours = tuple(sorted(space.nearby_counts()))
        return (
            (
                f"{counts} GPUs do not spread evenly over HB domains {sizes} with more than half"
                f" of each in use: needs another GPU count{_such_as(neighbours)} or another HB"
                " domain"
            ),
        )
    if sentence := _no_reach(instance, _joins, may_own_ends=may_own_ends):
        return (sentence,)
    nearest = nearest_shortfall(instance)
    listed = [optic for optic in entries("optic").values() if isinstance(optic, Optic)]
    eased = EASED | {"optics that fit their ports": {"optics": tuple(listed)}}
    helps = [
        *(["switches with more ports"] if nearest else []),
        *(text for text, change in eased.items() if _joins(with_part(instance, "network", change))),
    ] or ["other switches or optics"]
    return (
        (
            f"no network of at most {counted(network.max_tiers, 'tier')} joins {counts} GPUs in HB"
            f" domains {sizes}: needs {alternatives(helps)}{f'; {nearest}' if nearest else ''}"
        ),
    )


EASED: dict[str, dict[str, Any]] = {
    "a larger network.max_networks": {"max_networks": None},
    "a smaller network.gpus_per_nic": {"gpus_per_nic": (1,)},
    "a larger network.end_to_end_oversubscription": {"end_to_end_oversubscription": None},
    "a larger network.oversubscription": {"oversubscription": 1e3},
    "more tiers": {"max_tiers": MAX_TIERS},
}
"""What is asked for where a network without this limit joins the GPUs."""


def _joins(instance: Instance) -> bool:
    """Whether some network joins the GPUs."""
    return next(families(instance), None) is not None


def missing_optic(instance: Instance, serves: Callable[[Instance], bool]) -> str | None:
    """Which links no listed optic joins, where both ends have one product and the question has an
    answer without their length; None where optics are not to blame, or there is no time to find
    out.

    Parameters
    ----------
    serves
        Whether an instance that differs in the length of links has an answer.
    """
    network = instance.network
    if all(len(optic_choices(instance, nic)) >= network.max_tiers for nic in network.nics):
        return None
    try:
        return _no_reach(instance, serves)
    except StoppedError:
        return None


def _no_reach(
    instance: Instance, serves: Callable[[Instance], bool], *, may_own_ends: bool = False
) -> str | None:
    """The first links up to which all would have to be shorter for an answer, and why no optic
    joins them.
    """
    network = instance.network
    # the first level up to which links without a length give an answer is the one that no optic
    # reaches
    for level in range(network.max_tiers):
        lengths_m = (
            *(0.0 for _ in network.link_reach_m[: level + 1]),
            *network.link_reach_m[level + 1 :],
        )
        if serves(with_part(instance, "network", {"link_reach_m": lengths_m})):
            may_help = may_own_ends and network.link_ends == "same"
            helps = may_help and serves(with_part(instance, "network", {"link_ends": "own"}))
            return _of_reach(
                instance, network.link_reach_m[level], LINK_ENDS[level], own_ends_help=helps
            )
    return None


def _of_reach(instance: Instance, length_m: float, ends: str, *, own_ends_help: bool) -> str:
    """Why no optic joins links of a length, and what would."""
    nic_options, optics = Space(instance=instance).nic_options, instance.network.optics
    rates = sorted({nic_option.nic.gbit_s / nic_option.nic_planes for nic_option in nic_options})
    suitable = [optic for optic in optics if any(map(optic.links_of, rates))]
    reaching = [optic for optic in suitable if optic.reach_m >= length_m]
    if not reaching:
        farthest = max(suitable, key=lambda optic: optic.reach_m)
        fewer_tiers = "" if ends == LINK_ENDS[0] else ", or fewer tiers of switches with more ports"
        return (
            f"no optic of network.optics that fits reaches the {length_m:g} m {ends}"
            f" (network.link_reach_m): {farthest.name} reaches {farthest.reach_m:g} m; needs"
            f" optics that reach further or shorter links{fewer_tiers}"
        )
    reach, do, serve = ("reach", "do", "serve")
    if len(reaching) == 1:
        reach, do, serve = ("reaches", "does", "serves")
    if instance.network.link_ends == "same" and not any(
        optic.gbit_s in rates for optic in reaching
    ):
        obstacle = (
            f"{serve} several links at once, while both ends of a link need the same product"
            " (network.link_ends), which has to fit the ports of both"
        )
    else:
        obstacle = f"{do} not fit the cages or mate with the parts at both ends"
    remedies = [
        optic
        for optic in entries("optic").values()
        if isinstance(optic, Optic)
        and optic.reach_m >= length_m
        and any(
            optic.gbit_s * nic_option.nic_planes == nic_option.nic.gbit_s
            and mate(nic_option.nic, optic, nic_option.switch)
            for nic_option in nic_options
        )
    ]
    # an optic without a rate of lanes may mate or not: one known to mate comes first
    example = min(remedies, key=lambda optic: (not optic.lane_gbit_s, optic.usd), default=None)
    such_as = f" (such as {example.name})" if example else ""
    aside = (
        ", or network.link_ends = 'own', which lets each end have its own module"
        if own_ends_help
        else ""
    )
    return (
        f"no optic of network.optics joins the links of {length_m:g} m {ends}"
        f" (network.link_reach_m): {both([optic.name for optic in reaching])} {reach} as far, but"
        f" {obstacle}; needs an optic of {alternatives(f'{rate:g}' for rate in rates)} Gbit/s that"
        f" reaches {length_m:g} m{such_as}{aside}"
    )


def no_design(
    instance: Instance,
    families: tuple[Family, ...],
    table: Columns,
    check_clock: Callable[[], None],
) -> tuple[str, ...]:
    """No family meets every time bound; `check_clock` may raise."""
    sentences = [
        text
        for w in range(len(instance.workload))
        for text in _workload(instance, families, table, w, check_clock)
    ]
    assert sentences or len(instance.workload) > 1, (
        "a workload that can meet its bound has a column"
    )
    if len(sentences) > 1:
        sentences.append(
            "one network serves all workloads in turn: each need above is that of its workload"
            " alone, and it may be that no single network is enough for all of these"
        )
    return tuple(sentences) or (
        (
            "every bound can be met on some network, but no single network meets them all: needs"
            " a looser bound or wider mapping lists for some workload"
        ),
    )


def beyond_limits(instance: Instance, families: Iterable[Family]) -> Iterator[str]:
    """Limits that every family exceeds, however long an iteration may take."""
    for name, need in _least_uses(
        instance, ((family, family.uplink_choices[0]) for family in families)
    ).items():
        cap = float(getattr(instance.limits, name))
        if cap < need < math.inf:
            yield f"{_too_small(name, cap, need)}, whatever the bounds on time"


def too_many_days(
    instance: Instance,
    viable: tuple[Family, ...],
    table: Columns,
    check_clock: Callable[[], None],
) -> tuple[str, ...]:
    """Every family on which each workload is in time without failures is late with them, or takes
    too many days for all in turn; `check_clock` may raise.
    """
    availability, total = instance.availability, instance.limits.train_days_total
    bound_names = [workload.name for workload in instance.workload if workload.calendar]
    over = bound_names if total is None else None
    by_family = (
        zip(viable, bound_shares(instance, viable, table), strict=True)
        if availability is None
        else interrupted_paces(instance, viable, table, check_clock, over)
    )
    paces = [(float(share), family) for family, shares in by_family for share in shares]
    share, family = min(paces, key=itemgetter(0), default=(math.inf, viable[0]))
    if availability is None:
        assert total is not None, "without failures what is viable is in time"
        least = _too_small("train_days_total", total, total * share)
        return (
            f"{least}, the least in which all workloads train one after the other (on"
            f" {family.hb.name})",
        )
    among, ways_out = "", "fewer failures or faster restarts"
    if spares := availability.listed_spares:
        among = f" with {spares}"
        ways_out = "fewer failures, faster restarts or more spare domains"
    if math.isinf(share):
        return (
            (
                f"with failures, checkpoints and restarts no design makes any progress{among}:"
                f" needs {ways_out}"
            ),
        )
    longer = [
        f"{rounded_up(workload.train_days * share)} days for {workload.name!r}"
        f"{workload.by_end(workload.required_s * share)}"
        for workload in instance.workload
        if workload.train_days is not None and not workload.takes_turns
    ]
    if total is not None:
        longer.append(f"{rounded_up(total * share)} days for all workloads in turn")
    confidence = availability.confidence
    odds = "" if confidence is None else f", kept with a probability of {confidence:.4g}"
    return (
        (
            f"with failures, checkpoints and restarts no design trains in time{among}; the fastest"
            f" (on {family.hb.name}) would be in time with {both(longer)}{odds}: needs more days,"
            f" {ways_out}"
        ),
    )


def over_limits(instance: Instance, viable: tuple[Family, ...], table: Columns) -> tuple[str, ...]:
    """Every family that meets the time bounds exceeds a limit."""
    need = needs(table.columns, len(instance.workload))
    in_time = [
        (family, max(need[table.numbers[context_of(family)]], family.uplink_choices[0]))
        for family in viable
    ]
    uses = _least_uses(instance, in_time)
    if viable[0].choices and math.isinf(max(uses.values(), default=math.inf)):
        return (_out_of_reach(instance, in_time),)
    caps = {name: float(getattr(instance.limits, name)) for name in uses}
    single = tuple(
        f"{_too_small(name, caps[name], value)}, the least of any network that meets every"
        " time bound"
        for name, value in uses.items()
        if value > caps[name]
    )
    if single:
        return single
    parts = ", ".join(
        f"limits.{name} = {caps[name]:,.10g} (alone, {value:,.10g} would do)"
        for name, value in uses.items()
    )
    return (f"no design meets all limits at once: {parts}; needs at least one of them looser",)


def _out_of_reach(instance: Instance, networks: Iterable[tuple[Family, int]]) -> str:
    """That each of these networks, with so many uplinks or more, has cables that are too long."""

    def short_m(miss: tuple[int, int, LinkEnds]) -> float:
        return miss[1] - miss[2].reach_m

    level, length_m, ends = min(
        (
            max(unreached(instance, family, choice), key=short_m)
            for family, uplinks in networks
            for choice in [next(n for n in family.uplink_choices if n >= uplinks)]
        ),
        key=short_m,
    )
    optic = min(ends.products, key=lambda optic: optic.reach_m)
    return (
        "every network that meets every time bound has cables in the hall that are longer than the"
        f" optics which fit them reach, such as {length_m:,} m {LINK_ENDS[level]}, where"
        f" {optic.name} reaches {optic.reach_m:g} m; needs optics that reach farther, or shorter"
        " ways in network.hall"
    )


def _least_uses(instance: Instance, networks: Iterable[tuple[Family, int]]) -> dict[str, float]:
    """The least that families with so many uplinks, or more where lengths choose their cables,
    take of each limit that is set, by its name.
    """
    floors = grouped(
        (name, (float(use.at(family, u)), u, family))
        for family, uplinks in networks
        for name, use in least_resources(instance, family).items()
        for u in (family.uplink_choices if family.choices else (uplinks,))
        if u >= uplinks
    )
    return {name: _least_use(instance, name, of_limit) for name, of_limit in floors.items()}


def _least_use(instance: Instance, name: str, floors: list[tuple[float, int, Family]]) -> float:
    """The least that networks take of a limit with their cables, from lower bounds on it; infinite
    where no cable is long enough.
    """
    kinds = {key: kind for kind, (key, _) in OF_SUM.items()}
    by_use = instance.objective.model_copy(
        update={"minimize": kinds.get(name, instance.objective.billed)}
    )
    alone = instance.model_copy(update={"objective": by_use, "limits": Limits()})

    def use(family: Family, uplinks: int) -> float:
        return float(resources(instance, family)[name].at(family, uplinks))

    best = least_laid(alone, floors, use)
    return math.inf if best is None else use(best, best.uplink_choices[0])


def _too_small(name: str, cap: float, need: float) -> str:
    """`limits.racks = 2: needs at least 3 (+50.00%)`."""
    share = need / cap - 1 if cap else math.inf
    return f"limits.{name} = {cap:,.10g}: needs at least {rounded_up(need)} ({change_text(share)})"


def _workload(
    instance: Instance,
    families: tuple[Family, ...],
    table: Columns,
    w: int,
    check_clock: Callable[[], None],
) -> Iterator[str]:
    workload, gpu = instance.workload[w], instance.cluster.gpu
    sources = [
        table.feasible[w, gpus] for gpus in dict.fromkeys(family.gpus for family in families)
    ]
    place_of = f"workload {workload.name!r}"
    if not any(len(source.fit) + len(source.too_large) for source in sources):
        yield no_split(instance, workload)
    elif not any(len(source.fit) for source in sources):
        need_bytes = min(source.least_bytes for source in sources)
        copies = workload.options.dp_replicate
        held = f" with options.dp_replicate = {copies}" if copies > 1 else ""
        mapping, can_grow = workload.mapping, not instance.network.given
        # replicas that hold everything share nothing, however many they are
        splits = any(mapping.zero) or any(
            len(getattr(mapping, key) or ()) != 1 for key in ("tp", "pp", "cp", "ep")
        )
        helps = ["more GPUs"] if can_grow and splits else []
        helps += ["more memory"] if can_grow else []
        helps += ["fewer copies"] if copies > 1 else []
        helps += ["more values in the lists of its mapping"]
        yield (
            f"{place_of}: every mapping takes at least {need_bytes / GIB:.2f} GiB of a GPU{held},"
            f" but of {gpu.name} only {gpu.usable_bytes / GIB:.2f} GiB may be used: needs"
            f" {alternatives(helps)}"
            f"{_defaults(instance, workload, ('cp', 'recompute', 'offload_percent'))}"
        )
    else:
        fastest_s, hb = _fastest_time(instance, families, table, w, check_clock)
        if math.isinf(fastest_s):
            yield _no_place(instance, workload)
        elif fastest_s > workload.bound_s:
            keys = ["cp", "micro_batch", "recompute"]
            keys += ["offload_percent"] if any(len(source.too_large) for source in sources) else []
            yield (
                f"{place_of}: the fastest design {_too_slow(instance, workload, fastest_s, hb)}"
                f"{_defaults(instance, workload, keys)}"
            )


def _too_slow(instance: Instance, workload: Workload, fastest_s: float, hb: str) -> str:
    """What the fastest design takes, the bound, and what it would have to be: in days where it is
    one of days, else in seconds, and in the workload's own unit where that is another one.
    """
    need_s, margin = fastest_s * (1.0 + workload.time_margin), workload.time_margin
    change = change_text(fastest_s / workload.bound_s - 1)
    if workload.train_days is None:
        less = f" less a margin of {margin:.2%}" if margin else ""
        return (
            f"takes {rounded_up(fastest_s)} s an iteration (on {hb}), and the bound is"
            f" {workload.required_s:.6g} s{less}: needs a bound of at least {rounded_up(need_s)} s"
            f" ({change}){as_rate(workload, need_s)}"
        )
    need = f"{rounded_up(workload.days(need_s))} days"
    within = f" with a margin of {margin:.2%}" if margin else ""
    within += "" if instance.availability is None else " without interruptions"
    turns = " (limits.train_days_total)" if workload.takes_turns else ""
    return (
        f"trains for {need}{within} (on {hb}), and the bound is {workload.train_days:.6g}"
        f" days{turns}: needs a bound of at least {need} ({change}){workload.by_end(need_s)}"
    )


def _no_place(instance: Instance, workload: Workload) -> str:
    """Why no mapping that divides and fits into memory lies evenly on HB domains."""
    held = held_by(instance, workload)
    keys = [text.partition(" = ")[0] for text in held]
    sizes = _numbers_text(tuple(sorted({hb.size for hb in instance.network.hb_domains})))
    return (
        f"workload {workload.name!r}: no mapping of {instance.cluster.counts_text} GPUs fills HB"
        f" domains of {sizes} GPUs evenly{f' with {both(held)}' if held else ''}: needs"
        f" {f'another value of {alternatives(keys)}, ' if held else ''}another batch, GPU count"
        f"{'' if instance.network.given else ', HB domain'} or wider mapping lists"
        f"{_defaults(instance, workload, ('cp',))}"
    )


def held_by(instance: Instance, workload: Workload) -> list[str]:
    """What rules out mappings whose degrees fill HB domains, by keys and values."""
    sharing = instance.network.gpus_per_nic
    return [
        *divisions_asked(workload),
        *(["allow_tp_across = false"] if workload.tp_inside else []),
        *([f"network.gpus_per_nic = {text_of(sharing)}"] if min(sharing) > 1 else []),
    ]


def no_split(instance: Instance, workload: Workload) -> str:
    """Why no mapping of a workload divides evenly, and what would: a sentence without its full
    stop.
    """

    def of_batch(batch: int) -> bool:
        asked = workload.model_copy(update={"global_batch": batch})
        return any(divides(asked, gpus) for gpus in instance.cluster.gpus)

    near_batches = list(_nearest(workload.global_batch, of_batch))
    stands = instance.stands if instance.network.given else None
    counts = _counts_near(instance, workload)
    others = {
        "batch": _such_as(near_batches),
        "GPU count": _such_as(n for n in counts if not stands or stands.holds(n)),
    }
    helps = [f"another {noun}{such_as}" for noun, such_as in others.items() if such_as]
    if not {*near_batches}.isdisjoint(batches_within(workload.global_batch, NEAR_BATCH)):
        helps.append(f"batch_tolerance = {NEAR_BATCH:g}")
    if not instance.beyond_one_network and _divides_fewer(instance, workload):
        helps.append("cluster.idle_gpus = true")
    keys = [
        key
        for key in ("tp", "pp", "dp", "cp", "ep", "micro_batch", "pipeline_layout")
        if key in workload.mapping.model_fields_set and getattr(workload.mapping, key) is not None
    ]
    lists = ", ".join(f"{key} = {text_of(getattr(workload.mapping, key))}" for key in keys)
    model = workload.model
    ruling = {key for gpus in instance.cluster.gpus for key in ruling_out(workload, gpus)}
    without = f"; without {alternatives(sorted(ruling))} some split divides them" if ruling else ""
    groups = "".join(f"{scan.groups} groups of {scan.kind}, " for scan in model.scans)
    return (
        f"workload {workload.name!r}: no TP x PP x DP split of {instance.cluster.counts_text}"
        f" GPUs divides {model.heads} heads, {groups}{model.layers} layers and a batch of"
        f" {workload.global_batch} within workload.mapping ({f'{lists}; ' if lists else ''}only"
        f" the first and the last stage may have fewer layers{without}): needs"
        f" {alternatives([*helps, 'wider mapping lists'])}"
        f"{_defaults(instance, workload, ('cp',))}"
    )


def _counts_near(instance: Instance, workload: Workload) -> Iterator[int]:
    """The nearest counts of GPUs below and above that fill domains of some kind and that some
    mapping divides.
    """
    size = min(hb.size for hb in instance.network.hb_domains)
    gpus = instance.cluster.gpus[0]
    domain_counts = _nearest(gpus / size, lambda domains: divides(workload, domains * size))
    yield from (domains * size for domains in domain_counts)


def _divides_fewer(instance: Instance, workload: Workload) -> bool:
    """Whether some mapping divides fewer GPUs, with the others idle."""
    idle = instance.cluster.having(idle_gpus=True)
    counts = {
        gpus
        for bought in idle.gpus
        for hb in instance.network.hb_domains
        for gpus, _ in idle.idle_sites(bought, hb.size)
    }
    products = degrees_up_to(workload, max(counts, default=0)).prod(axis=1)
    some = counts.intersection(products.tolist())
    return any(divides(workload, gpus) for gpus in sorted(some, reverse=True))


def _nearest(number: float, is_right: Callable[[int], bool]) -> Iterator[int]:
    """The nearest right whole numbers below and above, where they are not far."""
    for start, step in ((math.ceil(number) - 1, -1), (math.floor(number) + 1, 1)):
        several = range(start, max(0, start - NEAR) if step < 0 else start + NEAR, step)
        yield from islice(filter(is_right, several), 1)


def divides(workload: Workload, gpus: int) -> bool:
    """Whether some mapping divides so many GPUs and the workload evenly."""
    return len(mappings(workload, gpus)[0]) > 0


def _such_as(numbers: Iterable[int]) -> str:
    """` (such as 992 or 1,024)`; empty without a number."""
    listing = _numbers_text(tuple(numbers))
    return f" (such as {listing})" if listing else ""


def _defaults(instance: Instance, workload: Workload, keys: Collection[str]) -> str:
    """Lists of a mapping that the user left to defaults which hold back some values; empty where
    there are none.

    Parameters
    ----------
    keys
        Lists that matter to what is missing.
    """
    limits, seq, software = workload.mapping, workload.model.seq, workload.options.software
    possible: dict[str, set[Any]] = {
        "cp": {c for gpus in instance.cluster.gpus for c in divisors(math.gcd(seq, gpus))},
        "micro_batch": set(divisors(workload.global_batch)),
        "recompute": set() if software.recompute_modules else {"norm+act", "norm+ffn"},
        "offload_percent": {100} if instance.cluster.gpu.host_gbyte_s else set(),
    }
    defaults = {
        key: getattr(limits, key)
        for key in possible
        if key in keys and key not in limits.model_fields_set.union(software.lacks)
    }
    narrow = [
        f"mapping.{key} = {text_of(values or allowed_recompute(workload))}"
        for key, values in defaults.items()
        if possible[key] - set(values or ())
    ]
    if not narrow:
        return ""
    are = "is a default" if len(narrow) == 1 else "are defaults"
    return f"; {both(narrow)} {are}, and wider lists were not searched"


def _fastest_time(
    instance: Instance,
    families: tuple[Family, ...],
    table: Columns,
    w: int,
    check_clock: Callable[[], None],
) -> tuple[float, str]:
    """The least iteration time of a workload on any network, and the HB domain it takes.

    The few mappings with the lowest bound on their time go first; of the others only those are
    timed whose time at full bandwidth is no more than the least so far, and that no other one
    replaces.
    """
    workload, gpu, discipline = (
        instance.workload[w],
        instance.cluster.gpu,
        instance.network.discipline,
    )
    record = math.inf, "no network"
    # of the families of a context the one with most uplinks comes last and stays
    widest = {
        context_of(family): family
        for family in sorted(families, key=lambda f: f.uplink_choices[-1])
    }
    sites = {context.site: family.hb for context, family in widest.items()}

    def timed(pool: Pool, hb: HbDomain, ends: Mapping[Context, int]) -> tuple[float, str]:
        pool.load([context for context in ends if not context.layout.is_flat])
        return min(
            [
                record,
                *((float(pool.time_s(c, u).min()), hb.name) for c, u in ends.items() if len(pool)),
            ]
        )

    for site, hb in sites.items():
        check_clock()
        ends = {
            context: family.uplink_choices[-1]
            for context, family in widest.items()
            if context.site == site
        }
        source, ideal = table.feasible[w, site.gpus], full_bandwidth(list(ends))
        bound_s = source.lower_bound_s(gpu, hb.gbyte_s, ideal.byte_s)
        promising = source.fit.take(np.argsort(bound_s, kind="stable")[:PROMISING])
        record = timed(in_orders(place(workload, gpu, hb, site, promising), discipline), hb, ends)
        candidates = place(
            workload, gpu, hb, site, source.fit.take(np.flatnonzero(bound_s <= record[0]))
        )
        least_s = candidates.time_s(ideal, 1)
        order = np.argsort(least_s, kind="stable")
        for rows in (order[:PROMISING], order[PROMISING:]):
            contenders = candidates.take(rows[least_s[rows] <= record[0]])
            record = (
                timed(undominated_rows(contenders, discipline)[0], hb, ends)
                if len(contenders)
                else record
            )
    return record


def as_rate(workload: Workload, bound_s: float) -> str:
    """`, that is 213,330 tokens/s`, never more than the bound in seconds; empty where the bound of
    the workload is no rate.
    """
    if workload.min_tokens_per_s is None:
        return ""
    rate = typed(workload.tokens_per_iteration / bound_s, up=False)
    return f", that is {rate:,.10g} tokens/s"


def rounded_up(value: float) -> str:
    """A number to five digits, never below it, so that a user who types it has enough."""
    return f"{typed(value):,.10g}"


def _numbers_text(values: tuple[int, ...]) -> str:
    return alternatives(f"{value:,}" for value in values)
