"""Questions that follow from an instance: of a phase, of a site, at other prices, after a loss, at another pace."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from coopt.instance.couplings import BOUND_KEYS, Discount, Limits, Phase, PhaseWorkload, part_of
from coopt.instance.question import CostKind, Question
from coopt.instance.workload import BOUNDS, LONGEST_S, Workload

Q = TypeVar("Q", bound=Question)
Found = TypeVar("Found")


def of_phase(instance: Q, number: int) -> Q:
    """The question of one phase alone, at the prices of the instance: its GPUs, its workloads with their bounds."""
    phase = instance.phase[number]
    cluster = instance.cluster.model_copy(update={"gpus": (phase.gpus,)})
    return instance.model_copy(update={"cluster": cluster, "workload": workloads_of(instance, phase), "phase": ()})


def phases_of(instance: Q) -> tuple[Q, ...]:
    """The question of each phase alone; the question itself where nothing grows."""
    return tuple(of_phase(instance, number) for number in range(len(instance.phase))) or (instance,)


def workloads_of(instance: Q, phase: Phase) -> tuple[Workload, ...]:
    """The workloads of a phase, in its order, with the bounds they have there."""
    if not phase.workloads:
        return instance.workload
    known = {workload.name: workload for workload in instance.workload}
    return tuple(bounded(known[chosen.name], chosen.bound) for chosen in phase.workloads)


def workloads_in(instance: Q, year: float | None) -> tuple[Workload, ...]:
    """The workloads as the phase that begins in a year bounds them; those of the instance where nothing grows."""
    return next((workloads_of(instance, phase) for phase in instance.phase if phase.year == year), instance.workload)


def trained_on(instance: Q, year: float | None, names: Collection[str], gpus: int) -> tuple[Workload, ...]:
    """The workloads of a part with so many GPUs, as the phase of that year asks for them there.

    An island has those of its `names`; where sites share GPUs and batches, a part trains its share of each batch.
    """
    workloads, whole = workloads_in(instance, year), instance.cluster.shares
    if instance.sharing.mode == "partition":
        workloads = tuple(workload for workload in workloads if workload.name in names)
    if whole is None:
        return workloads
    return tuple(part_of(workload, instance.cluster.shares_of(gpus), whole) for workload in workloads)


def bounded(workload: Workload, bound: dict[str, float]) -> Workload:
    """A workload with another bound, checked anew."""
    if not bound:
        return workload
    moved = type(workload).model_validate(dict(workload) | dict.fromkeys(BOUND_KEYS) | bound)
    return moved.with_margin(workload.time_margin)


@dataclass(frozen=True, kw_only=True)
class AskedBound:
    """A bound that an instance gives: its number, by its key, the workload with it, and the phases it holds in."""

    key: str
    number: float
    workload: Workload
    phases: frozenset[int]


def asked_bounds(instance: Question) -> Iterator[AskedBound]:
    """The bounds of workloads that hold in some phase, then those that phases give in place of them."""
    for w, workload in enumerate(instance.workload):
        own = frozenset(t for t, phase in enumerate(instance.phase) if _keeps_own_bound(phase, workload))
        if workload.bounded and (own or not instance.phase):
            yield _asked_bound(f"workload[{w}]", workload, workload, own or frozenset({0}))
    for t, phase in enumerate(instance.phase):
        pairs = zip(phase.workloads, workloads_of(instance, phase), strict=bool(phase.workloads))
        for place, (chosen, workload) in enumerate(pairs):
            if chosen.bound:
                yield _asked_bound(f"phase[{t}].workloads[{place}]", chosen, workload, frozenset({t}))


def _keeps_own_bound(phase: Phase, workload: Workload) -> bool:
    """Whether a workload trains in a phase by the bound of its own table."""
    named = [chosen for chosen in phase.workloads if chosen.name == workload.name]
    return not phase.workloads or any(not chosen.bound for chosen in named)


def _asked_bound(row: str, table: Workload | PhaseWorkload, workload: Workload, phases: frozenset[int]) -> AskedBound:
    key = next(key for key in BOUNDS if getattr(table, key) is not None)
    return AskedBound(key=f"{row}.{key}", number=getattr(table, key), workload=workload, phases=phases)


def with_value(instance: Q, key: str, value: Any) -> Q:
    """The instance with another value at a key such as `phase[1].workloads[0].train_days`."""
    path = [int(part) if part.isdigit() else part for part in re.findall(r"[^.\[\]]+", key)]
    changed: Q = _replaced(instance, path, value)
    return changed


def _replaced(table: Any, path: list[int | str], value: Any) -> Any:
    """A table, or a list of tables, with another value at a path below it."""
    if not path:
        return value
    first, *below = path
    if isinstance(first, int):
        return (*table[:first], _replaced(table[first], below, value), *table[first + 1 :])
    return table.model_copy(update={first: _replaced(getattr(table, first), below, value)})


def with_gpu_cap(instance: Q, number: int, gpus: int) -> Q:
    """The instance with other GPUs in a phase; those of earlier ones are no more, and of later ones no fewer."""
    caps = list(instance.gpu_caps.values())
    counts = [gpus if n == number else min(cap, gpus) if n < number else max(cap, gpus) for n, cap in enumerate(caps)]
    cluster = instance.cluster.model_copy(update={"gpus": (counts[-1],)})
    phases = zip(instance.phase, counts, strict=bool(instance.phase))
    grown = tuple(phase.model_copy(update={"gpus": count}) for phase, count in phases)
    return instance.model_copy(update={"cluster": cluster, "phase": grown})


def local_question(instance: Q, shares: int) -> Q:
    """The question of a site that takes some of the shares; the time bound is that of the whole."""
    cluster, whole = instance.cluster, instance.cluster.shares
    assert whole is not None, "only what trains at several sites is divided into shares"
    alone = {
        "cluster": cluster.model_copy(
            update={"gpus": tuple(gpus * shares // whole for gpus in cluster.gpus), "shares": None}
        ),
        "workload": tuple(part_of(workload, shares, whole) for workload in instance.workload),
        "limits": Limits(),
    }
    return instance.model_copy(update={"site": (), "wan": ()} | alone)


def years_of(instance: Q, number: int) -> float:
    """How long the network of a phase runs: until the next one, the last one or the only one for `objective.years`."""
    if number + 1 >= len(instance.phase):
        return instance.objective.years
    return instance.phase[number + 1].year - instance.phase[number].year


def at_prices(instance: Q, factors: dict[str, float]) -> Q:
    """The instance without intervals, its prices, by the unit and by volume, these factors times those it gives."""
    network, gpu = instance.network, instance.cluster.gpu
    new = {
        "hb_domains": tuple(
            hb.model_copy(update={"usd_per_gpu": hb.usd_per_gpu * factors["hb"]}) for hb in network.hb_domains
        ),
        "nics": tuple(nic.model_copy(update={"usd": nic.usd * factors["nic"]}) for nic in network.nics),
        "switches": tuple(one.model_copy(update={"usd": one.usd * factors["switch"]}) for one in network.switches),
        "optics": tuple(one.model_copy(update={"usd": one.usd * factors["optics"]}) for one in network.optics),
    }
    priced = {
        "network": network.model_copy(update=new),
        "cluster": instance.cluster.model_copy(
            update={"gpu": gpu.model_copy(update={"usd": gpu.usd * factors["gpu"]})}
        ),
        "sharing": instance.sharing.model_copy(update={"discount": tuple(_discounts_at(instance, factors))}),
    }
    return instance.model_copy(update=priced | {"robust": None})


def _discounts_at(instance: Q, factors: dict[str, float]) -> Iterator[Discount]:
    """The volume prices in USD, times the factor of their kind."""
    listed = list_prices(instance)
    for discount in instance.sharing.discount:
        usd = (usd * factors[discount.kind] for usd in discount.prices(listed[discount.kind][discount.item]))
        yield discount.model_copy(update={"usd": tuple(usd), "off": None})


def as_billed(instance: Q) -> Q:
    """The instance at the prices of a plan's bill: the worst ones where these are what the plan aims at."""
    return at_prices(instance, instance.worst_prices) if instance.worst_prices else instance


