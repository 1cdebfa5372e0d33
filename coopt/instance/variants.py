"""Questions that follow from an instance: of a phase, of a site, at other prices, after a loss, at
another pace.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from coopt.instance.couplings import BOUND_KEYS, Discount, Limits, Phase, PhaseWorkload, part_of
from coopt.instance.question import CostKind, Question
from coopt.instance.workload import BOUNDS, LONGEST_S, Workload

Q = TypeVar("Q", bound=Question)
Answer = TypeVar("Answer")


def of_phase(instance: Q, number: int) -> Q:
    """The question of one phase alone, at the prices of the instance: its GPUs, its workloads with
    their bounds.
    """
    phase = instance.phase[number]
    cluster = instance.cluster.model_copy(update={"gpus": (phase.gpus,)})
    return instance.model_copy(
        update={"cluster": cluster, "workload": workloads_of(instance, phase), "phase": ()}
    )


def phases_of(instance: Q) -> tuple[Q, ...]:
    """The question of each phase alone; the question itself where nothing grows."""
    return tuple(of_phase(instance, number) for number in range(len(instance.phase))) or (instance,)


def workloads_of(instance: Q, phase: Phase) -> tuple[Workload, ...]:
    """The workloads of a phase, in its order, with the bounds they have there."""
    if not phase.workloads:
        return instance.workload
    by_name = {workload.name: workload for workload in instance.workload}
    return tuple(bounded(by_name[row.name], row.bound) for row in phase.workloads)


def workloads_in(instance: Q, year: float | None) -> tuple[Workload, ...]:
    """The workloads as the phase that begins in a year bounds them; those of the instance where
    nothing grows.
    """
    return next(
        (workloads_of(instance, phase) for phase in instance.phase if phase.year == year),
        instance.workload,
    )


def trained_on(
    instance: Q, year: float | None, names: Collection[str], gpus: int
) -> tuple[Workload, ...]:
    """The workloads of a part with so many GPUs, as the phase of that year asks for them there.

    An island has those of its `names`; where sites share GPUs and batches, a part trains its share
    of each batch.
    """
    workloads, all_shares = workloads_in(instance, year), instance.cluster.shares
    if instance.sharing.mode == "partition":
        workloads = tuple(workload for workload in workloads if workload.name in names)
    if all_shares is None:
        return workloads
    return tuple(
        part_of(workload, instance.cluster.shares_of(gpus), all_shares) for workload in workloads
    )


def bounded(workload: Workload, bound: dict[str, float]) -> Workload:
    """A workload with another bound, checked anew."""
    if not bound:
        return workload
    # checked, since a bound on days may contradict the tokens; a table that is made anew has no
    # margin
    moved = type(workload).model_validate(dict(workload) | dict.fromkeys(BOUND_KEYS) | bound)
    return moved.with_margin(workload.time_margin)


@dataclass(frozen=True, kw_only=True)
class AskedBound:
    """A bound that an instance gives: its number, by its key, the workload with it, and the phases
    it holds in.
    """

    key: str
    number: float
    workload: Workload
    phases: frozenset[int]


def asked_bounds(instance: Question) -> Iterator[AskedBound]:
    """The bounds of workloads that hold in some phase, then those that phases give in place of
    them.
    """
    for w, workload in enumerate(instance.workload):
        phases = frozenset(
            t for t, phase in enumerate(instance.phase) if _keeps_own_bound(phase, workload)
        )
        if workload.bounded and (phases or not instance.phase):
            yield _asked_bound(f"workload[{w}]", workload, workload, phases or frozenset({0}))
    for t, phase in enumerate(instance.phase):
        pairs = zip(phase.workloads, workloads_of(instance, phase), strict=bool(phase.workloads))
        for place, (row, workload) in enumerate(pairs):
            if row.bound:
                yield _asked_bound(f"phase[{t}].workloads[{place}]", row, workload, frozenset({t}))


def _keeps_own_bound(phase: Phase, workload: Workload) -> bool:
    """Whether a workload trains in a phase by the bound of its own table."""
    rows = [row for row in phase.workloads if row.name == workload.name]
    return not phase.workloads or any(not row.bound for row in rows)


def _asked_bound(
    row: str, table: Workload | PhaseWorkload, workload: Workload, phases: frozenset[int]
) -> AskedBound:
    key = next(key for key in BOUNDS if getattr(table, key) is not None)
    return AskedBound(
        key=f"{row}.{key}", number=getattr(table, key), workload=workload, phases=phases
    )


def with_value(instance: Q, key: str, value: Any) -> Q:
    """The instance with another value at a key such as `phase[1].workloads[0].train_days`."""
    path = [int(part) if part.isdigit() else part for part in re.findall(r"[^.\[\]]+", key)]
    result: Q = _replaced(instance, path, value)
    return result


def _replaced(table: Any, path: list[int | str], value: Any) -> Any:
    """A table, or a list of tables, with another value at a path below it."""
    if not path:
        return value
    key, *keys_below = path
    if isinstance(key, int):
        return (*table[:key], _replaced(table[key], keys_below, value), *table[key + 1 :])
    return table.model_copy(update={key: _replaced(getattr(table, key), keys_below, value)})


def with_gpu_cap(instance: Q, number: int, gpus: int) -> Q:
    """The instance with other GPUs in a phase; those of earlier ones are no more, and of later ones
    no fewer.
    """
    caps = list(instance.gpu_caps.values())
    counts = [
        gpus if n == number else min(cap, gpus) if n < number else max(cap, gpus)
        for n, cap in enumerate(caps)
    ]
    cluster = instance.cluster.model_copy(update={"gpus": (counts[-1],)})
    phases = zip(instance.phase, counts, strict=bool(instance.phase))
    grown = tuple(phase.model_copy(update={"gpus": count}) for phase, count in phases)
    return instance.model_copy(update={"cluster": cluster, "phase": grown})


def local_question(instance: Q, shares: int) -> Q:
    """The question of a site that takes some of the shares; the time bound is that of the whole."""
    cluster, all_shares = instance.cluster, instance.cluster.shares
    assert all_shares is not None, "only what trains at several sites is divided into shares"
    changes = {
        "cluster": cluster.model_copy(
            update={
                "gpus": tuple(gpus * shares // all_shares for gpus in cluster.gpus),
                "shares": None,
            }
        ),
        "workload": tuple(part_of(workload, shares, all_shares) for workload in instance.workload),
        "limits": Limits(),  # they hold for all sites together
    }
    return instance.model_copy(update={"site": (), "wan": ()} | changes)


def years_of(instance: Q, number: int) -> float:
    """How long the network of a phase runs: until the next one, the last one or the only one for
    `objective.years`.
    """
    if number + 1 >= len(instance.phase):
        return instance.objective.years
    return instance.phase[number + 1].year - instance.phase[number].year


def at_prices(instance: Q, factors: dict[str, float]) -> Q:
    """The instance without intervals, with all prices, by the unit and by volume, multiplied by the
    factor of their kind.
    """
    network, gpu = instance.network, instance.cluster.gpu
    products = {
        "hb_domains": tuple(
            hb.model_copy(update={"usd_per_gpu": hb.usd_per_gpu * factors["hb"]})
            for hb in network.hb_domains
        ),
        "nics": tuple(
            nic.model_copy(update={"usd": nic.usd * factors["nic"]}) for nic in network.nics
        ),
        "switches": tuple(
            entry.model_copy(update={"usd": entry.usd * factors["switch"]})
            for entry in network.switches
        ),
        "optics": tuple(
            entry.model_copy(update={"usd": entry.usd * factors["optics"]})
            for entry in network.optics
        ),
    }
    changes = {
        "network": network.model_copy(update=products),
        "cluster": instance.cluster.model_copy(
            update={"gpu": gpu.model_copy(update={"usd": gpu.usd * factors["gpu"]})}
        ),
        "sharing": instance.sharing.model_copy(
            update={"discount": tuple(_discounts_at(instance, factors))}
        ),
    }
    return instance.model_copy(update=changes | {"robust": None})


def _discounts_at(instance: Q, factors: dict[str, float]) -> Iterator[Discount]:
    """The volume prices in USD, times the factor of their kind."""
    usd_by_item = list_prices(instance)
    for discount in instance.sharing.discount:
        usd = (
            usd * factors[discount.kind]
            for usd in discount.prices(usd_by_item[discount.kind][discount.item])
        )
        yield discount.model_copy(update={"usd": tuple(usd), "off": None})


def as_billed(instance: Q) -> Q:
    """The instance at the prices of a plan's bill: the worst ones where these are what the plan
    aims at.
    """
    return at_prices(instance, instance.worst_prices) if instance.worst_prices else instance


def as_built(instance: Q) -> Q:
    """The instance of what a plan builds: at the prices of its bill and the least efficiency, which
    has to do.
    """
    return at_efficiency(
        as_billed(instance), instance.efficiencies[0]
    )  # which what is billed no longer tells


def rows_by_name(instance: Question) -> dict[str, tuple[str, ...]]:
    """What people call the rows of tables whose keys count them: sites and workloads, channels by
    their ends.
    """
    names = {
        "workload": tuple(row.name for row in instance.workload),
        "site": tuple(row.name for row in instance.site),
        "wan": tuple(" - ".join(row.between) for row in instance.wan),
        "phase": tuple(f"{row.year:g}" for row in instance.phase),
    }
    names_by_phase = {
        f"phase[{t}].workloads": tuple(w.name for w in row.workloads)
        for t, row in enumerate(instance.phase)
    }
    return {table: rows for table, rows in {**names, **names_by_phase}.items() if rows}


def at_efficiency(instance: Q, factor: float) -> Q:
    """The instance of one network whose GPU reaches this factor times what it is said to reach."""
    gpu = instance.cluster.gpu
    efficiency = gpu.efficiency.times(factor)
    cluster = instance.cluster.model_copy(
        update={"gpu": gpu.model_copy(update={"efficiency": efficiency})}
    )
    return instance.model_copy(update={"cluster": cluster, "robust": None})


def at_least_efficiency(instance: Q) -> Q:
    """The instance of one network at the least efficiency that may turn out, which has to do."""
    return at_efficiency(instance, instance.efficiencies[0])


def at_best_efficiency(instance: Q) -> Q:
    """The instance of one network at the best efficiency that may turn out, from which regret is
    measured.
    """
    return at_efficiency(instance, instance.efficiencies[1])


def after_a_loss(instance: Q, slower: float) -> Q:
    """The instance of one network whose bounds are this much longer.

    Workloads then train on any number of GPUs: their sizes are those of islands, and without a
    domain fewer are left.
    """
    longer = (within(workload, workload.bound_s * slower) for workload in instance.workload)
    workloads = tuple(workload.model_copy(update={"gpus": None}) for workload in longer)
    return instance.model_copy(update={"workload": workloads, "robust": None})


def within(workload: Workload, bound_s: float) -> Workload:
    """The workload with another bound, of which nothing is kept free."""
    other_bounds = dict.fromkeys(("min_tokens_per_s", "train_days", "train_tokens"))
    return workload.model_copy(update={"max_iteration_time_s": bound_s} | other_bounds).with_margin(
        0.0
    )


def leaves_tp_open(instance: Question) -> bool:
    """Whether TP groups of some workload extend over several HB domains only where nothing inside
    them will do.
    """
    return any(workload.allow_tp_across is None for workload in instance.workload)


def with_tp(instance: Q, *, across: bool) -> Q:
    """The instance that says whether TP groups may extend over several HB domains, where workloads
    left it open.
    """
    if not leaves_tp_open(instance):
        return instance
    workloads = (
        (
            workload.model_copy(update={"allow_tp_across": across})
            if workload.allow_tp_across is None
            else workload
        )
        for workload in instance.workload
    )
    return instance.model_copy(update={"workload": tuple(workloads)})


def inside_first(
    instance: Q, answer: Callable[[Q], Answer], enough: Callable[[Answer], bool]
) -> tuple[Answer, bool]:
    """An answer with TP groups inside HB domains where that is left open, with groups across if it
    is not enough.

    Returns
    -------
    found, across
        The answer, and whether groups may extend over several domains in it since inside nothing
        was enough.
    """
    found = answer(with_tp(instance, across=False))
    if not leaves_tp_open(instance) or enough(found):
        return found, False
    return answer(with_tp(instance, across=True)), True


def without_margin(instance: Q) -> Q:
    """The instance of which nothing is kept free."""
    gpu = instance.cluster.gpu.with_memory_margin(0.0)
    changes = {
        "margin": None,
        "cluster": instance.cluster.model_copy(update={"gpu": gpu}),
        "workload": tuple(workload.with_margin(0.0) for workload in instance.workload),
        "network": instance.network.model_copy(
            update={
                "switches": tuple(
                    switch.with_port_margin(0.0) for switch in instance.network.switches
                )
            }
        ),
    }
    return instance.model_copy(update=changes)


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
    """The instance with every bound `pace` times as long, as seconds an iteration and at most
    `LONGEST_S`.

    Days stay days where training is interrupted, as interruptions count towards them alone. Where
    batches are open, days and tokens per second stay what they are, as the seconds of an iteration
    differ with the batch.

    Parameters
    ----------
    over
        Names of the workloads whose bounds move, those they have in phases included; None for all.
    """
    other_bounds = {"min_tokens_per_s": None, "train_days": None, "train_tokens": None}

    def moved(row: Any, bound_s: float) -> Any:
        if over is not None and row.name not in over:
            return row
        factor = min(pace, LONGEST_S / bound_s)
        if (instance.availability is not None or instance.open_keys) and row.train_days is not None:
            return row.model_copy(update={"train_days": row.train_days * factor})
        if instance.open_keys and row.min_tokens_per_s is not None:
            return row.model_copy(update={"min_tokens_per_s": row.min_tokens_per_s / factor})
        return row.model_copy(
            update={**other_bounds, "max_iteration_time_s": min(bound_s * pace, LONGEST_S)}
        )

    workloads = tuple(moved(workload, workload.asked_s) for workload in instance.workload)
    phases = tuple(
        phase.model_copy(
            update={
                "workloads": tuple(
                    moved(row, workload.asked_s) if row.bound else row
                    for row, workload in zip(
                        phase.workloads, workloads_of(instance, phase), strict=bool(phase.workloads)
                    )
                )
            }
        )
        for phase in instance.phase
    )
    return instance.model_copy(update={"workload": workloads, "phase": phases})
