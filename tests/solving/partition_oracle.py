"""Random small partitions, and their optimum by every island for every workload and every choice of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from itertools import product
from typing import Any

from hypothesis import strategies as st

from coopt.instance.schema import CostKind, Instance
from coopt.network.family import Family
from coopt.network.part_bills import units_of
from coopt.network.parts import racks, weigh
from coopt.network.space import families
from tests.conftest import DISCIPLINES, question, small_model, switch
from tests.solving.every_optic import optics, with_every_optic
from tests.solving.oracle import fastest_times_s, load

KINDS = ("hb", "nic", "switch", "optics")
ROUNDING = 2.0**-48  # of a limit, by which sums in another order may exceed it


@st.composite
def partitions(draw: st.DrawFn, core: bool = False) -> Instance:
    """Two or three workloads on up to 48 GPUs with whole prices; every coupling, from hopeless to loose."""
    gpus = draw(st.sampled_from([16, 24, 32, 48]))
    money = st.integers(0, 3000)
    sizes = draw(st.lists(st.sampled_from([1, 2, 4, 6, 8]), min_size=1, max_size=3, unique=True))
    radices = draw(st.lists(st.sampled_from([4, 6, 8, 12]), min_size=1, max_size=2, unique=True))
    rates = draw(st.lists(st.sampled_from([100, 400]), min_size=1, max_size=2, unique=True))
    include = draw(st.sampled_from([[*KINDS], [*KINDS, "gpu"], [*KINDS, "gpu"], ["switch", "nic"]]))
    network = {
        "hb_domains": [
            {"name": f"hb{n}", "size": n, "gbyte_s": 450, "usd_per_gpu": draw(money), "w_per_gpu": 30, "racks": n / 8}
            for n in sizes
        ],
        "fabrics": draw(st.lists(st.sampled_from(["rail-only", "rail-optimized", "clos"]), min_size=1, unique=True)),
        "nics": [{"name": f"nic{r}", "gbit_s": r, "usd": draw(money), "w": 20} for r in rates],
        "nics_per_gpu": draw(st.sampled_from([1, [1, 2]])),
        "switches": [
            switch(k, draw(money) * 4, r) | {"name": f"{k}x{r}", "reduces": True} for k in radices for r in rates
        ],
        "optics": optics(draw, rates, (1, 1, 1, 2)),
        "oversubscription": draw(st.sampled_from([1.0, 3.0, [1.0, 2.0]])),
        **draw(st.sampled_from(DISCIPLINES)),
    }
    limits = {
        "power_mw": draw(st.sampled_from([None, None, gpus / 1000, gpus / 2000])),
        "capex_usd": draw(st.sampled_from([None, None, 20_000.0 * gpus, 4_000.0 * gpus])),
        "racks": draw(st.sampled_from([None, None, gpus / 8])),
    }
    table = question(
        cluster={"gpu": "h100-sxm", "gpus": gpus},
        workload=[_workload(draw, w) for w in range(draw(st.sampled_from([2, 2, 3])))],
        network=network,
        objective={"minimize": draw(st.sampled_from(["capex", "capex", "power", "tco"])), "include": include},
        limits={key: value for key, value in limits.items() if value is not None},
        sharing={
            "mode": "partition",
            "most_products": {kind: 1 for kind in KINDS if draw(st.integers(0, 2)) == 0},
            "discount": list(discounts(draw, network, include, gpus)),
        }
        | ({"core": _core(draw, network)} if core else {}),
    )
    return Instance.model_validate(table)


def _workload(draw: st.DrawFn, w: int) -> dict[str, Any]:
    batch = draw(st.sampled_from([8, 12, 24]))
    shape = small_model(layers=4, hidden=2048, heads=16, kv_heads=16, ffn=8192)
    if draw(st.integers(0, 3)) == 0:
        shape |= {"experts": 4, "top_k": 2, "ffn": 4096}
    return {
        "name": f"w{w}",
        "model": shape,
        "global_batch": batch,
        "allow_tp_across": True,
        "max_iteration_time_s": batch / 8 * draw(st.floats(0.02, 0.2)),
        "gpus": draw(st.sampled_from([None, None, [4, 8, 12]])),
        "options": {"collectives": draw(st.sampled_from(["levels", "fastest", "in-network"]))},
        "mapping": {"micro_batch": [1, 2], "recompute": "none", "zero": 0, "sequence_parallel": [True, False]},
    }


def _core(draw: st.DrawFn, network: dict[str, Any]) -> dict[str, Any]:
    """A core of one of the switches, from a link for many GPUs to one for each."""
    one = draw(st.sampled_from(network["switches"]))
    share = draw(st.sampled_from([1 / 32, 1 / 8, 0.1, 0.3, 1 / 3, 0.5, 1.0]))
    return {"switch": one["name"], "gbit_s_per_gpu": one["port_gbit_s"] * share}


def discounts(draw: st.DrawFn, network: dict[str, Any], include: list[str], gpus: int) -> Iterator[dict[str, Any]]:
    names = {"hb": "hb_domains", "nic": "nics", "switch": "switches", "optics": "optics"}
    listed = {kind: [one["name"] for one in network[key]] for kind, key in names.items()} | {"gpu": ["h100-sxm"]}
    for kind in include:
        for item in listed[kind]:
            if draw(st.booleans()):
                first = draw(st.integers(1, gpus if kind != "switch" else 6))
                yield {
                    "kind": kind,
                    "item": item,
                    "from": [first, first + draw(st.integers(1, gpus))],
                    "off": draw(st.sampled_from([[0.1, 0.3], [0.5, 0.5], [0.02, 0.4]])),
                    "applies": draw(st.sampled_from(["all-units", "incremental"])),
                }


class Choice:
    """An island with its use of everything."""

    def __init__(self, instance: Instance, family: Family, uplinks: int) -> None:
        self.units = +Counter(units_of(instance, family, uplinks))
        self.links = family.core_links
        self.gpus, self.idle = family.gpus, family.installed_gpus - family.gpus
        self.racks = racks(family) or 0
        self.key = (self.gpus, self.idle, self.racks, self.links, tuple(sorted(self.units.items())))


def choices(instance: Instance) -> list[list[Choice]]:
    """Every island on which a workload meets its bound, alike ones once, for each workload."""
    gpu, found = instance.cluster.gpu, [dict[Any, Choice]() for _ in instance.workload]
    for gpus in range(1, instance.cluster.gpus[0] + 1):
        asking = [w for w, one in enumerate(instance.workload) if one.gpus is None or gpus in one.gpus]
        cluster = instance.cluster.model_copy(update={"gpus": (gpus,)})
        question = instance.model_copy(update={"cluster": cluster})
        networks = list(with_every_optic(instance, families(question))) if asking else []
        load([instance.workload[w] for w in asking], gpu, networks)
        for family in networks:
            times = [(w, fastest_times_s(instance.workload[w], gpu, family)) for w in asking]
            for n, uplinks in enumerate(family.uplink_choices):
                in_time = [w for w, times_s in times if times_s[n] <= instance.workload[w].bound_s]
                if in_time:
                    choice = Choice(instance, family, uplinks)
                    for w in in_time:
                        found[w].setdefault(choice.key, choice)
    return [list(one.values()) for one in found]


def fewest(several: list[Choice]) -> list[Choice]:
    """Without those that take no less of anything than another: more units never cost less."""
    kept: list[Choice] = []
    for one in sorted(several, key=lambda c: (c.gpus, c.idle, c.racks, sum(c.units.values()))):
        if not any(
            a.idle <= one.idle
            and a.racks <= one.racks
            and a.links <= one.links
            and all(n <= one.units[p] for p, n in a.units.items())
            for a in kept
        ):
            kept.append(one)
    return kept


def enumerated(instance: Instance) -> float:
    """The least objective over every choice of islands within all limits; infinity when there is none."""
    return min((_enumerated(asked) for asked in with_every_core_optic(instance)), default=math.inf)


def with_every_core_optic(instance: Instance) -> Iterator[Instance]:
    """The instance with each optic named that fits the upper ends of links into its core; itself without a core."""
    core, network = instance.sharing.core, instance.network
    if core is None:
        yield instance
        return
    box = next(switch for switch in network.switches if switch.name == core.switch)
    for optic in network.optics:
        links = optic.gbit_s / box.port_gbit_s
        fits = links == 1
        if network.link_ends == "any" and links in optic.breakout:
            cages = box.cages or box.radix
            modules = min(cages, box.radix // links) if network.switch_cages == "kept" else box.radix // links
            in_box = box.radix % links == 0 and optic.gbit_s <= box.cage_gbit_s
            fits = fits or (in_box and modules >= len(instance.workload))
        if fits and optic.reach_m >= network.link_reach_m[-1]:
            sharing = instance.sharing.model_copy(update={"core": core.model_copy(update={"optic": optic.name})})
            yield instance.model_copy(update={"sharing": sharing})


def _enumerated(instance: Instance) -> float:
    menus = [fewest(each) for each in choices(instance)]
    return min((value(instance, chosen) for chosen in product(*menus)), default=math.inf)


def value(instance: Instance, chosen: tuple[Choice, ...]) -> float:
    """The objective of a choice, infinity beyond a limit."""
    limits, include, gpu = instance.limits, instance.objective.include, instance.cluster.gpu
    units = Counter[tuple[CostKind, str]]()
    for one in chosen:
        units.update(one.units)
    if instance.sharing.core is not None:
        name = instance.sharing.core.switch
        radix = next(switch.radix for switch in instance.network.switches if switch.name == name)
        units["switch", name] += math.ceil(sum(one.links for one in chosen) / radix)
    gpus = sum(one.gpus for one in chosen)
    for kind, most in instance.sharing.most_products.model_dump().items():
        if most is not None and len({name for of, name in units if of == kind}) > most:
            return math.inf
    units["gpu", gpu.name] = gpus * ("gpu" in include) + sum(one.idle for one in chosen) * ("hb" in include)
    counted = {key: n for key, n in units.items() if key[0] in include or key[0] == "gpu"}
    w = math.fsum(n * _list(instance)[key][1] for key, n in counted.items())
    usd = math.fsum(least_bill(instance, key, n) for key, n in counted.items())
    within = (
        gpus <= instance.cluster.gpus[0]
        and (limits.racks is None or sum(one.racks for one in chosen) <= limits.racks)
        and (limits.power_mw is None or w / 1e6 <= limits.power_mw * (1 + ROUNDING))
        and (limits.capex_usd is None or usd <= limits.capex_usd * (1 + ROUNDING))
    )
    return weigh(instance.objective, usd, w) if within else math.inf


def least_bill(instance: Instance, key: tuple[str, str], units: int) -> float:
    """The cheapest way to buy that many units or more, each quantity priced unit by unit."""
    usd = _list(instance)[key][0]
    found = next((d for d in instance.sharing.discount if (d.kind, d.item) == key), None)
    if found is None or not units:
        return units * usd
    steps = [(0, usd), *zip(found.begins, found.prices(usd), strict=True)]
    if found.applies == "incremental":
        return sum(next(p for begin, p in reversed(steps) if n >= begin) for n in range(units))
    most = max(units, steps[-1][0])
    return min(n * next(p for begin, p in reversed(steps) if n >= begin) for n in range(units, most + 1))


def _list(instance: Instance) -> dict[tuple[str, str], tuple[float, float]]:
    network, gpu = instance.network, instance.cluster.gpu
    listed = {("hb", hb.name): (hb.usd_per_gpu, hb.w_per_gpu) for hb in network.hb_domains}
    for kind, parts in (("nic", network.nics), ("switch", network.switches), ("optics", network.optics)):
        listed |= {(kind, part.name): (part.usd, part.w) for part in parts}
    return {**listed, ("gpu", gpu.name): (gpu.usd, gpu.w)}
