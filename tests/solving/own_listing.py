"""Timed objectives under limits that bind, run by hand: `python -m tests.solving.own_listing COUNT [SEED]`.

The least time, price of a token or carbon of one network and workload, where mappings and placements are listed here:
every product of degrees, every way to put each degree into and across domains, whatever the listings of planner and
verifier hold. The verifier's rules say of each whether it is allowed, its scalar model what it takes, and its chains
which networks there are; nothing is left out as dominated.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st

from coopt.instance.couplings import Limits
from coopt.instance.schema import NO_LIMIT, Instance
from coopt.instance.workload import Workload
from coopt.plan.parts import MappingChoice
from coopt.plan.schema import WorkloadPlan
from coopt.solving.answer import solve
from coopt.verifier.audit import verify
from coopt.verifier.parts.bills import BillTotal, bill, bill_total, within_limits
from coopt.verifier.parts.enumeration import design_chains
from coopt.verifier.parts.space import DesignFamily
from coopt.verifier.parts.spans import Reach, speeds_of
from coopt.verifier.training.iteration import iteration_s
from coopt.verifier.training.mappings import mapping_fault, scalar_mapping
from coopt.verifier.training.memory import MemoryNeeds
from coopt.verifier.training.placing import Placement, placement_of
from coopt.verifier.training.work import Clock, Work
from tests.solving.oracle import instances

KINDS = {"time": "capex", "usd_per_token": "tco", "carbon": "power"}
"""Timed objectives, and the sums of the bill that they weigh."""
HOUR_S, YEAR_H = 3600.0, 8760.0


class Offer(NamedTuple):
    """A network with its bill and the least time on it, whatever the bounds and limits."""

    family: DesignFamily
    sums: BillTotal
    time_s: float


def all_mappings(workload: Workload, gpus: int) -> Iterator[MappingChoice]:
    """Every mapping whose degrees multiply out, of which the rules say that it is allowed."""
    limits, experts = workload.mapping, max(1, workload.model.experts)
    for tp, pp, cp in product(range(1, gpus + 1), repeat=3):
        if gpus % (tp * pp * cp):
            continue
        dp = gpus // (tp * pp * cp)
        for ep, micro_batch, interleave, recompute, sequence_parallel, zero, outermost in product(
            range(1, experts + 1),
            limits.micro_batch,
            limits.interleave or range(1, workload.model.layers // pp + 1),
            limits.recompute,
            (False, True),
            range(4),
            ("pp", "dp"),
        ):
            mapping = MappingChoice.model_construct(
                tp=tp, pp=pp, dp=dp, cp=cp, ep=ep, micro_batch=micro_batch, interleave=interleave,
                recompute=recompute, sequence_parallel=sequence_parallel, zero=zero, offload_percent=0,
                outermost=outermost,
            )  # fmt: skip
            if mapping_fault(workload, gpus, mapping) == "":
                yield mapping


def factors(number: int) -> list[tuple[int, int]]:
    """Every way to put a degree into and across domains."""
    return [(inside, number // inside) for inside in range(1, number + 1) if number % inside == 0]


def all_placements(workload: Workload, mapping: MappingChoice, active: int) -> Iterator[Placement]:
    """Every placement on domains of so many GPUs."""
    names = ("tp", "pp", "dp", "cp", "ep")
    for ends in product(*(factors(getattr(mapping, name)) for name in names)):
        claim = WorkloadPlan.model_construct(placement=dict(zip(names, ends, strict=True)), mapping=mapping)
        place = placement_of(workload, claim, active)
        if place is not None:
            yield place


def placed_works(instance: Instance, gpus: int, active: int) -> list[tuple[Work, Placement]]:
    """Every mapping that fits into memory, with every placement."""
    (workload,), usable_bytes = instance.workload, instance.cluster.gpu.usable_bytes
    clock, needs = Clock(workload, instance.cluster.gpu), MemoryNeeds(workload)
    return [
        (clock.work(scalar_mapping(mapping)), place)
        for mapping in all_mappings(workload, gpus)
        if needs.of(scalar_mapping(mapping)) <= usable_bytes
        for place in all_placements(workload, mapping, active)
    ]


def least_s(works: list[tuple[Work, Placement]], family: DesignFamily, reach: Reach) -> float:
    speeds: dict[tuple[Placement, bool], Any] = {}
    least = math.inf
    for work, place in works:
        if family.holds(place.pp_in) and (place.outermost == "pp" or family.charges_loads):
            key = place, work.split.interleave > 1
            if key not in speeds:
                speeds[key] = speeds_of(family, reach, place, looped=key[1])
            least = min(least, iteration_s(work, place, speeds[key]))
    return least


def offers(instance: Instance) -> list[Offer]:
    """Every network, with every number of uplinks."""
    # where limits count purchase and power, chains keep the optics that are best by either
    ample = {"limits": Limits(capex_usd=NO_LIMIT, power_mw=NO_LIMIT)}
    listed = instance.model_copy(update=ample)
    works: dict[tuple[int, int], list[tuple[Work, Placement]]] = {}
    times_s: dict[tuple[Any, ...], float] = {}
    found = []
    for row in design_chains(listed, KINDS[instance.objective.minimize]):  # type: ignore[arg-type]
        family, size = row.family, (row.family.gpus, row.family.active)
        if size not in works:
            works[size] = placed_works(instance, *size)
        for up in row.uplinks:
            reach = row.reach(up)
            rate = family.nic_byte_s if family.attachment else 0.0
            key = (*size, family.hb.name, rate, family.charges_loads, reach)
            if key not in times_s:
                times_s[key] = least_s(works[size], family, reach)
            sums = bill_total(bill(instance, family, row.levels(up), row.optics), instance.objective)
            found.append(Offer(family, sums, times_s[key]))
    return found


def worth(instance: Instance, offer: Offer) -> float:
    """The objective of a network."""
    objective, (workload,) = instance.objective, instance.workload
    if objective.minimize == "time":
        return offer.time_s
    if objective.minimize == "usd_per_token":
        tokens = workload.global_batch * workload.model.seq
        return offer.sums.tco_usd * offer.time_s / (objective.years * YEAR_H * HOUR_S * tokens)
    assert objective.kg_co2_per_kwh is not None
    iterations = workload.train_tokens / (workload.global_batch * workload.model.seq)  # type: ignore[operator]
    kwh = offer.sums.power_w / 1000 * objective.pue * offer.time_s / HOUR_S * iterations
    return kwh * objective.kg_co2_per_kwh


def enumerated(instance: Instance, found: list[Offer]) -> float:
    """The least worth within bound and limits."""
    bound_s = instance.workload[0].bound_s
    return min(
        (
            worth(instance, offer)
            for offer in found
            if offer.time_s <= bound_s and within_limits(instance, offer.family, offer.sums)
        ),
        default=math.inf,
    )


@st.composite
def questions(draw: st.DrawFn) -> tuple[Instance, float, str]:
    """A small question of one workload, which part of its networks a limit leaves, and which limit it is."""
    table = draw(instances(16)).model_dump(by_alias=True, exclude_unset=True)
    table["workload"] = table["workload"][:1]
    workload = table["workload"][0]
    workload |= {"max_iteration_time_s": 100.0, "train_tokens": 1e10}
    workload["mapping"] |= {"micro_batch": [1, 2], "recompute": ["none"], "interleave": [1, 2]}
    table["network"]["hb_domains"] = table["network"]["hb_domains"][:2]
    kind = draw(st.sampled_from([*KINDS]))
    table["objective"] |= {"minimize": kind, "years": draw(st.sampled_from([1.0, 4.0])), "kg_co2_per_kwh": 0.4}
    table["limits"] = {}
    limit = draw(st.sampled_from(["capex_usd", "power_mw"] if kind == "time" else ["capex_usd", "power_mw", "time"]))
    return Instance.model_validate(table), draw(st.floats(0.0, 1.0)), limit


def limited(instance: Instance, found: list[Offer], share: float, limit: str) -> Instance:
    """The instance with a limit, or a bound, that only so much of its networks keep."""
    works = [offer for offer in found if math.isfinite(offer.time_s)]
    if not works:
        return instance
    uses = {
        "capex_usd": [offer.sums.capex_usd for offer in works],
        "power_mw": [offer.sums.power_w / 1e6 for offer in works],
        "time": [offer.time_s for offer in works],
    }[limit]
    number = sorted(uses)[int(share**3 * (len(uses) - 1))] * (1 + 1e-9)
    table = instance.model_dump(by_alias=True, exclude_unset=True)
    if limit == "time":
        table["workload"][0]["max_iteration_time_s"] = number
    elif number > 0:
        table["limits"] = {limit: number}
    return Instance.model_validate(table)


def outcome(asked: tuple[Instance, float, str]) -> str:
    """Whether the answer is that of enumeration, and whether the limit bound."""
    free, share, limit = asked
    found = offers(free)
    instance = limited(free, found, share, limit)
    expected, unlimited = enumerated(instance, found), enumerated(free, found)
    plan = solve(instance)
    value = math.inf if plan.objective.value is None else plan.objective.value
    if not (value == expected or math.isclose(value, expected, rel_tol=1e-9)):
        return f"wrong: {value!r} for {expected!r}"
    if plan.cost is not None and not verify(instance, plan).accepted:
        return "wrong: the verifier rejects it"
    bound = "none" if math.isinf(expected) else "bound" if expected > unlimited * (1 + 1e-9) else "free"
    return f"right, {instance.objective.minimize}, {bound}"


def campaign(count: int, start: int = 0) -> Counter[str]:
    """How many questions were answered right, and wrong, by what they asked for."""
    counts: Counter[str] = Counter()

    @seed(start)
    @settings(max_examples=count, phases=[Phase.generate], database=None, deadline=None)
    @given(questions())
    def ask(asked: tuple[Instance, float, str]) -> None:
        said = outcome(asked)
        counts[said.split(":")[0]] += 1
        if said.startswith("wrong"):
            sys.stdout.write(f"{said}\n{asked[1:]} {asked[0].model_dump_json(by_alias=True, exclude_unset=True)}\n")

    ask()
    return counts


if __name__ == "__main__":
    found = campaign(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    sys.stdout.write("".join(f"{name}: {count}\n" for name, count in sorted(found.items())))
    sys.exit(int(found["wrong"] > 0))
