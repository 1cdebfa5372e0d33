"""Consistency rules of `[sharing]`, its core, phases, sites and uncertainties.

`docs/fleets.md` has the table of valid combinations.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from itertools import pairwise, product

from coopt.instance.base import both, numbers
from coopt.instance.catalog import ports_of_modules
from coopt.instance.couplings import (
    MAX_SITES,
    Core,
    Lost,
    MostProducts,
    PhaseWorkload,
    Prices,
    Slower,
)
from coopt.instance.hardware import Optic, Switch
from coopt.instance.numerics import EQUAL
from coopt.instance.question import CostKind, Question
from coopt.instance.variants import bounded, list_prices

CERTAIN = {
    "robust.prices": "planned at known prices",
    "robust.efficiency": "planned at one efficiency of the GPU",
    "robust.survive": "planned without losses",
    "[robust]": "planned without doubts",
}
"""What excludes each key of `[robust]`."""
UNINTERRUPTED = "planned without failures"


def exclusions(instance: Question) -> Iterator[str]:
    """Yield one sentence for each requested coupling that excludes others."""
    yield from _beside_direct_links(instance)
    yield from _beside_a_ring(instance)
    yield from _beside_failures(instance)


def _beside_direct_links(instance: Question) -> Iterator[str]:
    if "direct" not in instance.network.fabrics:
        return
    reasons = (
        {"sharing.mode = 'partition'": "those of one network"}
        if instance.sharing.mode == "partition"
        else {}
    )
    reasons |= {"[[site]]": "laid at one place"} if instance.site else {}
    reasons |= _beside_one_network_built_at_once(instance)
    if reasons:
        yield (
            f"network.fabrics: 'direct' does not go with {both(reasons)}: direct links are"
            f" {both(reasons.values())}, needs fabrics without 'direct', or {_without(reasons)}"
        )


def _beside_a_ring(instance: Question) -> Iterator[str]:
    reasons = _beside_one_network_built_at_once(instance)
    if instance.asks("ring") and reasons:
        yield (
            "site: one model that trains at several sites (sharing.mode = 'time') does not go with"
            f" {both(reasons)}: it is {both(reasons.values())}, needs sharing.mode = 'partition',"
            f" where each workload has an island at one site, or {_without(reasons)}"
        )


def _beside_one_network_built_at_once(instance: Question) -> dict[str, str]:
    """Return the requested kinds of growth, uncertainty and failures, each with the words that
    exclude it.
    """
    reasons = {"[[phase]]": "built at once"} if instance.phase else {}
    reasons |= {key: CERTAIN[key] for key in _doubts(instance)}
    return reasons | (
        {"[availability]": UNINTERRUPTED} if instance.availability is not None else {}
    )


def _without(names: Iterable[str]) -> str:
    """Return the alternatives to these features; `[robust]` may become empty."""
    tables = ("[robust]" if name.startswith("robust.") else name for name in names)
    return both(
        dict.fromkeys(
            "sharing.mode = 'time'" if "mode" in table else f"no {table}" for table in tables
        )
    )


def _doubts(instance: Question) -> list[str]:
    """Return the keys of `[robust]` that specify an uncertainty; the table itself if none does."""
    robust = instance.robust
    if robust is None:
        return []
    contents = {
        "robust.prices": robust.prices != Prices(),
        "robust.efficiency": robust.efficiency != (1.0, 1.0),
        "robust.survive": robust.survive,
    }
    return [key for key, content in contents.items() if content] or ["[robust]"]


def _beside_failures(instance: Question) -> Iterator[str]:
    if instance.availability is not None and instance.losses:
        yield (
            "availability: does not go with robust.survive: runs stop at a failure and restart,"
            " while after a loss they go on with what is left, needs no [availability], or no"
            " robust.survive"
        )


def unsearched_runners_up(instance: Question) -> Iterator[str]:
    """Refuse runners-up except for one switched network, an objective that is a sum of the bill,
    and known prices.
    """
    objective, kind = instance.objective, instance.objective.minimize
    contents = {
        "sharing.mode = 'partition'": instance.sharing.mode == "partition",
        "[[site]]": instance.site,
        "[[phase]]": instance.phase,
        "[robust]": instance.robust is not None,
        "'direct' in network.fabrics": "direct" in instance.network.fabrics,
        f"objective.minimize = {kind!r}": kind != objective.billed,
    }
    names = [name for name, content in contents.items() if content]
    if instance.solver.top > 1 and names:
        yield (
            f"solver.top = {instance.solver.top}: runners-up are not searched beside {both(names)},"
            " needs 1"
        )


def partition_disagreements(instance: Question) -> Iterator[str]:
    """Yield sentences about `[sharing]` that is inconsistent with other tables."""
    sharing = instance.sharing
    sized_names = [workload.name for workload in instance.workload if workload.gpus is not None]
    if sharing.mode == "time":
        tables = {
            "most_products": sharing.most_products != MostProducts(),
            "discount": sharing.discount,
        }
        for key, content in {**tables, "core": sharing.core}.items():
            if content:
                yield (
                    f"sharing.{key}: only islands are bought together, needs sharing.mode ="
                    " 'partition'"
                )
        for name in sized_names:
            yield (
                f"workload {name!r}: gpus: every workload has all GPUs in turn, needs sharing.mode"
                " = 'partition'"
            )
        return
    yield from one_number(instance, "islands take as many GPUs as they need of those there are")
    yield from _discounts(instance)
    yield from core_disagreements(instance)


def one_number(instance: Question, reason: str) -> Iterator[str]:
    """Refuse several numbers of GPUs where exactly one is required."""
    if instance.cluster.has_several_counts:
        yield f"cluster.gpus = {numbers(instance.cluster.gpus)}: {reason}, needs one number"


def _discounts(instance: Question) -> Iterator[str]:
    include, usd_by_item = instance.objective.include, list_prices(instance)
    seen: set[tuple[CostKind, str]] = set()
    for discount in instance.sharing.discount:
        kind, item = discount.kind, discount.item
        place = f"sharing.discount: {kind} {item!r}"
        if item not in usd_by_item[kind]:
            yield (
                f"{place}: the instance does not list it, needs one of"
                f" {', '.join(usd_by_item[kind])}"
            )
            continue
        if kind not in include:
            yield f"{place}: objective.include does not count {kind}, needs it there or no discount"
        if (kind, item) in seen:
            yield f"{place}: has two discounts, needs one with all its thresholds"
        seen.add((kind, item))
        prices = [usd_by_item[kind][item], *discount.prices(usd_by_item[kind][item])]
        if any(next_usd > usd for usd, next_usd in pairwise(prices)):
            price_list = ", ".join(f"{price:,.10g}" for price in prices)
            yield (
                f"{place}: prices {price_list} USD, needs prices that do not rise with the quantity"
            )


def core_disagreements(instance: Question) -> Iterator[str]:
    """Yield sentences about `[sharing.core]` that is inconsistent with other tables."""
    network, core = instance.network, instance.sharing.core
    if core is None:
        return
    place = f"sharing.core.switch = {core.switch!r}"
    switch = next((entry for entry in network.switches if entry.name == core.switch), None)
    if switch is None:
        listing = ", ".join(entry.name for entry in network.switches)
        yield f"{place}: the instance does not list it, needs one of {listing}"
        return
    ports = switch.radix if network.switch_cages == "told" else ports_of_modules(switch, 1)
    if len(instance.workload) > ports:
        yield (
            f"{place}: it has {ports} ports for the islands of {len(instance.workload)} workloads, "
            "needs at least one for each, so that any two of them meet on a switch"
        )
    joining = [
        nic
        for nic, planes in product(network.nics, network.nic_planes)
        if planes in nic.ports
        and math.isclose(switch.port_gbit_s * planes, nic.gbit_s, rel_tol=EQUAL)
    ]
    if not joining:
        yield (
            f"{place}: its ports have {switch.port_gbit_s:g} Gbit/s, needs a NIC of that rate in"
            " network.nics, or one whose ports have it on as many planes as network.nic_planes"
            " lists"
        )
        return
    yield from _core_optics(instance, core, switch)
    sharing = max(network.gpus_per_nic) if 1 in network.nics_per_gpu else 1
    nics_gbit_s = min(nic.gbit_s for nic in joining) * min(network.nics_per_gpu) / sharing
    if core.gbit_s_per_gpu > nics_gbit_s:
        yield (
            f"sharing.core.gbit_s_per_gpu = {core.gbit_s_per_gpu:g}: the NICs of a GPU send"
            f" {nics_gbit_s:g} Gbit/s, needs no more than that"
        )


def _core_optics(instance: Question, core: Core, switch: Switch) -> Iterator[str]:
    """Yield complaints about optics that do not reach from NICs over leaves to the core, or differ
    from the core's optic.
    """
    network, rate, place = (
        instance.network,
        switch.port_gbit_s,
        f"sharing.core.switch = {core.switch!r}",
    )
    rate_optics = [optic for optic in network.optics if optic.links_of(rate)]
    core_optics = [optic for optic in rate_optics if _fits_core(instance, optic, switch)]
    ends = (("from NIC to leaf", rate_optics), ("to the core", core_optics))
    for reach_m, (stretch, optics) in zip(network.link_reach_m[::2], ends, strict=True):
        if not any(optic.reach_m >= reach_m for optic in optics):
            yield (
                f"{place}: no optic of {rate:g} Gbit/s reaches {reach_m:g} m, the length of links"
                f" {stretch}, needs one in network.optics or another network.link_reach_m"
            )
    core_names = {optic.name for optic in core_optics if optic.reach_m >= network.link_reach_m[-1]}
    # without any, the complaint above has said that the optics listed are too few
    if core_names and core.optic is not None and core.optic not in core_names:
        yield (
            f"sharing.core.optic = {core.optic!r}: needs a listed optic of {rate:g} Gbit/s that"
            f" reaches {network.link_reach_m[-1]:g} m, or to be left out"
        )


def _fits_core(instance: Question, optic: Optic, switch: Switch) -> bool:
    """Whether a module can be at the core's end of links.

    It has one link, or, where ends have their own modules, few enough that each island has a module
    on every switch.
    """
    network, links = instance.network, optic.links_of(switch.port_gbit_s)
    if network.link_ends == "same" or links < 2:
        return links == 1
    ports = switch.radix if network.switch_cages == "told" else ports_of_modules(switch, links)
    fits = switch.radix % links == 0 and optic.gbit_s <= switch.cage_gbit_s
    return fits and ports // links >= len(instance.workload)


def phase_disagreements(instance: Question) -> Iterator[str]:
    """Yield sentences about phases that are inconsistent with each other or with other tables."""
    phases = instance.phase
    if not phases:
        return
    if len(phases) == 1:
        yield "phase: there is one phase, needs two or more (or no [[phase]] at all)"
    for number, (start, phase) in enumerate(pairwise(phases), start=1):
        if phase.year <= start.year:
            yield (
                f"phase[{number}].year = {phase.year:g}: needs a year after {start.year:g}, that of"
                " the phase before"
            )
        if phase.gpus < start.gpus:
            yield (
                f"phase[{number}].gpus = {phase.gpus}: needs at least {start.gpus}, those of the"
                " phase before (nothing is thrown away)"
            )
    yield from _named_workloads(instance)
    yield from _idle_workloads(instance)
    yield from _not_phased(instance)


def _named_workloads(instance: Question) -> Iterator[str]:
    all_names = [workload.name for workload in instance.workload]
    for number, phase in enumerate(instance.phase):
        names = Counter(row.name for row in phase.workloads)
        for place, row in enumerate(phase.workloads):
            spot = f"phase[{number}].workloads[{place}]"
            if row.name not in all_names:
                yield (
                    f"{spot}: no [[workload]] is named {row.name!r}, needs one of"
                    f" {', '.join(all_names)}"
                )
            elif names[row.name] > 1:
                yield f"{spot}: name {row.name!r} appears twice, needs each workload once"
            else:
                yield from _bound_fault(instance, row, spot)


def _idle_workloads(instance: Question) -> Iterator[str]:
    """Yield workloads with an island of their own that train in no phase."""
    if instance.sharing.mode == "partition" and all(phase.workloads for phase in instance.phase):
        names = {row.name for phase in instance.phase for row in phase.workloads}
        for workload in instance.workload:
            if workload.name not in names:
                yield (
                    f"workload {workload.name!r}: trains in no phase, needs to be in some phase's"
                    " workloads"
                )


def _bound_fault(instance: Question, row: PhaseWorkload, place: str) -> Iterator[str]:
    workload = next(workload for workload in instance.workload if workload.name == row.name)
    try:
        bounded(workload, row.bound)
    except ValueError as error:
        for item in error.errors():  # type: ignore[attr-defined]
            yield f"{place}: {item['ctx']['error']}"


def only_ratio(instance: Question) -> str:
    """Return the value of `network.oversubscription` that allows only the largest ratio.

    Phases do not support lists of ratios, so that only 1 leaves no choice there.
    """
    return "1" if instance.phase else f"[{instance.network.largest_ratio:g}]"


def _not_phased(instance: Question) -> Iterator[str]:
    """Yield sentences about features that phases do not support."""
    last_gpus = instance.phase[-1].gpus
    if instance.cluster.gpus != (last_gpus,):
        gpu_counts = ", ".join(map(str, instance.cluster.gpus))
        yield f"cluster.gpus = {gpu_counts}: needs {last_gpus}, the GPUs of the last phase"
    if instance.network.ratios is not None:
        yield (
            "network.oversubscription: a list of ratios does not go with [[phase]], needs one"
            " largest ratio"
        )
    if instance.limits.capex_usd is not None:
        yield (
            "limits.capex_usd: does not go with [[phase]], needs power_mw or racks, which hold in"
            " each phase"
        )
    if instance.objective.minimize == "power":
        yield "objective.minimize = 'power': phases ask what to buy when, needs 'capex' or 'tco'"


def site_disagreements(instance: Question) -> Iterator[str]:
    """Yield sentences about sites that are inconsistent with each other or with other tables."""
    if not instance.site:
        if instance.wan or instance.cluster.shares is not None:
            key = "wan" if instance.wan else "cluster.shares"
            yield f"{key}: joins or divides among sites, and there are none, needs [[site]] tables"
        return
    if instance.sharing.mode == "partition":
        if instance.wan or instance.cluster.shares is not None:
            key = "wan" if instance.wan else "cluster.shares"
            yield (
                f"{key}: every island stands at one site, needs to be left out with sharing.mode ="
                " 'partition'"
            )
    else:
        yield from _shares(instance)
    yield from _links(instance)
    if len(instance.site) > MAX_SITES:
        yield f"site: {len(instance.site)} sites, needs at most {MAX_SITES}"
    if "gpu" not in instance.objective.include:
        yield (
            "objective.include: lacks 'gpu', whose power the sites have to feed, needs 'gpu' in it"
        )


def _shares(instance: Question) -> Iterator[str]:
    shares = instance.cluster.shares
    if shares is None:
        if any(exclusions(instance)):
            return  # reported above: something that excludes shares has to be removed first
        yield (
            "cluster.shares: is missing, needs the number of equal shares of GPUs and batch that"
            " sites take"
        )
        return
    yield from one_number(instance, "sites share one number of GPUs")
    parts = [("cluster.gpus", gpus) for gpus in instance.cluster.gpus]
    parts += [(f"workload {w.name!r}: global_batch", w.global_batch) for w in instance.workload]
    for key, value in parts:
        if value % shares:
            yield f"cluster.shares = {shares}: does not divide {key} = {value}, needs a divisor"


def _links(instance: Question) -> Iterator[str]:
    names = [site.name for site in instance.site]
    seen: set[frozenset[str]] = set()
    for w, wan in enumerate(instance.wan):
        ends = frozenset(wan.between)
        for name in wan.between:
            if name not in names:
                yield (
                    f"wan[{w}].between: no site is named {name!r}, needs two of {', '.join(names)}"
                )
        if len(ends) < 2:
            yield (
                f"wan[{w}].between: joins {wan.between[0]!r} with itself, needs two different sites"
            )
        if ends in seen:
            yield f"wan[{w}].between: {wan.name} is there already, needs one table for two sites"
        seen.add(ends)
    for former, latter in pairwise(sorted(names)):
        if former == latter:
            yield f"site: name {former!r} appears twice, needs different names"


def robust_disagreements(instance: Question) -> Iterator[str]:
    """Yield sentences about robustness that is inconsistent with other tables."""
    robust = instance.robust
    if robust is None:
        return
    gpu, (low, high) = instance.cluster.gpu, robust.efficiency
    if low > high:
        yield f"robust.efficiency = [{low:g}, {high:g}]: needs the smaller factor first"
    share = gpu.efficiency.largest_share
    if high * share > 1:
        largest_factor = math.floor(1000 / share) / 1000
        need = f"needs at most {largest_factor:g}"
        yield f"robust.efficiency = [{low:g}, {high:g}]: more than the peaks of {gpu.name}, {need}"
    for part in dict.fromkeys(robust.survive):
        if robust.survive.count(part) > 1:
            yield f"robust.survive: {part!r} appears twice, needs each part once"
    yield from idle_factors(instance, robust.survive).values()
    if robust.aim == "regret" and robust.prices == Prices() and low == high:
        yield (
            "robust.aim = 'regret': nothing may turn out otherwise, needs robust.prices or"
            " robust.efficiency"
        )
    if instance.availability is not None and instance.sharing.mode == "time":
        yield from one_number(instance, "a robust network whose runs restart has one size")


def regrets_of_choices(instance: Question) -> Iterator[str]:
    """Refuse open lists in a question of minimum regret."""
    if instance.minimizes_regret:
        yield (
            "robust.aim = 'regret': it is measured from the best plans of one choice, so that"
            " regrets of several do not compare, needs 'worst-case', or one value each in"
            " cluster.gpu, workload.global_batch and workload.options"
        )


def idle_factors(instance: Question, survived: Collection[Lost]) -> dict[str, str]:
    """Return factors on bounds that belong to none of the given losses, by key, each with a
    sentence; a single number belongs to all.
    """
    if instance.robust is None:
        return {}
    factors = {
        part: factor for part, factor in instance.robust.slower.of_part.items() if factor > 1
    }
    if len(factors) == len(Slower.model_fields) and len(set(factors.values())) == 1:
        given = f"robust.slower = {min(factors.values()):g}"
        sentence = f"{given}: allows slower iterations after a loss, needs robust.survive"
        return {} if survived else {"robust.slower": sentence}
    return {
        (
            key := f"robust.slower.{part}"
        ): f"{key} = {factor:g}: belongs to no loss, needs {part!r} in robust.survive"
        for part, factor in factors.items()
        if part not in survived
    }
