import math
import random
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from hypothesis import settings

from coopt.instance.hardware import Gpu
from coopt.instance.schema import Instance
from coopt.verifier.parts.bills import bill, bill_total, levels, within_limits
from coopt.verifier.parts.enumeration import cheapest_design, number_below
from coopt.verifier.parts.layouts import chains
from coopt.verifier.parts.optics import fitting_ends
from coopt.verifier.parts.outages import ALL_PORTS
from coopt.verifier.parts.space import DesignFamily, families
from coopt.verifier.parts.spans import Reach, reach_of, slowest_case
from coopt.verifier.parts.timings import PlacedTimes, Timings
from coopt.verifier.training.communication import Speeds
from coopt.verifier.training.iteration import iteration_s
from coopt.verifier.training.mappings import mapping_sizes, simpler, splits
from coopt.verifier.training.memory import MemoryNeeds, memory_bytes
from coopt.verifier.training.placing import Placement, placements
from coopt.verifier.training.work import Clock, Work
from tests.verifier.cases import DOMAINS, EXPERTS, MODEL, ask, switch, workload

CHARGES: list[dict[str, str | float]] = [
    {"routing": "spray"},
    {"routing": "spray", "spray_efficiency": 0.6},
    {"routing": "pinned"},
    {"routing": "ecmp"},
    {"routing": 1.5},
    {"charge": "ratio", "routing": 1.2},
]
CHOICES = {
    "network__fabrics": ["rail-only", "rail-optimized", "clos", ["rail-only", "clos"]],
    "network__switches": [[switch(6)], [switch(8), switch(16)], [switch(8), switch(16, 200)]],
    "network__hb_domains": [list(DOMAINS[:1]), list(DOMAINS[:2]), [DOMAINS[2]]],
    "network__oversubscription": [1.0, 2.5, [1.0, 3.0]],
    "network__nics_per_gpu": [1, [1, 2]],
    "objective__minimize": ["capex", "power", "tco"],
    "limits__racks": [4, 100],
    "workload__0__max_iteration_time_s": [0.2, 0.25, 0.3, 0.4, 0.5],
    "workload__0__mapping": [
        {"micro_batch": [1, 2], "interleave": 1, "cp": 1, "zero": [0, 1], "recompute": ["none", "full"]},
        {"micro_batch": 1, "interleave": 1, "zero": [1, 3], "cp": [1, 2], "recompute": ["none", "full"]},
        {"micro_batch": 1, "interleave": 1, "cp": 1, "tp": [1, 2]},
        {"micro_batch": 1, "interleave": 1, "cp": 1, "zero": 1, "offload_percent": [0, 50, 100]},
    ],
    "cluster__gpu__hbm_gb": [40, 9],
    "workload__0__options": [
        *({"dp_mode": "overlap"}, {"dp_mode": "stale-1"}, {"tp_sync_fraction": 0.5}, {}),
        *({"schedule": "zb-h1"}, {"schedule": "dualpipe"}),
    ],
    "workload__0__model": [MODEL, MODEL | {"layers": 7}, MODEL | EXPERTS | {"extra_predictions": 0}],
}


def works_of(clock: Clock, family: DesignFamily, gpu: Gpu) -> list[tuple[Work, Placement]]:
    """Every mapping that fits into memory, in every placement."""
    needs = MemoryNeeds(clock.workload)
    return [
        (clock.work(split), place)
        for split in splits(clock.workload, family.gpus)
        if needs.of(split) <= gpu.hbm_gb * 1e9
        for place in placements(clock.workload, split, family.active, turned=family.charges_loads)
    ]


def is_in_time(family: DesignFamily, reach: Reach, work: Work, place: Placement, bound_s: float) -> bool:
    """Whether an iteration on a network takes no longer than its bound."""
    return slowest_case(family, reach, work, place).seconds <= bound_s


def plain_search(instance: Instance) -> float | None:
    """The least value by trying all designs with all mappings and placements, nothing skipped."""
    kind, gpu = instance.objective.minimize, instance.cluster.gpu
    clocks = [Clock(workload, gpu) for workload in instance.workload]
    values = []
    for family in families(instance):
        tried = [(works_of(clock, family, gpu), clock.workload.bound_s) for clock in clocks]
        for chain in chains(family, instance.network):
            attachment, tiers = family.attachment, chain.ports.tiers
            listed = [fitting_ends(instance, attachment, level) for level in range(1, tiers + 1)] if attachment else []
            for uplinks in chain.uplinks:
                ports = chain.with_up(uplinks)
                reach = reach_of(family, ports)
                if not all(any(is_in_time(family, reach, *one, bound_s) for one in works) for works, bound_s in tried):
                    continue
                for optics in product(*listed):
                    sums = bill_total(bill(instance, family, levels(family, ports), optics), instance.objective)
                    if within_limits(instance, family, sums):
                        values.append(sums.of(kind))
    return min(values, default=None)


def seeds(campaign: int, *usual: int) -> Sequence[int]:
    """As many as a campaign has; a usual run leaves out those whose questions have the most mappings."""
    return usual if settings().derandomize else range(campaign)


