"""Consistency rules of `[sharing]`, phases, sites and uncertainties.

`docs/fleets.md` has the table of valid combinations.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from itertools import pairwise

from coopt.instance.couplings import (
    MAX_SITES,
    Lost,
    MostProducts,
    PhaseWorkload,
    Prices,
    Robust,
    Slower,
)
from coopt.instance.existing import further_tables
from coopt.instance.question import Question
from coopt.instance.reserves import Availability
from coopt.instance.rules.cores import border_disagreements, core_disagreements
from coopt.instance.texts import alternatives, both, broken, numbers, that_hold
from coopt.instance.variants import bounded, list_prices


def exclusions(instance: Question) -> Iterator[str]:
    """Yield one sentence for each requested coupling that excludes others."""
    at_once = _beside_one_network_built_at_once(instance)
    own_place = _words(
        (
            instance.sharing.mode == "partition",
            "sharing.mode = 'partition'",
            "one network for all workloads",
        ),
        (instance.site, "[[site]]", "a single site"),
    )
    apart = own_place | at_once
    return broken(
        (
            "direct" in instance.network.fabrics and apart,
            f"network.fabrics: 'direct' is not supported with {both(apart)}, as direct links"
            f" assume {both(apart.values())}, needs fabrics without 'direct', or"
            f" {_without(apart, keeps_channels=False)}",
        ),
        (
            instance.asks("ring") and at_once,
            "site: training one model at several sites (sharing.mode = 'time') is not supported"
            f" with {both(at_once)}, as it assumes {both(at_once.values())}, needs sharing.mode ="
            " 'partition' (each workload at one site), or"
            f" {_without(at_once, keeps_channels='channel' in instance.losses)}",
        ),
        (
            instance.network.max_networks is not None and instance.existing,
            f"network.max_networks = {instance.network.max_networks}: limits new networks only,"
            " needs no [[existing]], or no max_networks",
        ),
        (
            instance.availability is not None and instance.losses,
            "availability: runs restart after a failure, while with robust.survive they continue"
            " on what is left, needs no [availability] or no robust.survive",
        ),
    )


def _beside_one_network_built_at_once(instance: Question) -> dict[str, str]:
    """Return the requested kinds of growth, uncertainty and failures, each with the words that
    exclude it.
    """
    robust = instance.robust or Robust()
    lost = [part for part in robust.survive if part != "channel"]
    doubts = _words(
        (robust.prices != Prices(), "robust.prices", "prices that are known"),
        (
            robust.efficiency != (1.0, 1.0),
            "robust.efficiency",
            "a known efficiency of the GPU",
        ),
        (lost, f"robust.survive = {both(map(repr, lost))}", "equipment that is never lost"),
    )
    return _words(
        (instance.phase, "[[phase]]", "a cluster that never grows"),
        *((True, *doubt) for doubt in doubts.items()),
        (
            instance.robust is not None and not doubts and not instance.losses,
            "[robust]",
            "that nothing is uncertain",
        ),
        (
            instance.availability is not None and not instance.asks("ring"),
            "[availability]",
            "hardware that never fails",
        ),
    )


def _words(*requested: tuple[object, str, str]) -> dict[str, str]:
    """Return what is requested, of (whether it is, its name, the words that exclude it)."""
    return {name: words for is_requested, name, words in requested if is_requested}


def _without(names: Iterable[str], *, keeps_channels: bool) -> str:
    """Return the alternatives to these features; `[robust]` becomes empty unless it keeps the loss
    of channels.
    """
    cures = (
        "sharing.mode = 'time'"
        if "mode" in name
        else f"no {name}"
        if not name.startswith("robust.")
        else "no [robust]"
        if not keeps_channels
        else "robust.survive = 'channel'"
        if name.startswith("robust.survive")
        else f"no {name}"
        for name in names
    )
    return both(dict.fromkeys(cures))


def unsearched_runners_up(instance: Question) -> Iterator[str]:
    """Refuse runners-up except for one switched network, an objective that is a sum of the bill,
    and known prices.
    """
    objective, kind = instance.objective, instance.objective.minimize
    names = [
        *broken(
            (instance.sharing.mode == "partition", "sharing.mode = 'partition'"),
            (instance.site, "[[site]]"),
            (instance.phase, "[[phase]]"),
            (instance.robust is not None, "[robust]"),
            ("direct" in instance.network.fabrics, "'direct' in network.fabrics"),
            (kind != objective.billed, f"objective.minimize = {kind!r}"),
        )
    ]
    return broken(
        (
            instance.solver.top > 1 and names,
            f"solver.top = {instance.solver.top}: runners-up are not supported with {both(names)},"
            " needs 1",
        )
    )


def partition_disagreements(instance: Question) -> Iterator[str]:
    """Yield sentences about `[sharing]` that is inconsistent with other tables."""
    sharing = instance.sharing
    if sharing.mode == "time":
        tables = {
            "most_products": sharing.most_products != MostProducts(),
            "discount": sharing.discount,
            "core": not instance.wan and sharing.core,
        }
        yield from broken(
            *(
                (
                    content,
                    f"sharing.{key}: applies only to islands (workloads with networks of their own)"
                    f"{' and to [[wan]] channels' if key == 'core' else ''}, needs sharing.mode ="
                    f" 'partition'{', or [[wan]] between sites' if key == 'core' else ''}",
                )
                for key, content in tables.items()
            ),
            *(
                (
                    workload.gpus is not None,
                    f"workload {workload.name!r}: gpus = {numbers(workload.gpus or ())}: workloads"
                    " take turns on all GPUs, needs sharing.mode = 'partition'",
                )
                for workload in instance.workload
            ),
        )
        yield from border_disagreements(instance)
        return
    yield from one_number(
        instance, "the workloads under sharing.mode = 'partition' divide a fixed number of GPUs"
    )
    yield from _discounts(instance)
    yield from core_disagreements(instance)


def one_number(instance: Question, reason: str) -> Iterator[str]:
    """Refuse several numbers of GPUs where exactly one is required."""
    need = f"cluster.gpus = {numbers(instance.cluster.gpus)}: {reason}, needs one number"
    return broken((instance.cluster.has_several_counts, need))


def mixed_disagreements(instance: Question) -> Iterator[str]:
    """Yield sentences about several kinds of GPUs that are inconsistent with other tables."""
    if not instance.sharing.mixed_gpus:
        return
    names = [gpu.name for gpu in instance.cluster.generations]
    asked = that_hold(further_tables(instance))
    key = "sharing.mixed_gpus = true"
    sold = {
        hb.name: [name for name in names if not hb.gpus or name in hb.gpus]
        for hb in instance.network.hb_domains
    }
    yield from broken(
        (
            instance.sharing.mode != "partition",
            f"{key}: sharing.mode = {instance.sharing.mode!r}, needs 'partition'",
        ),
        (
            not names,
            f"{key}: cluster.gpu = {instance.cluster.gpu.name!r}, needs a list of several GPUs",
        ),
        (
            asked,
            f"{key}: is not supported together with {both(asked)}, needs a question without"
            f" {'them' if len(asked) > 1 else 'this'}, or mixed_gpus = false",
        ),
        *(
            (
                names and len(gpus) != 1,
                f"{key}: HB domain {hb!r} is sold with {both(gpus) or 'none'} of cluster.gpu,"
                " needs exactly one in its `gpus`",
            )
            for hb, gpus in sold.items()
        ),
    )


def _discounts(instance: Question) -> Iterator[str]:
    include, usd_by_item = instance.objective.include, list_prices(instance)
    products = [(discount.kind, discount.item) for discount in instance.sharing.discount]
    for number, (discount, (kind, item)) in enumerate(
        zip(instance.sharing.discount, products, strict=True)
    ):
        place, usd = f"sharing.discount: {kind} {item!r}", usd_by_item[kind].get(item)
        if usd is None:
            names = alternatives(usd_by_item[kind])
            yield f"{place}: is none of the products that can be bought, needs {names}"
            continue
        prices = [usd, *discount.prices(usd)]
        listed, *steps = (f"{price:,.10g} USD" for price in prices)
        yield from broken(
            (
                kind not in include,
                f"{place}: objective.include leaves out {kind!r}, needs it there or no discount",
            ),
            (
                (kind, item) in products[:number],
                f"{place}: has more than one discount, needs one with all its thresholds",
            ),
            (
                any(next_usd > usd for usd, next_usd in pairwise(prices)),
                f"{place}: {listed} as listed, then {both(steps)}, needs prices that do not rise"
                " with the quantity",
            ),
        )


def phase_disagreements(instance: Question) -> Iterator[str]:
    """Yield sentences about phases that are inconsistent with each other or with other tables."""
    phases = instance.phase
    if not phases:
        return
    yield from broken(
        (
            len(phases) == 1,
            "phase: there is only one phase, needs at least two, or no [[phase]]",
        ),
        *(
            rule
            for number, (start, phase) in enumerate(pairwise(phases), start=1)
            for rule in (
                (
                    phase.year <= start.year,
                    f"phase[{number}].year = {phase.year:g}: needs a year after that of the"
                    f" previous phase, {start.year:g}",
                ),
                (
                    phase.gpus < start.gpus,
                    f"phase[{number}].gpus = {phase.gpus}: needs at least the GPUs of the previous"
                    f" phase, {start.gpus} (phases only add)",
                ),
            )
        ),
    )
    yield from _named_workloads(instance)
    yield from _not_phased(instance)
    for w, workload in enumerate(instance.workload):
        if workload.by is not None:
            yield (
                f"workload[{w}].by = {workload.by}: is one day, but each [[phase]] trains anew,"
                f" needs train_days = {workload.train_days:g} in its place"
            )


def _named_workloads(instance: Question) -> Iterator[str]:
    """Yield workloads of phases that are unknown, twice there or have no bound, and those with an
    island of their own that train in no phase.
    """
    all_names = [workload.name for workload in instance.workload]
    names_by_phase = [Counter(row.name for row in phase.workloads) for phase in instance.phase]
    for number, (phase, names) in enumerate(zip(instance.phase, names_by_phase, strict=True)):
        for place, row in enumerate(phase.workloads):
            spot = f"phase[{number}].workloads[{place}]"
            if row.name not in all_names:
                yield (
                    f"{spot}: no [[workload]] is named {row.name!r}, needs one of"
                    f" {', '.join(all_names)}"
                )
            elif names[row.name] > 1:
                yield f"{spot}: name {row.name!r} appears more than once, needs each workload once"
            else:
                yield from _bound_fault(instance, row, spot)
    islands = instance.sharing.mode == "partition" and all(names_by_phase)
    yield from broken(
        *(
            (
                islands and not any(name in names for names in names_by_phase),
                f"workload {name!r}: trains in no phase, needs a place in some phase's workloads",
            )
            for name in all_names
        )
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
    last_gpus, gpus = instance.phase[-1].gpus, instance.cluster.gpus
    return broken(
        (
            gpus != (last_gpus,),
            f"cluster.gpus = {', '.join(map(str, gpus))}: differs from the GPUs of the last phase,"
            f" needs {last_gpus}",
        ),
        (
            instance.network.ratios is not None,
            "network.oversubscription: a list of ratios is not supported with [[phase]], needs"
            " one number, the largest ratio",
        ),
        (
            instance.network.end_to_end_oversubscription is not None,
            "network.end_to_end_oversubscription: is not supported with [[phase]], needs"
            " network.oversubscription, which bounds each switch",
        ),
        (
            instance.limits.capex_usd is not None,
            "limits.capex_usd: is not supported with [[phase]], needs to be left out",
        ),
        (
            instance.objective.minimize == "power",
            (
                "objective.minimize = 'power': is not supported with [[phase]], needs 'capex' or"
                " 'tco'"
            ),
        ),
    )


def site_disagreements(instance: Question) -> Iterator[str]:
    """Yield sentences about sites that are inconsistent with each other or with other tables."""
    divides, key = instance.cluster.shares is not None, "wan" if instance.wan else "cluster.shares"
    is_several, islands = bool(instance.site), instance.sharing.mode == "partition"
    yield from broken(
        (
            not is_several and (instance.wan or divides),
            f"{key}: applies to several sites, but there are none, needs [[site]] tables",
        ),
        (
            is_several and islands and (instance.wan or divides),
            f"{key}: does not apply, as sharing.mode = 'partition' places each workload at one"
            " site, needs to be left out",
        ),
        (
            len(instance.site) > MAX_SITES,
            f"site: there are {len(instance.site)} sites, needs at most {MAX_SITES}",
        ),
        (
            is_several and "gpu" not in instance.objective.include,
            ("objective.include: the power of a site includes that of its GPUs, needs 'gpu' in it"),
        ),
    )
    if is_several:
        yield from () if islands else _shares(instance)
        yield from _links(instance)
    if instance.availability is not None and instance.asks("ring"):
        yield from _interrupted_together(instance, instance.availability)


def _interrupted_together(instance: Question, availability: Availability) -> Iterator[str]:
    """Yield complaints about failures of one model at several sites that are not counted there."""
    spare_domains, planes = availability.spare_domains or (), instance.network.nic_planes
    yield from broken(
        *(
            (
                asked,
                f"{key}: is not supported where several sites train one model with [availability],"
                f" needs {need}",
            )
            for key, need, asked in (
                (
                    f"availability.spare_domains = {numbers(spare_domains)}",
                    "one number, of domains that stand by at each site",
                    len(spare_domains) > 1,
                ),
                (
                    f"availability.confidence = {availability.confidence}",
                    "to be left out (days are kept on average)",
                    availability.confidence is not None,
                ),
                (
                    "availability.rates.flap",
                    "to be left out",
                    availability.rates.flap.at("high") > 0,
                ),
                (f"network.nic_planes = {numbers(planes)}", "1", max(planes) > 1),
            )
        )
    )


def _shares(instance: Question) -> Iterator[str]:
    shares = instance.cluster.shares
    parts = [("cluster.gpus", gpus) for gpus in instance.cluster.gpus]
    parts += [(f"workload {w.name!r}: global_batch", w.global_batch) for w in instance.workload]
    if shares is None:
        # something that excludes shares is reported elsewhere and has to be removed first
        excluded = any(exclusions(instance))
        yield from broken(
            (
                not excluded,
                "cluster.shares: is missing, needs the number of equal shares into which sites"
                " divide GPUs and batch",
            )
        )
        return
    yield from one_number(instance, "the sites divide a fixed number of GPUs")
    yield from broken(
        *(
            (
                value % shares,
                f"cluster.shares = {shares}: does not divide {key} = {value}, needs a divisor",
            )
            for key, value in parts
        )
    )


def _links(instance: Question) -> Iterator[str]:
    names = [site.name for site in instance.site]
    ends = [frozenset(wan.between) for wan in instance.wan]
    for w, wan in enumerate(instance.wan):
        yield from broken(
            *(
                (
                    name not in names,
                    f"wan[{w}].between: no site is named {name!r}, needs the names of two sites"
                    f" ({', '.join(names)})",
                )
                for name in wan.between
            ),
            (
                len(ends[w]) < 2,
                f"wan[{w}].between: joins {wan.between[0]!r} with itself, needs two different"
                " sites",
            ),
            (
                ends[w] in ends[:w],
                (
                    f"wan[{w}].between: {wan.name} has a table already, needs one table for each"
                    " pair of sites"
                ),
            ),
        )
    yield from broken(
        *(
            (count > 1, f"site: name {name!r} appears more than once, needs different names")
            for name, count in Counter(names).items()
        )
    )


def robust_disagreements(instance: Question) -> Iterator[str]:
    """Yield sentences about robustness that is inconsistent with other tables."""
    robust = instance.robust
    if robust is None:
        return
    gpu, (low, high) = instance.cluster.gpu, robust.efficiency
    interval, share = f"robust.efficiency = [{low:g}, {high:g}]", gpu.efficiency.largest_share
    yield from broken(
        (low > high, f"{interval}: needs the smaller factor first"),
        (
            high * share > 1,
            f"{interval}: the larger factor exceeds the peak rate of {gpu.name}, needs at most"
            f" {math.floor(1000 / share) / 1000:g}",
        ),
        *(
            (
                count > 1,
                f"robust.survive: {part!r} appears more than once, needs each kind of loss once",
            )
            for part, count in Counter(robust.survive).items()
        ),
        (
            "channel" in robust.survive and not (instance.asks("ring") and instance.wan),
            "robust.survive = 'channel': applies to channels between sites that train one model,"
            " needs [[site]] and [[wan]] tables under sharing.mode = 'time'",
        ),
        *((True, sentence) for sentence in idle_factors(instance, robust.survive).values()),
        (
            robust.aim == "regret" and robust.prices == Prices() and low == high,
            "robust.aim = 'regret': nothing is uncertain, needs robust.prices or robust.efficiency",
        ),
    )
    if instance.availability is not None and instance.sharing.mode == "time":
        yield from one_number(
            instance, "[robust] with [availability] allows only one number of GPUs"
        )


def regrets_of_choices(instance: Question) -> Iterator[str]:
    """Refuse open lists in a question of minimum regret."""
    return broken(
        (
            instance.minimizes_regret,
            "robust.aim = 'regret': a regret is measured within one choice of GPU, batch and"
            " options, needs 'worst-case', or single values in cluster.gpu, workload.global_batch"
            " and workload.options",
        )
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
    # a table that was written before channels had a factor may name all others
    all_parts = set(Slower.model_fields) - ({"channel"} - factors.keys() - set(survived))
    if factors.keys() == all_parts and len(set(factors.values())) == 1:
        given = f"robust.slower = {min(factors.values()):g}"
        sentence = f"{given}: allows slower iterations after a loss, needs robust.survive"
        return {} if survived else {"robust.slower": sentence}
    return {
        (
            key := f"robust.slower.{part}"
        ): f"{key} = {factor:g}: applies only after the loss of a {part}, needs {part!r} in"
        " robust.survive"
        for part, factor in factors.items()
        if part not in survived
    }
