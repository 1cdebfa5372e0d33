"""Small questions of one workload under limits that bind, run by hand.

`python -m tests.solving.own_listing COUNT [SEED] [days] [OBJECTIVE ...]` asks so many, on request in days alone, by
every objective that is named or by any one, and compares with what is best of all networks
(`tests/solving/own_networks.py`), numbers of spare domains, mappings and placements. They are listed here: every
product of degrees, every way to put each degree into and across domains, whatever the listings of planner and verifier
hold. The verifier's rules say whether a mapping is allowed, and its scalar model what it takes; nothing is left out as
dominated.
"""

import math
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

from hypothesis import strategies as st

from coopt.instance.schema import Instance
from coopt.instance.workload import Workload
from coopt.plan.parts import MappingChoice
from coopt.plan.schema import WorkloadPlan
from coopt.solving.answer import solve
from coopt.verifier.audit import verify
from coopt.verifier.parts.space import DesignFamily
from coopt.verifier.parts.spans import Reach, cases_of
from coopt.verifier.training.iteration import iteration_s
from coopt.verifier.training.mappings import mapping_fault, scalar_mapping
from coopt.verifier.training.memory import MemoryNeeds
from coopt.verifier.training.placing import Placement, placement_of
from coopt.verifier.training.work import Clock, Work
from tests.conftest import switch
from tests.solving.drawn import drawn
from tests.solving.interrupted import ITERATIONS, failures, in_days
from tests.solving.oracle import instances
from tests.solving.own_networks import HOUR_S, YEAR_S, Built, bill, calendar_s, networks, reach

KINDS = ("capex", "power", "tco", "time", "usd_per_token", "carbon")
BOUNDS = ("max_iteration_time_s", "train_days")
OWN_LIMITS = {"capex": ("capex_usd",), "power": ("power_mw",), "time": BOUNDS}
DAY_S = 24 * HOUR_S
Asked = tuple[Instance, list[tuple[str, float]]]


class Offer(NamedTuple):
    """A network with what it takes of everything: purchase (USD), power (W), and the least time of an iteration with
    its share of interruptions."""

    usd: float
    w: float
    time_s: float


