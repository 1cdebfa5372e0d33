"""Random questions of what stands and what is added, against plain enumeration.

`python -m tests.solving.standing_questions COUNT [SEED]` compares as many answers: with the least of all networks of
what stands and of what is new, with an answer in which all is new, and with what stands as it is. Plans are verified;
those of islands are certified by proofs, of which none may prove a bound that leaves out a network. What
`coopt explain` says of rivals, bounds and prices is compared with the same enumeration by `reasons COUNT [SEED]`.
"""

import math
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from coopt import certify, explain, prove
from coopt.instance.schema import Instance, at_choice, choices_of, questions_by_gpu
from coopt.instance.texts import InstanceError
from coopt.instance.workload import Workload
from coopt.network.family import Family
from coopt.network.parts import counted_units, standing_units
from coopt.network.space import Space
from coopt.perf.mapping import Floats
from coopt.plan.explanation import PriceRange, Rival
from coopt.plan.schema import Plan
from coopt.solving.answer import solve
from coopt.solving.fleet import listing
from coopt.verifier.audit import verify
from tests.conftest import question, switch
from tests.solving.drawn import by_hand
from tests.solving.fleet_oracle import Job
from tests.solving.fleets import SHAPE

KINDS = ("hb", "nic", "switch", "optics", "gpu")
ASKED = (
    "one network",
    "another generation",
    "islands",
    "islands of two generations",
    "two NICs",
    "one network in a hall",
    "islands in a hall",
)
OLD, NEW = "h100-sxm", "b300"
OF_ONE_GPU = ("islands", "islands in a hall")
Network = tuple[Family, int, str]
"""A network with its uplinks, and its GPUs."""
Bought = tuple[Floats, Floats]


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
    if asked not in ("one network", "two NICs", "one network in a hall"):
        kinds.append(_domain(draw, "new", draw.choice([2, 4, 8]), OLD if asked in OF_ONE_GPU else NEW))
    by_length = _hall(draw, kinds, modules) if asked.endswith("hall") else {}
    parted, several = asked.startswith("islands"), asked in ("another generation", "islands of two generations")
    gpus = draw.sample([size * domains, 2 * size * domains, 16], 2)
    table = question(
        cluster={"gpu": [OLD, NEW] if several else OLD, "gpus": 24 if parted else sorted({*gpus})},
        workload=[_workload(draw, w, parted) for w in range(2 if parted else 1)],
        network={
            "hb_domains": kinds,
            "fabrics": draw.sample(["rail-only", "clos", "rail-optimized"], 2),
            "nics": [{"name": "nic400", "gbit_s": 400, "usd": 700, "w": 20}], "switches": boxes, "optics": modules,
            "oversubscription": draw.choice([1.0, 2.0]),
            **by_length,
        },
        objective={
            "minimize": draw.choice(["capex", "tco", "power"]),
            "include": draw.choice([[*KINDS], [*KINDS], ["nic", "switch", "optics"]]), "usd_per_kwh": 0.5,
        },
        sharing={"mode": "partition" if parted else "time", "mixed_gpus": parted and several},
    )  # fmt: skip
    tiers = draw.choice([1, 2, 2])
    table["existing"] = {
        "id": "ours", "gpu": OLD, "hb_domain": kinds[0], "domains": domains, "gpus_per_domain": size,
        "fabric": draw.choice(["clos", "rail-only", "rail-optimized"]), "nic": table["network"]["nics"][0],
        "bundles": draw.choice(["even", "any"]),
        "tiers": [
            {"ports": box["radix"], "switch": box, "optic": draw.choice(modules)}
            for box in draw.choices(boxes, k=tiers)
        ],
    }  # fmt: skip
    if asked == "two NICs":  # each with a leaf of its own, or both on one
        table["network"]["nics_per_gpu"] = [1, 2]
        rails = {"rails": 2 * size} if table["existing"]["fabric"] != "clos" else {}
        table["existing"] |= {"nics_per_gpu": 2, "nic_ports": 2, **rails}
    return table if _is_wired(table) else drawn(asked, seed, again + 1)


def _is_wired(table: dict[str, Any]) -> bool:
    try:
        standing_units(Instance.model_validate(table))
    except InstanceError:
        return False
    return True