def as_built(instance: Q) -> Q:
    """The instance of what a plan builds: at the prices of its bill and the least efficiency, which has to do."""
    return at_efficiency(as_billed(instance), instance.efficiencies[0])  # which what is billed no longer tells


def rows_by_name(instance: Question) -> dict[str, tuple[str, ...]]:
    """What people call the rows of tables whose keys count them: sites and workloads, channels by their ends."""
    names = {
        "workload": tuple(one.name for one in instance.workload),
        "site": tuple(one.name for one in instance.site),
        "wan": tuple(" - ".join(one.between) for one in instance.wan),
        "phase": tuple(f"{one.year:g}" for one in instance.phase),
    }
    chosen = {f"phase[{t}].workloads": tuple(w.name for w in one.workloads) for t, one in enumerate(instance.phase)}
    return {table: rows for table, rows in {**names, **chosen}.items() if rows}


def at_efficiency(instance: Q, factor: float) -> Q:
    """The instance of one network whose GPU reaches this factor times what it is said to reach."""
    gpu = instance.cluster.gpu
    efficiency = gpu.efficiency.times(factor)
    cluster = instance.cluster.model_copy(update={"gpu": gpu.model_copy(update={"efficiency": efficiency})})
    return instance.model_copy(update={"cluster": cluster, "robust": None})


def at_least_efficiency(instance: Q) -> Q:
    """The instance of one network at the least efficiency that may turn out, which has to do."""
    return at_efficiency(instance, instance.efficiencies[0])