@pytest.mark.parametrize("seed", seeds(12, 1, 2, 3, 5, 6, 10))  # one of each charge
def test_the_search_agrees_with_trying_everything(seed: int) -> None:
    draw = random.Random(seed)
    charge = {f"network__{key}": value for key, value in CHARGES[seed % len(CHARGES)].items()}
    instance = ask(cluster__gpus=24, **charge, **{key: draw.choice(values) for key, values in CHOICES.items()})
    kind, best = instance.objective.minimize, plain_search(instance)
    found, _ = cheapest_design(instance, kind, math.inf)
    assert (float(found.value) if found else None) == (best if best is None else pytest.approx(best, rel=1e-12))
    if best is not None:
        assert cheapest_design(instance, kind, best)[0] is None
        above, _ = cheapest_design(instance, kind, best * (1 + 1e-6))
        assert above == found


@pytest.mark.parametrize(
    ("model", "options"),
    [
        *((MODEL, one) for one in ({"dp_mode": "sync"}, {"dp_mode": "overlap"}, {"collectives": "fastest"})),
        *((MODEL, one) for one in ({"collectives": "in-network"}, {"schedule": "zb-h1"}, {"schedule": "dualpipe"})),
        *((MODEL | EXPERTS, one) for one in ({"dp_mode": "overlap"}, {"dp_mode": "stale-1"}, {"expert_tp": True})),
        (MODEL | EXPERTS, {"collectives": "in-network", "expert_tp": True}),
    ],
)
def test_no_placement_takes_less_than_collectives_do_at_least(model: dict[str, Any], options: dict[str, Any]) -> None:
    limits = {"micro_batch": 1, "interleave": 1, "recompute": "none"}
    changes = {"workload__0__model": model, "workload__0__options": options, "workload__0__mapping": limits}
    parts = {"network__hb_domains": list(DOMAINS[:2]), "network__switches": [switch(8) | {"reduces": True}]}
    gpus = 16 if options.get("schedule") == "dualpipe" else 12  # an even number of stages
    instance = ask(cluster__gpus=gpus, **parts, **changes)
    workload, raised = instance.workload[0], 0
    clock = Clock(workload, instance.cluster.gpu)
    for family in {(one.hb.name, one.attachment): one for one in families(instance)}.values():
        offered = Speeds.everywhere(family.hb.gbyte_s * 1e9, 1 / family.nic_byte_s)
        speed = offered.behind(family.hb.to_nics_gbyte_s)
        times = PlacedTimes(workload, family, speed)
        for number, made in enumerate(map(clock.work, splits(workload, family.gpus))):
            # every second one waits for gradients of other sites as well, longer or shorter than what it hides behind
            work = made._replace(wait_s=number % 2 * number * 1e-3)
            assert made.floor_s() + clock.least_waited_s(work.wait_s) <= work.floor_s() * (1 + 1e-12)
            floor_s = work.floor_s(times.least_traffic(work), times.least_data_s(work))
            for place in placements(workload, work.split, family.active, turned=True):
                placed_s = work.floor_s(times.traffic(work, place), times.data_s(work, place))
                assert floor_s <= placed_s <= iteration_s(work, place, speed)
            raised += floor_s > work.floor_s(times.least_traffic(work))
    assert raised or workload.options.dp_mode == "stale-1"  # what is late hides


@pytest.mark.parametrize("seed", seeds(12, 1, 2, 3))
def test_no_bound_on_the_way_drops_a_mapping_that_is_in_time(seed: int) -> None:
    """What is listed as near is all that the full listing has in time, but for what a simpler mapping replaces."""
    draw = random.Random(seed)
    instance = ask(cluster__gpus=24, **{key: draw.choice(values) for key, values in CHOICES.items()})
    gpu, workload = instance.cluster.gpu, instance.workload[0]
    timings, clock, needs = Timings(instance.workload, gpu), Clock(workload, gpu), MemoryNeeds(workload)
    for family in {(one.gpus, one.hb.name, one.attachment): one for one in families(instance)}.values():
        offered = Speeds.everywhere(family.hb.gbyte_s * 1e9, 1 / family.nic_byte_s if family.attachment else 0.0)
        speed = offered.behind(family.hb.to_nics_gbyte_s) if family.attachment else offered
        every = works_of(clock, family, gpu)
        room = {work.split: needs.of(work.split) <= gpu.usable_bytes for work, _ in every}
        needed = [
            (work, place)
            for work, place in every
            if room[work.split] and not any(room.get(other, False) for other in simpler(workload, work.split))
        ]
        for wait_s in (0.0, draw.uniform(0, 0.5) * workload.bound_s):
            waiting = [(work._replace(wait_s=wait_s), place) for work, place in needed]
            wanted = {placed for placed in waiting if iteration_s(*placed, speed) <= workload.bound_s}
            assert {placed for _, placed in timings.near_works(family, 0, 0.0, wait_s=wait_s)} == wanted
        quick = [split for split, fits in room.items() if fits and clock.work(split).floor_s() <= workload.bound_s]
        assert timings.fits(family.gpus, 0, 0.0) == bool(quick)
        bound_s = workload.bound_s * draw.uniform(0.3, 1.0)
        listed = list(clock.quick(family.gpus, math.inf))
        assert sorted(one for _, one in listed) == sorted(splits(workload, family.gpus))
        assert all(layers_s <= clock.work(one).floor_s() for layers_s, one in listed)
        assert sorted(clock.quick(family.gpus, bound_s)) == sorted(one for one in listed if one[0] <= bound_s)