def _hall(draw: random.Random, kinds: list[dict[str, Any]], modules: list[dict[str, Any]]) -> dict[str, Any]:
    """Rows of a hall, with a module that is too short for some of its ways."""
    modules[1]["reach_m"] = draw.choice([6, 8, 10])
    for kind in kinds:
        kind["racks"] = draw.choice([1, 2])
    rows = {"racks_per_row": draw.choice([1, 2, 5]), "row_pitch_m": draw.choice([1.0, 3.0, 9.0])}
    fibre = []
    if draw.random() < 0.6:  # what stands has its own
        for module in modules:
            module |= {"fibre": "200g-pair"}
        usd = draw.choice([[0, 30, 1], [90, 90, 5]])
        fibre = [
            {"name": name, "carries": "200g-pair", "pairs": pairs, "usd": usd[pairs - 1], "usd_per_m": usd[pairs % 3]}
            for name, pairs in (("thin", 1), ("thick", 2))
        ]
    return {"cables": "hall", "link_ends": "any", "hall": rows, "fibre": fibre}


def _domain(draw: random.Random, name: str, size: int, gpu: str) -> dict[str, Any]:
    usd = draw.choice([0, 500, 3000])
    return {"name": name, "size": size, "gbyte_s": 450, "usd_per_gpu": usd, "w_per_gpu": 30, "gpus": [gpu]}


def _workload(draw: random.Random, w: int, parted: bool) -> dict[str, Any]:
    batch = draw.choice([8, 24])
    return {
        "name": f"w{w}", "model": SHAPE, "global_batch": batch, "allow_tp_across": True,
        "max_iteration_time_s": batch / 8 * draw.choice([0.02, 0.05, 0.1, 0.3]),
        "gpus": draw.choice([[4, 8], [4, 8, 12], [8, 16]]) if parted else None,
        "mapping": {"micro_batch": 1, "recompute": "none", "zero": 0, "sequence_parallel": False},
    }  # fmt: skip


def least(instance: Instance, *, as_it_stands: bool = False, bought: Bought | None = None) -> float:
    """The least objective of all networks for all workloads; with what stands alone, as it is, on request. `bought` is
    what they take where that is known, as at other prices."""
    if instance.open_keys:
        questions = (at_choice(instance, choice) for choice in choices_of(instance))
        return min(least(one, as_it_stands=as_it_stands) for one in questions)
    sums, gpus = bought or all_bought(instance, as_it_stands=as_it_stands)
    prices = _prices(instance)
    stock = standing_units(instance)
    held = np.array([float(stock[product]) for product in prices])
    usd, watts = np.array([*prices.values()]).T
    counts = np.array([kind in instance.objective.include for kind, _ in prices])
    capex = np.maximum(sums - held, 0) @ (usd * counts)
    power, terms = sums @ (watts * counts), instance.objective
    years_usd = terms.years * 8.76 * power * terms.pue * terms.usd_per_kwh
    worth = {"capex": capex, "power": power, "tco": capex + years_usd}[terms.minimize]
    return float(worth[gpus <= instance.cluster.most_gpus].min(initial=math.inf))


def all_bought(instance: Instance, *, as_it_stands: bool = False) -> Bought:
    """The units of each product that every choice of networks takes, and its GPUs, whatever they cost."""
    slots = [(one,) for one in instance.workload] if instance.sharing.mode == "partition" else [instance.workload]
    by_gpu = questions_by_gpu(instance)
    menus = [[network for one in by_gpu for network in _networks(one, slot, as_it_stands)] for slot in slots]
    products = [*_prices(instance)]
    tables = [_units(menu, products) for menu in menus]
    sums, gpus = tables[0], np.array([float(family.gpus) for family, _, _ in menus[0]])
    for table, menu in zip(tables[1:], menus[1:], strict=True):
        sums = (sums[:, None] + table).reshape(-1, len(products))
        gpus = np.add.outer(gpus, [float(family.gpus) for family, _, _ in menu]).reshape(-1)
    return sums, gpus


def _networks(instance: Instance, slot: tuple[Workload, ...], as_it_stands: bool) -> Iterator[Network]:
    """The networks on which workloads meet their bounds, new ones and the one that stands."""
    slot = tuple(one for one in instance.workload if one.name in {asked.name for asked in slot})
    new = instance.model_copy(update={"existing": (), "workload": slot})
    job, space, gpu = Job(new, 1.0), Space(instance=instance), instance.cluster.gpu.name
    for gpus in job.sizes:
        families = [] if as_it_stands else job.laid(gpus)
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
    if network.fibre:
        listed["optics", "fibre"] = 1.0, 0.0  # in whole dollars
    for tier in (tier for stands in instance.existing for tier in stands.tiers):  # which need not be listed
        for kind, part in (("switch", tier.switch), ("optics", tier.optic)):
            listed.setdefault((kind, part.name), (0.0, part.w))
    return listed