def all_mappings(workload: Workload, gpus: int) -> Iterator[MappingChoice]:
    """Every mapping whose degrees multiply out, of which the rules say that it is allowed."""
    limits, experts = workload.mapping, max(1, workload.model.experts)
    for tp, pp, cp in product(range(1, gpus + 1), repeat=3):
        if gpus % (tp * pp * cp):
            continue
        dp = gpus // (tp * pp * cp)
        for ep, micro_batch, interleave, recompute, sequence_parallel, zero, outermost in product(
            (ep for ep in range(1, experts + 1) if experts % ep == 0),
            limits.micro_batch,
            limits.interleave or range(1, workload.model.layers // pp + 1),
            limits.recompute,
            limits.sequence_parallel or (False, True),
            limits.zero or range(4),
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
    cases: dict[tuple[Placement, bool], Any] = {}
    least = math.inf
    for work, place in works:
        if family.holds(place.pp_in) and (place.outermost == "pp" or family.charges_loads):
            key = place, work.split.interleave > 1
            if key not in cases:
                cases[key] = list(cases_of(family, reach, place, looped=key[1]))
            least = min(least, max(iteration_s(work, place, speed) for speed in cases[key]))
    return least


def offers(instance: Instance) -> list[Offer]:
    """Every network, with every number of spare domains that changes something."""
    works: dict[tuple[int, int], list[tuple[Work, Placement]]] = {}
    times_s: dict[tuple[Any, ...], float] = {}
    found = set()
    for bare in networks(instance):
        family, seen = bare.family, reach(instance, bare)
        size = family.gpus, family.active
        if size not in works:
            works[size] = placed_works(instance, *size)
        rate = family.nic_byte_s if family.attachment else 0.0
        key = (*size, family.hb.name, rate, family.charges_loads, seen)
        if key not in times_s:
            times_s[key] = least_s(works[size], family, seen)
        found |= {Offer(*bill(instance, one), time_s) for one, time_s in spared(instance, bare, times_s[key])}
    return list(found)


def spared(instance: Instance, bare: Built, iteration_s: float) -> Iterator[tuple[Built, float]]:
    """The network with as many spare domains as are listed, or as change something, and an iteration with its share of
    interruptions."""
    asked, before_s = instance.availability, math.inf
    listed = asked.spare_domains if asked else (0,)
    for spares in listed or range(40):
        built = bare._replace(spares=spares)
        time_s = calendar_s(instance, built, iteration_s)
        if not listed and before_s * (1 - 1e-12) <= time_s < math.inf:
            break
        before_s = time_s
        if math.isfinite(time_s):
            yield built, time_s


def worth(instance: Instance, offer: Offer) -> float:
    """The objective of a network."""
    terms, (workload,) = instance.objective, instance.workload
    kwh = offer.w / 1000 * terms.pue * YEAR_S / HOUR_S
    tco_usd = offer.usd + kwh * terms.years * terms.usd_per_kwh
    if terms.minimize in ("capex", "power", "tco", "time"):
        return {"capex": offer.usd, "power": offer.w, "tco": tco_usd, "time": offer.time_s}[terms.minimize]
    tokens = workload.global_batch * workload.model.seq
    if terms.minimize == "usd_per_token":
        return tco_usd * offer.time_s / (terms.years * YEAR_S * tokens)
    assert workload.train_tokens is not None
    assert terms.kg_co2_per_kwh is not None
    return kwh * offer.time_s / YEAR_S * workload.train_tokens / tokens * terms.kg_co2_per_kwh


def use_of(offer: Offer, limit: str) -> float:
    """What a network takes of a limit or bound."""
    of_time = {"max_iteration_time_s": offer.time_s, "train_days": offer.time_s * ITERATIONS / DAY_S}
    return ({"capex_usd": offer.usd, "power_mw": offer.w / 1e6} | of_time)[limit]


def is_within(instance: Instance, offer: Offer) -> bool:
    """Whether a network keeps the bound and limits."""
    (workload,), limits = instance.workload, instance.limits
    caps = {key: getattr(workload, key) for key in BOUNDS} | {
        key: getattr(limits, key) for key in ("capex_usd", "power_mw")
    }
    return all(cap is None or use_of(offer, key) <= cap for key, cap in caps.items())


def enumerated(instance: Instance, found: list[Offer]) -> float:
    """The least worth within bound and limits."""
    return min((worth(instance, offer) for offer in found if is_within(instance, offer)), default=math.inf)


@st.composite
def questions(draw: st.DrawFn) -> Asked:
    """A small question of one workload, and limits in the order in which they are tried, with the share of networks
    that each leaves."""
    table = draw(instances(16)).model_dump(by_alias=True, exclude_unset=True)
    gpus = draw(st.sampled_from([[16], [8, 16], [12], [6, 12], [18]]))
    table["workload"], table["cluster"]["gpus"] = table["workload"][:1], gpus
    workload, network = table["workload"][0], table["network"]
    batch = draw(st.sampled_from([144, 288]))
    tokens = ITERATIONS * batch * workload["model"]["seq"]
    workload |= {"max_iteration_time_s": 100.0, "train_tokens": tokens, "global_batch": batch}
    workload["mapping"] |= {"micro_batch": [1, 2], "recompute": ["none"], "interleave": [1, 2]}
    network |= {"hb_domains": network["hb_domains"][:2], "domain_fill": "even", "link_ends": "same"}
    rates = [nic["gbit_s"] for nic in network["nics"]]
    radices = draw(st.lists(st.sampled_from([4, 5, 6, 8, 10]), min_size=1, max_size=2, unique=True))
    network["switches"] = [
        switch(k, draw(st.integers(0, 9000)), rate) | {"name": f"{k}x{rate}", "reduces": True}
        for k in radices
        for rate in rates
    ]
    if draw(st.booleans()) and not workload["model"].get("experts"):
        table["availability"] = draw(failures())
        if draw(st.integers(0, 3)):
            table["workload"] = [workload := in_days(workload, 100.0)]
    kind = draw(st.sampled_from(KINDS))
    table["objective"] |= {"minimize": kind, "years": draw(st.sampled_from([1.0, 4.0])), "kg_co2_per_kwh": 0.4}
    table["limits"] = {}
    bound = "train_days" if workload.get("train_days") else "max_iteration_time_s"
    shares = st.sampled_from([0.0, 0.1, 0.3, 0.6, 1.0])
    limits = draw(st.permutations([bound, "capex_usd", "power_mw"]))
    return Instance.model_validate(table), [(limit, draw(shares)) for limit in limits]


def limited(instance: Instance, found: list[Offer], limits: list[tuple[str, float]]) -> Instance:
    """The instance with up to two limits, one after the other, that the best network does not keep and another one
    does."""
    bound = 0
    for limit, share in limits:
        if limit in OWN_LIMITS.get(instance.objective.minimize, ()):
            continue
        left = [offer for offer in found if math.isfinite(offer.time_s) and is_within(instance, offer)]
        if not left or bound == 2:
            break
        best = use_of(min(left, key=lambda offer: worth(instance, offer)), limit)
        uses = sorted(use for offer in left if 0 < (use := use_of(offer, limit)) < best * (1 - 1e-6))
        if uses:
            bound += 1
            table = instance.model_dump(by_alias=True, exclude_unset=True)
            place = table["workload"][0] if limit in BOUNDS else table["limits"]
            place[limit] = uses[int(share * (len(uses) - 1))] * (1 + 1e-9)
            instance = Instance.model_validate(table)
    return instance


def outcomes(asked: Asked, kinds: tuple[str, ...]) -> Iterator[str]:
    """Whether the answer by each objective, or by that of the question, is that of enumeration, and whether limits
    bound."""
    free, limits = asked
    found = offers(free)
    for kind in kinds or (free.objective.minimize,):
        objective = free.objective.model_copy(update={"minimize": kind})
        yield outcome(free.model_copy(update={"objective": objective}), found, limits)


def outcome(free: Instance, found: list[Offer], limits: list[tuple[str, float]]) -> str:
    """Whether the answer is that of enumeration, and whether limits bound."""
    instance = limited(free, found, limits)
    expected, unlimited = enumerated(instance, found), enumerated(free, found)
    plan = solve(instance)
    value = math.inf if plan.objective.value is None else plan.objective.value
    wrong = "" if value == expected or math.isclose(value, expected, rel_tol=1e-9) else f"{value!r} for {expected!r}"
    if wrong := wrong or "; ".join(str(check) for check in verify(instance, plan).failures):
        return f"wrong: {wrong}\n{instance.model_dump_json(by_alias=True, exclude_unset=True)}"
    bound = "none" if math.isinf(expected) else "bound" if expected > unlimited * (1 + 1e-9) else "free"
    kind = "" if instance.availability is None else " in days" if instance.workload[0].calendar else " with failures"
    spared = any(part.design and part.design.spare_domains for part in plan.parts)
    return f"right, {instance.objective.minimize}{kind}{' and spares' * spared}, {bound}"


def campaign(count: int, start: int = 0, *, days: bool = False, kinds: tuple[str, ...] = ()) -> Counter[str]:
    """How many questions were answered right, and wrong, by what they asked for; of those in days alone on request."""
    counts: Counter[str] = Counter()
    in_days_alone = questions().filter(lambda asked: asked[0].workload[0].calendar)

    for asked in drawn(in_days_alone if days else questions(), count, start):
        for said in outcomes(asked, kinds):
            counts[said.split(":")[0]] += 1
            if said.startswith("wrong"):
                sys.stdout.write(f"{said}\n")
                sys.stdout.flush()
    return counts


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:] if word.isdecimal()]
    asked_kinds = tuple(word for word in sys.argv[1:] if word in KINDS)
    total = campaign(*numbers[:2], days="days" in sys.argv, kinds=asked_kinds)
    sys.stdout.write("".join(f"{name}: {count}\n" for name, count in sorted(total.items())))
    sys.exit(int(total["wrong"] > 0))
