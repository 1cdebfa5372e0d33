"""Random questions of what stands and what is added, against plain enumeration.

`python -m tests.solving.standing_questions COUNT [SEED]` compares as many answers: with the least of all networks of
what stands and of what is new, with an answer in which all is new, and with what stands as it is. Plans are verified.
"""

from __future__ import annotations

import math
import random
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from coopt.instance.schema import Instance, at_choice, choices_of, questions_by_gpu
from coopt.instance.texts import InstanceError
from coopt.instance.workload import Workload
from coopt.network.family import Family
from coopt.network.parts import counted_units, standing_units
from coopt.network.space import Space
from coopt.perf.mapping import Floats
from coopt.solving.answer import solve
from coopt.verifier.audit import verify
from tests.conftest import question, switch
from tests.solving.drawn import by_hand
from tests.solving.fleet_oracle import Job
from tests.solving.fleets import SHAPE

KINDS = ("hb", "nic", "switch", "optics", "gpu")
ASKED = ("one network", "another generation", "islands", "islands of two generations")
OLD, NEW = "h100-sxm", "b300"
Network = tuple[Family, int, str]
"""A network with its uplinks, and its GPUs."""


def drawn(asked: str, seed: int, again: int = 0) -> dict[str, Any]:
    """A question of some kind as a table, whose network that stands can be wired."""
    draw = random.Random(f"{asked} {seed} {again}")
    size, domains = draw.choice([2, 4]), draw.choice([2, 3, 4])
    boxes = [
        switch(ports, draw.choice([200, 900, 2600, 7000])) | {"w": draw.choice([50, 300])}
        for ports in draw.sample([4, 8, 16, 32], 2)
    ]
    modules = [
        {"name": f"module{n}", "gbit_s": 400, "reach_m": 500, "usd": usd, "w": w}
        for n, (usd, w) in enumerate(draw.sample([(100, 8), (180, 6), (400, 3)], 2))
    ]
    kinds = [_domain(draw, "old", size, OLD)]
    if asked != "one network":
        kinds.append(_domain(draw, "new", draw.choice([2, 4, 8]), NEW if asked != "islands" else OLD))
    parted, several = asked.startswith("islands"), asked in ("another generation", "islands of two generations")
    gpus = draw.sample([size * domains, 2 * size * domains, 16], 2)
    table = question(
        cluster={"gpu": [OLD, NEW] if several else OLD, "gpus": 24 if parted else sorted({*gpus})},
        workload=[_workload(draw, w, parted) for w in range(2 if parted else 1)],
        network={
            "hb_domains": kinds,
            "fabrics": draw.sample(["rail-only", "clos", "rail-optimized"], 2),
            "nics": [{"name": "nic400", "gbit_s": 400, "usd": 700, "w": 20}],
            "switches": boxes,
            "optics": modules,
            "oversubscription": draw.choice([1.0, 2.0]),
        },
        objective={
            "minimize": draw.choice(["capex", "tco", "power"]),
            "include": draw.choice([[*KINDS], [*KINDS], ["nic", "switch", "optics"]]),
            "usd_per_kwh": 0.5,
        },
        sharing={"mode": "partition" if parted else "time", "mixed_gpus": parted and several},
    )
    tiers = draw.choice([1, 2, 2])
    table["existing"] = {
        "id": "ours",
        "gpu": OLD,
        "hb_domain": kinds[0],
        "domains": domains,
        "gpus_per_domain": size,
        "fabric": draw.choice(["clos", "rail-only", "rail-optimized"]),
        "nic": table["network"]["nics"][0],
        "bundles": draw.choice(["even", "any"]),
        "tiers": [
            {"ports": box["radix"], "switch": box, "optic": draw.choice(modules)}
            for box in draw.choices(boxes, k=tiers)
        ],
    }
    return table if _is_wired(table) else drawn(asked, seed, again + 1)


def _is_wired(table: dict[str, Any]) -> bool:
    try:
        standing_units(Instance.model_validate(table))
    except InstanceError:
        return False
    return True


def _domain(draw: random.Random, name: str, size: int, gpu: str) -> dict[str, Any]:
    usd = draw.choice([0, 500, 3000])
    return {"name": name, "size": size, "gbyte_s": 450, "usd_per_gpu": usd, "w_per_gpu": 30, "gpus": [gpu]}


def _workload(draw: random.Random, w: int, parted: bool) -> dict[str, Any]:
    batch = draw.choice([8, 24])
    return {
        "name": f"w{w}",
        "model": SHAPE,
        "global_batch": batch,
        "allow_tp_across": True,
        "max_iteration_time_s": batch / 8 * draw.choice([0.02, 0.05, 0.1, 0.3]),
        "gpus": draw.choice([[4, 8], [4, 8, 12], [8, 16]]) if parted else None,
        "mapping": {"micro_batch": 1, "recompute": "none", "zero": 0, "sequence_parallel": False},
    }