def _units(networks: list[Network], products: list[tuple[str, str]]) -> Floats:
    """Units of each product in networks whose domains are full."""
    rows = []
    for family, uplinks, gpu in networks:
        units: Counter[tuple[str, str]] = Counter()
        units.update(counted_units(family, uplinks))
        units["gpu", gpu] = family.installed_gpus
        units["optics", "fibre"] = round(sum(one.units * one.usd for one in family.fibre(uplinks)))
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
    if asked.startswith("islands") and (text := uncertified(instance, plan)):
        return text
    new = solve(Instance.model_validate({**table, "existing": ()})).objective.value
    rivals = {"all new": new, "what stands": least(instance, as_it_stands=True)}
    dearer = [name for name, usd in rivals.items() if usd is not None and found > usd * (1 + 1e-9)]
    return f"the answer is dearer than {dearer}" if dearer else ""


def uncertified(instance: Instance, plan: Plan) -> str:
    """What is wrong with the proof of a plan of islands: it proves nothing, or that of fewer networks too much."""
    found = certify(instance, plan, prove(instance, plan))
    if not found.ok:
        return f"not certified: {found.missing}"
    kinds = [hb.gpus[0] for hb in instance.network.hb_domains]
    left_out: list[tuple[str, Any, Any]] = [("standing", Space, lambda *_: None)]
    left_out += [
        ("questions_by_gpu", listing, lambda one, kind=kind: [q for q in questions_by_gpu(one) if kind == _kind(q)])
        for kind in kinds
        if instance.mixes_gpus
    ]
    for name, holder, fewer in left_out:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(holder, name, fewer)
            worse = solve(instance)
            forged = prove(instance, worse)
        is_bound = worse.objective.value is not None and plan.objective.value is not None
        is_worse = not is_bound or worse.objective.value > plan.objective.value * (1 + 1e-9)
        if is_worse and plan.objective.value is not None and certify(instance, worse, forged).ok:
            return f"a bound is certified that leaves out networks: {name}"
    return ""


def _kind(instance: Instance) -> str:
    return instance.cluster.gpu.name


def misread(asked: str, seed: int) -> str:
    """What `explain` says of a question that enumeration does not."""
    table = drawn(asked, seed)
    why = explain(Instance.model_validate(table), time_limit_s=600)
    for rival in why.rivals:
        if text := _other(table, _without_rivals(table, rival), rival.value):
            return f"{rival.premise}: {text}"
    for bound in why.bounds:
        for near in filter(None, (bound.tighter, bound.looser, bound.without)):
            number = near.bound * (1 + 1e-9)
            if bound.limit.startswith("workload"):
                jobs = [dict(one) for one in table["workload"]]
                jobs[int(bound.limit[len("workload[")])]["max_iteration_time_s"] = number
                changes: dict[str, Any] = {"workload": jobs}
            elif bound.limit.startswith("cluster.gpus"):
                changes = {"cluster": {**table["cluster"], "gpus": round(near.bound)}}
            else:
                names = [OLD, NEW] if isinstance(table["cluster"]["gpu"], list) else [OLD]
                ours = [name for name in names if name in bound.limit] or names
                gpus = [
                    {"extends": name, "name": name} | ({"hbm_gb": number} if name in ours else {}) for name in names
                ]
                changes = {"cluster": {**table["cluster"], "gpu": gpus}}
            if text := _other(table, changes, near.value):
                return f"{bound.limit} = {near.bound}: {text}"
    bought = all_bought(Instance.model_validate(table))
    listed = [price for price in why.prices if price.unit in ("USD", "W") and not price.item.startswith("th")]
    faults = (_outside(table, price, bought) for price in listed)  # of all but fibre
    return next(filter(None, faults), "")


def _moved(part: Any, item: str, figures: dict[str, float]) -> Any:
    """Tables in which a product of this name has another power, where it has one of its own."""
    if isinstance(part, list):
        return [_moved(one, item, figures) for one in part]
    if not isinstance(part, dict):
        return part
    own = figures if part.get("name") == item and "w" in part else {}
    return {key: _moved(value, item, figures) for key, value in part.items()} | own