def test_no_more_works_are_made_than_are_read() -> None:
    """What the quickest mapping settles asks for no other, of which there are hundreds."""
    instance = ask(cluster__gpus=32, workload__0__mapping={"micro_batch": [1, 2]})
    timings = Timings(instance.workload, instance.cluster.gpu)
    clock, made = timings.clocks[0], list[Work]()
    every = [clock.work(split) for split in splits(instance.workload[0], 32)]
    timings.clocks[0].work = lambda split: made.append(Clock.work(clock, split)) or made[-1]  # type: ignore[method-assign, func-returns-value]
    family = next(one for one in families(instance) if one.attachment is not None)
    floors = [compute_s for compute_s, _ in timings._quick(32, 0, math.inf)]
    assert floors == sorted(work.floor_s() for work in made)
    made.clear()
    other = Timings(instance.workload, instance.cluster.gpu)
    other.clocks[0] = clock
    assert other.may_train(family, 0.0)
    assert len(made) < len(every) / 10


@pytest.mark.parametrize("seed", seeds(8, 1, 2, 3))
def test_the_least_time_on_any_network_is_that_of_the_full_listing(seed: int) -> None:
    """Whatever was asked before, in whatever order, of faster networks or slower ones, with looser bounds or tighter
    ones."""
    draw, found = random.Random(seed), 0
    loose = {"workload__0__max_iteration_time_s": 1.0}
    instance = ask(cluster__gpus=24, **{key: draw.choice(values) for key, values in CHOICES.items()} | loose)
    gpu, workload = instance.cluster.gpu, instance.workload[0]
    timings, clock, needs = Timings(instance.workload, gpu), Clock(workload, gpu), MemoryNeeds(workload)
    for family in {(one.gpus, one.hb.name, one.attachment): one for one in families(instance)}.values():
        every = [
            (work, place) for work, place in works_of(clock, family, gpu) if needs.of(work.split) <= gpu.usable_bytes
        ]
        reaches = [
            reach_of(family, chain.with_up(up)) for chain in chains(family, instance.network) for up in chain.uplinks
        ]
        for reach in draw.sample(reaches, min(len(reaches), 6)):
            least_s = min((slowest_case(family, reach, *one).seconds for one in every), default=math.inf)
            below_s = draw.choice([1.0, 0.5, 1.01]) * min(least_s, 10.0) + draw.choice([0.0, 1e-3])
            expected_s = least_s if least_s < below_s and least_s <= workload.bound_s else math.inf
            given_s = timings.least_s(family, reach, 0, 0.0, below_s, ALL_PORTS)
            assert (given_s if given_s <= workload.bound_s else math.inf) == expected_s
            found += math.isfinite(expected_s)
    assert found


def test_memory_is_the_same_whatever_was_asked_before() -> None:
    instance = ask(cluster__gpus=32, workload__0__model=MODEL | EXPERTS, workload__0__mapping={"micro_batch": [1, 2]})
    workload = instance.workload[0]
    needs, every = MemoryNeeds(workload), list(splits(workload, 32))[::7]
    random.Random(1).shuffle(every)
    assert [needs.of(split) for split in every] == [memory_bytes(workload, split) for split in every]
    assert len({needs.of(split) for split in every}) > 100


@pytest.mark.parametrize("most", range(7))
def test_uplinks_below_an_end_are_those_that_are_counted_one_by_one(most: int) -> None:
    for fewest, end in product(range(most + 1), range(9)):
        asked: list[int] = []

        def third_of(up: int, asked: list[int] = asked) -> Fraction:
            asked.append(up)
            return Fraction(up, 3)

        ups = range(fewest, most)
        number = number_below(ups, Fraction(end, 3), third_of)
        assert number == sum(up < end for up in ups)
        assert len(asked) == len(set(asked))
        if not number:
            assert asked == list(ups[:1])


@pytest.mark.parametrize("model", [{"layers": 11}, EXPERTS])
def test_no_mapping_takes_fewer_gpu_seconds_than_the_least(model: dict[str, object]) -> None:
    here = workload(model=model, mapping={"micro_batch": [1, 2], "cp": [1, 2]}, options={"slowdown": 1.2})
    clock = Clock(here, ask().cluster.gpu)
    every = [(gpus, one) for gpus in mapping_sizes(here, 16) for one in splits(here, gpus)]
    assert clock.least_gpu_s <= min(gpus * clock.work(one).floor_s() for gpus, one in every)
    assert clock.least_gpu_s > 0.9 * min(
        gpus * layers_s for gpus in mapping_sizes(here, 16) for layers_s, _ in clock.quick(gpus, math.inf)
    )