def at_best_efficiency(instance: Q) -> Q:
    """The instance of one network at the best efficiency that may turn out, from which regret is measured."""
    return at_efficiency(instance, instance.efficiencies[1])


def after_a_loss(instance: Q, slower: float) -> Q:
    """The instance of one network whose bounds are this much longer.

    Workloads then train on any number of GPUs: their sizes are those of islands, and without a domain fewer are left.
    """
    longer = (within(workload, workload.bound_s * slower) for workload in instance.workload)
    workloads = tuple(workload.model_copy(update={"gpus": None}) for workload in longer)
    return instance.model_copy(update={"workload": workloads, "robust": None})


def within(workload: Workload, bound_s: float) -> Workload:
    """The workload with another bound, of which nothing is kept free."""
    others = dict.fromkeys(("min_tokens_per_s", "train_days", "train_tokens"))
    return workload.model_copy(update={"max_iteration_time_s": bound_s} | others).with_margin(0.0)


def leaves_tp_open(instance: Question) -> bool:
    """Whether TP groups of some workload extend over several HB domains only where nothing inside them will do."""
    return any(workload.allow_tp_across is None for workload in instance.workload)


def with_tp(instance: Q, *, across: bool) -> Q:
    """The instance that says whether TP groups may extend over several HB domains, where workloads left it open."""
    if not leaves_tp_open(instance):
        return instance
    settled = (
        one.model_copy(update={"allow_tp_across": across}) if one.allow_tp_across is None else one
        for one in instance.workload
    )
    return instance.model_copy(update={"workload": tuple(settled)})


def inside_first(instance: Q, answer: Callable[[Q], Found], enough: Callable[[Found], bool]) -> tuple[Found, bool]:
    """An answer with TP groups inside HB domains where that is left open, with groups across if it is not enough.

    Returns
    -------
    found, across
        The answer, and whether groups may extend over several domains in it since inside nothing was enough.
    """
    found = answer(with_tp(instance, across=False))
    if not leaves_tp_open(instance) or enough(found):
        return found, False
    return answer(with_tp(instance, across=True)), True


def without_margin(instance: Q) -> Q:
    """The instance of which nothing is kept free."""
    gpu = instance.cluster.gpu.with_memory_margin(0.0)
    changed = {
        "margin": None,
        "cluster": instance.cluster.model_copy(update={"gpu": gpu}),
        "workload": tuple(workload.with_margin(0.0) for workload in instance.workload),
        "network": instance.network.model_copy(
            update={"switches": tuple(switch.with_port_margin(0.0) for switch in instance.network.switches)}
        ),
    }
    return instance.model_copy(update=changed)


def list_prices(instance: Question) -> dict[CostKind, dict[str, float]]:
    """The price of a unit of every product an instance lists (USD), by kind and name."""
    network, gpu = instance.network, instance.cluster.gpu
    return {
        "hb": {hb.name: hb.usd_per_gpu for hb in network.hb_domains},
        "nic": {nic.name: nic.usd for nic in network.nics},
        "switch": {switch.name: switch.usd for switch in network.switches},
        "optics": {optic.name: optic.usd for optic in network.optics},
        "gpu": {gpu.name: gpu.usd},
    }


def at_pace(instance: Q, pace: float, over: Collection[str] | None = None) -> Q:
    """The instance with every bound `pace` times as long, as seconds an iteration and at most `LONGEST_S`.

    Days stay days where training is interrupted, as interruptions count towards them alone. Where batches are open,
    days and tokens per second stay what they are, as the seconds of an iteration differ with the batch.

    Parameters
    ----------
    over
        Names of the workloads whose bounds move, those they have in phases included; None for all.
    """
    none = {"min_tokens_per_s": None, "train_days": None, "train_tokens": None}

    def moved(one: Any, bound_s: float) -> Any:
        if over is not None and one.name not in over:
            return one
        slower = min(pace, LONGEST_S / bound_s)
        if (instance.availability is not None or instance.problem == "choice") and one.train_days is not None:
            return one.model_copy(update={"train_days": one.train_days * slower})
        if instance.problem == "choice" and one.min_tokens_per_s is not None:
            return one.model_copy(update={"min_tokens_per_s": one.min_tokens_per_s / slower})
        return one.model_copy(update={**none, "max_iteration_time_s": min(bound_s * pace, LONGEST_S)})

    workloads = tuple(moved(workload, workload.asked_s) for workload in instance.workload)
    phases = tuple(
        phase.model_copy(
            update={
                "workloads": tuple(
                    moved(chosen, workload.asked_s) if chosen.bound else chosen
                    for chosen, workload in zip(
                        phase.workloads, workloads_of(instance, phase), strict=bool(phase.workloads)
                    )
                )
            }
        )
        for phase in instance.phase
    )
    return instance.model_copy(update={"workload": workloads, "phase": phases})