def _outside(table: dict[str, Any], price: PriceRange, bought: Bought) -> str:
    """Whether the least cost is a straight line in a price, or a power, over its range, and lower beyond it. What
    stands has the power of the list."""
    figure = price.unit.lower()

    def cost(usd: float) -> float:
        network = {**table["network"]}
        for key in ("hb_domains", "nics", "switches", "optics"):
            name = f"{figure}_per_gpu" if key == "hb_domains" else figure
            network[key] = [one | ({name: usd} if one["name"] == price.item else {}) for one in network[key]]
        names = table["cluster"]["gpu"] if isinstance(table["cluster"]["gpu"], list) else [table["cluster"]["gpu"]]
        gpus = [{"extends": gpu, "name": gpu, figure: usd} if gpu == price.item else gpu for gpu in names]
        stands = _moved(table["existing"], price.item, {"w": usd}) if figure == "w" else table["existing"]
        changes = {"network": network, "cluster": {**table["cluster"], "gpu": gpus}, "existing": stands}
        return least(Instance.model_validate(table | changes), bought=bought)

    low, high, now = price.low, price.high or 2 * price.now + 100, price.now
    if high <= low:
        return ""
    slope = (cost(high) - cost(low)) / (high - low)
    line = {usd: cost(low) + slope * (usd - low) for usd in (low - 0.1 * (now - low) - 1, now, high * 1.1 + 1)}
    beyond = [usd for usd in line if (usd > high and price.high) or 0 <= usd < low]
    straight = math.isclose(cost(now), line[now], rel_tol=1e-7, abs_tol=0.01)
    lower = all(cost(usd) < line[usd] for usd in beyond)
    return "" if straight and lower else f"{price.item} from {low} to {price.high}: straight {straight}, lower {lower}"


def _without_rivals(table: dict[str, Any], rival: Rival) -> dict[str, Any]:
    """The tables of a question with nothing but a choice in its list, or without it."""
    place, _, key = rival.part.partition(".")
    entries = table[place][key] if isinstance(table[place][key], list) else [table[place][key]]
    kept = [one for one in entries if (_name(one) == rival.choice) != rival.excluded]
    if key != "gpu":
        return {place: {**table[place], key: kept}}
    sold = [hb for hb in table["network"]["hb_domains"] if hb["gpus"] == kept]
    shared = {"sharing": {"mode": table["sharing"]["mode"]}, "network": {**table["network"], "hb_domains": sold}}
    return {"cluster": {**table["cluster"], "gpu": kept}, **shared}


def _other(table: dict[str, Any], changes: dict[str, Any], value: float | None) -> str:
    best = least(Instance.model_validate(table | changes))
    told = math.inf if value is None else value
    return "" if math.isclose(told, best, rel_tol=1e-7, abs_tol=1e-6) else f"{told!r} is said, {best!r} is right"


def _name(entry: Any) -> str:
    return entry["name"] if isinstance(entry, dict) else str(entry)


def campaign(
    count: int, start: int = 0, kinds: Sequence[str] = ASKED, fault_of: Callable[[str, int], str] = fault
) -> Counter[str]:
    """How many questions of each kind were right, wrong, or had no plan."""
    found: Counter[str] = Counter()
    for number in range(count):
        asked, seed = kinds[number % len(kinds)], start + number // len(kinds)
        try:
            text = fault_of(asked, seed)
        except InstanceError as error:  # a question that cannot be asked is told and counted
            text = f"{type(error).__name__}: {error}"
        found[f"{asked}: {'wrong' if text else 'right'}"] += 1
        if text:
            sys.stdout.write(f"{asked}, seed {seed}: {text}\n")
    return found


def reasons(count: int, start: int = 0) -> Counter[str]:
    """The same of what is explained; of a list of GPUs that is the best choice alone."""
    return campaign(count, start, [asked for asked in ASKED if asked != "another generation"], misread)


def watts(count: int, start: int = 0) -> Counter[str]:
    """The same where what stands has several NICs a GPU; half of these questions minimise power, as the first."""
    return campaign(count, start, ["two NICs"], misread)


if __name__ == "__main__":
    if is_reasons := sys.argv[1:2] == ["reasons"]:
        sys.argv.pop(1)
    by_hand(reasons if is_reasons else campaign)