def least(instance: Instance, *, as_it_stands: bool = False) -> float:
    """The least objective of all networks for all workloads; with what stands alone, as it is, on request."""
    if instance.open_keys:
        questions = (at_choice(instance, choice) for choice in choices_of(instance))
        return min(least(one, as_it_stands=as_it_stands) for one in questions)
    slots = [(one,) for one in instance.workload] if instance.sharing.mode == "partition" else [instance.workload]
    by_gpu = questions_by_gpu(instance)
    menus = [[network for one in by_gpu for network in _networks(one, slot, as_it_stands)] for slot in slots]
    if not all(menus):
        return math.inf
    prices = _prices(instance)
    stock = standing_units(instance)
    held = np.array([float(stock[product]) for product in prices])
    usd, watts = np.array([*prices.values()]).T
    tables = [_units(menu, [*prices]) for menu in menus]
    sums, gpus = tables[0], np.array([family.gpus for family, _, _ in menus[0]])
    for table, menu in zip(tables[1:], menus[1:], strict=True):
        sums = (sums[:, None] + table).reshape(-1, len(prices))
        gpus = np.add.outer(gpus, [family.gpus for family, _, _ in menu]).reshape(-1)
    counts = np.array([kind in instance.objective.include for kind, _ in prices])
    capex = np.maximum(sums - held, 0) @ (usd * counts)
    power, terms = sums @ (watts * counts), instance.objective
    years_usd = terms.years * 8.76 * power * terms.pue * terms.usd_per_kwh
    worth = {"capex": capex, "power": power, "tco": capex + years_usd}[terms.minimize]
    return float(worth[gpus <= instance.cluster.most_gpus].min(initial=math.inf))


def _networks(instance: Instance, slot: tuple[Workload, ...], as_it_stands: bool) -> Iterator[Network]:
    """The networks on which workloads meet their bounds, new ones and the one that stands."""
    slot = tuple(one for one in instance.workload if one.name in {asked.name for asked in slot})
    new = instance.model_copy(update={"existing": (), "workload": slot})
    job, space, gpu = Job(new, 1.0), Space(instance=instance), instance.cluster.gpu.name
    for gpus in job.sizes:
        families = [] if as_it_stands else job.networks(gpus)
        if (stands := space.standing(gpus)) is not None:
            families = [*families, stands]
        for family in families:
            bare = replace(family, optics=())
            yield from ((family, uplinks, gpu) for uplinks in family.uplink_choices if job.meets(bare, uplinks))


def _prices(instance: Instance) -> dict[tuple[str, str], tuple[float, float]]:
    """USD and W of a unit of each product."""
    network = instance.network
    listed: dict[tuple[str, str], tuple[float, float]] = {
        ("gpu", gpu.name): (gpu.usd, gpu.w) for gpu in instance.cluster.generations or (instance.cluster.gpu,)
    }
    listed |= {("hb", hb.name): (hb.usd_per_gpu, hb.w_per_gpu) for hb in network.hb_domains}
    for kind, products in (("nic", network.nics), ("switch", network.switches), ("optics", network.optics)):
        listed |= {(kind, one.name): (one.usd, one.w) for one in products}
    return listed


def _units(networks: list[Network], products: list[tuple[str, str]]) -> Floats:
    """Units of each product in networks whose domains are full."""
    rows = []
    for family, uplinks, gpu in networks:
        units: Counter[tuple[str, str]] = Counter()
        units.update(counted_units(family, uplinks))
        units["gpu", gpu] = family.installed_gpus
        rows.append([units[product] for product in products])
    return np.array(rows, dtype=np.float64).reshape(len(networks), len(products))


def fault(asked: str, seed: int) -> str:
    """What is wrong with the answer to a question; empty where nothing is."""
    table = drawn(asked, seed)
    instance = Instance.model_validate(table)
    plan, best = solve(instance), least(instance)
    found = math.inf if plan.objective.value is None else plan.objective.value
    if not math.isclose(found, best, rel_tol=1e-9, abs_tol=1e-6):
        return f"the answer is worth {found!r}, enumeration finds {best!r}"
    if not (verdict := verify(instance, plan)).accepted:
        return "; ".join(f"{check.name}: {check.why}" for check in verdict.checks if not check.ok)
    new = solve(Instance.model_validate({**table, "existing": ()})).objective.value
    rivals = {"all new": new, "what stands": least(instance, as_it_stands=True)}
    dearer = [name for name, usd in rivals.items() if usd is not None and found > usd * (1 + 1e-9)]
    return f"the answer is dearer than {dearer}" if dearer else ""


def campaign(count: int, start: int = 0) -> Counter[str]:
    """How many questions of each kind were right, wrong, or had no plan."""
    found: Counter[str] = Counter()
    for number in range(count):
        asked, seed = ASKED[number % len(ASKED)], start + number // len(ASKED)
        try:
            text = fault(asked, seed)
        except InstanceError as error:  # a question that cannot be asked is told and counted
            text = f"{type(error).__name__}: {error}"
        found[f"{asked}: {'wrong' if text else 'right'}"] += 1
        if text:
            sys.stdout.write(f"{asked}, seed {seed}: {text}\n")
    return found


if __name__ == "__main__":
    by_hand(campaign)
