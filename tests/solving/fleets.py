"""Fleets for tests: random ones with phases, sites, cores, doubts and losses, and two workloads on islands."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

from coopt.columns.grid import context_of
from coopt.instance.schema import Instance
from coopt.instance.variants import of_phase
from tests.conftest import DISCIPLINES, ask, question, small_model, switch
from tests.solving.every_optic import optics
from tests.solving.fleet_oracle import Job
from tests.solving.own_ends import modules, switch_of_cages
from tests.solving.partition_oracle import discounts

KINDS = ("hb", "nic", "switch", "optics")
SHAPE = small_model(layers=4, hidden=2048, heads=16, kv_heads=16, ffn=8192)

SIDES = ("planes", "planes", "shared", "bundles", "both", "filled", "filled", "tiers", "tiers")
"""Planes of NICs, NICs of several GPUs, bundles in pods, planes with bundles, domains that are not filled alike, and
products by tier."""
JOINED = ("joined", "joined", "shared")
"""Planes that take two tiers beside them, for cores."""
ENDS = ("ends",)
"""Links with a module of its own at either end."""
CORE_ENDS = ("core ends",)
"""The same, with modules that reach a core and bounds that are seldom in the way."""
AT_ONCE = ("filled", "tiers")
"""What networks that grow do not have."""


@st.composite
def fleets(
    draw: st.DrawFn,
    phases: tuple[int, ...] = (1,),
    sites: tuple[int, ...] = (0,),
    cores: bool = False,
    doubts: bool = False,
    losses: bool = False,
    many_sided: tuple[str, ...] = (),
) -> Instance:
    """Two or three workloads on up to 32 GPUs.

    Parameters
    ----------
    phases, sites
        How many there may be.
    cores, doubts, losses
        Whether there may be cores, intervals of prices and efficiencies, and losses to survive.
    many_sided
        Which of `SIDES` networks may have; those drawn more often stand more than once.
    """
    count = draw(st.sampled_from(phases))
    core_ends = many_sided == CORE_ENDS
    gpus = sorted(draw(st.lists(st.sampled_from([32] if core_ends else [16, 24, 32]), min_size=count, max_size=count)))
    include = draw(st.sampled_from([[*KINDS, "gpu"], [*KINDS, "gpu"], ["nic", "switch", "gpu"]]))
    network, workloads = _network(draw, gpus[-1]), draw(st.sampled_from([2, 2, 3]))
    if many_sided:
        sides = [side for side in many_sided if count == 1 or side not in AT_ONCE]
        network |= _many_sided(draw, network, sides)
        include = include if "link_ends" not in network else [*KINDS, "gpu"]
    joined = any(switch["name"] == "core" for switch in network["switches"])
    large = "tier_switches" in network or "link_ends" in network or joined
    sized = {"gpus": [8, 12, 16]} if large else {}  # so many take two tiers
    aims = ["capex", "tco"] if count > 1 else ["capex", "tco", "power"]
    table = question(
        cluster={"gpu": "h100-sxm", "gpus": gpus[-1]},
        workload=[_workload(draw, w, gpus[-1], few=count * workloads > 4) | sized for w in range(workloads)],
        network=network,
        objective={"minimize": draw(st.sampled_from(aims)), "include": include, "usd_per_kwh": 0.5, "pue": 1.25},
        limits=_limits(draw, gpus[-1], phased=count > 1),
        sharing={
            "mode": "partition",
            "most_products": {kind: 1 for kind in KINDS if draw(st.integers(0, 3)) == 0},
            "discount": list(discounts(draw, network, include, gpus[-1])),
        },
    )
    if "link_ends" in network or joined:  # modules and planes matter where networks of two tiers meet bounds
        table["limits"] = {key: (16 if core_ends else 4) * cap for key, cap in table["limits"].items()}
        for workload in table["workload"]:
            workload["max_iteration_time_s"] *= 16 if core_ends else 4
    if cores and (joined or core_ends or draw(st.integers(0, 3))):
        table["sharing"]["core"] = core = _core(draw, network)
        (box,) = (switch for switch in network["switches"] if switch["name"] == core["switch"])
        if box.get("cages", box["radix"]) < workloads:  # a core needs a cage for each island
            table["network"]["switch_cages"] = "told"
    if count > 1:
        table["phase"] = [_phase(draw, t, gpus, workloads, count) for t in range(count)]
    table["site"] = [_site(draw, s, gpus[-1]) for s in range(draw(st.sampled_from(sites)))]
    if robust := _robust(draw, doubts=doubts, losses=losses):
        table["robust"] = robust
    if draw(st.booleans()):
        _attain(draw, table)
    return Instance.model_validate(table)


def _network(draw: st.DrawFn, gpus: int) -> dict[str, Any]:
    money = st.integers(0, 3000)
    sizes = draw(st.lists(st.sampled_from([1, 2, 4, 6, 8]), min_size=1, max_size=2, unique=True))
    radices = draw(st.lists(st.sampled_from([4, 6, 8, 12]), min_size=1, max_size=2, unique=True))
    rates = draw(st.lists(st.sampled_from([25, 100, 400]), min_size=1, max_size=2, unique=True))
    return {
        "hb_domains": [
            {"name": f"hb{n}", "size": n, "gbyte_s": 450, "usd_per_gpu": draw(money), "w_per_gpu": 30, "racks": n / 8}
            for n in sizes
        ],
        "fabrics": draw(
            st.lists(st.sampled_from(["rail-only", "rail-optimized", "clos"]), min_size=1, max_size=2, unique=True)
        ),
        "nics": [{"name": f"nic{r}", "gbit_s": r, "usd": draw(money), "w": 20} for r in rates],
        "switches": [switch(k, draw(money) * 4, r) | {"name": f"{k}x{r}"} for k in radices for r in rates],
        "optics": optics(draw, rates, (1, 1, 1, 2)),
        "oversubscription": draw(st.sampled_from([1.0, 2.0, 3.5])),
        **draw(st.sampled_from(DISCIPLINES)),
    }


def _many_sided(draw: st.DrawFn, network: dict[str, Any], sides: list[str]) -> dict[str, Any]:
    """Keys of networks with planes, shared NICs, bundles in pods, domains that are not filled alike, or several
    products."""
    kind = draw(st.sampled_from(sides))
    if kind == "filled":
        sizes = draw(st.lists(st.sampled_from([3, 5, 6, 7, 8]), min_size=1, max_size=2, unique=True))
        (first, *_) = network["hb_domains"]
        domains = [first | {"name": f"hb{size}", "size": size, "racks": 1} for size in sizes]
        spread = {"routing": "spray"} if network["routing"] == "pinned" else {}  # paths are laid in even domains alone
        return {"domain_fill": "any", "hb_domains": domains, **spread}
    found: dict[str, Any] = {}
    if kind == "tiers":
        lanes = st.sampled_from([None, None, 50, 100])
        dear = {4: 400, 8: 4000}  # so that small leaves below large spines are at times the cheapest
        boxes = [switch(k, draw(st.integers(1, usd)), 400) for k, usd in dear.items()]
        named = [box | {"name": f"{box['radix']}-port", "lane_gbit_s": draw(lanes)} for box in boxes]
        (first, *_), nic = network["hb_domains"], {"name": "nic400", "gbit_s": 400, "usd": 900, "w": 20}
        domains = [first | {"name": "hb2", "size": 2, "racks": 1}]
        own = {"nics": [nic], "optics": optics(draw, [400]), "hb_domains": domains, "nics_per_gpu": 2}
        own |= {"fabrics": ["clos", "rail-optimized"]}
        return {"tier_switches": "any", "switches": named, **own}
    if kind in ("ends", "core ends"):
        core = kind == "core ends"
        (first, *_), nic = network["hb_domains"], {"name": "nic400", "gbit_s": 400, "usd": 900, "w": 20}
        domains = [first | {"name": f"hb{size}", "size": size, "racks": 1} for size in (1, 2)]
        ports = [8, 12, 16] if core else [4, 8]
        radices = draw(st.lists(st.sampled_from(ports), min_size=1, max_size=1 if core else 2, unique=True))
        money = st.integers(0, 3000)
        boxes = [switch_of_cages(draw, radix, money, (1,)) for radix in radices]
        cable, *others = modules(draw, money, st.integers(0, 30))
        listed = [cable | {"usd": cable["usd"] + 2000}, *others]  # so that modules are worth having
        listed = [module | {"reach_m": 500} for module in listed[:4]] if core else listed[:5]
        own = {"nics": [nic], "switches": boxes, "optics": listed}
        own |= {"fabrics": ["clos", "rail-optimized"], "nics_per_gpu": 2}  # ends enough for two tiers
        own |= {"max_tiers": 2, "fabrics": draw(st.sampled_from(["clos", "rail-optimized"]))} if core else {}
        own["switch_cages"] = draw(st.sampled_from(["told", "kept"]))
        return {"link_ends": "any", "hb_domains": domains, **own}
    if kind == "shared" and any(domain["size"] % 2 == 0 for domain in network["hb_domains"]):
        found["gpus_per_nic"] = [1, 2]
    if kind in ("bundles", "both"):
        found["pod_bundles"] = draw(st.sampled_from([[1, 2], [2]]))
        found["routing"] = draw(st.sampled_from(["spray", 1.5]))
        (first, *_) = network["hb_domains"]  # ends enough for three tiers
        found |= {"nics_per_gpu": 4, "hb_domains": [first | {"name": "hb2", "size": 2, "racks": 1}]}
        rates = [nic["gbit_s"] for nic in network["nics"]]
        network["switches"] = [switch(8, draw(st.integers(0, 9000)), rate) | {"name": f"8x{rate}"} for rate in rates]
    if kind in ("planes", "both", "joined"):
        money, ways = st.integers(0, 3000), draw(st.sampled_from([(2,), (2, 4)]))
        found["nic_planes"] = draw(st.sampled_from([[1, 2], [1, 2, 4], [2]]))
        found["nics"] = [nic | {"ports": [1, 2, 4]} for nic in network["nics"]]
        found["switches"] = [
            one | {"modes": [{"radix": one["radix"] * n, "port_gbit_s": one["port_gbit_s"] / n} for n in ways]}
            for one in network["switches"]
        ]
        found["optics"] = [
            *(optic | {"breakout": draw(st.sampled_from([[2], [2, 4]]))} for optic in network["optics"]),
            *(
                {
                    "name": f"half{nic['gbit_s']}",
                    "gbit_s": nic["gbit_s"] / 2,
                    "reach_m": 500,
                    "usd": draw(money),
                    "w": 5,
                }
                for nic in network["nics"]
                if draw(st.booleans())
            ),
        ]
    if kind == "joined":
        (first, *_) = network["hb_domains"]
        found["hb_domains"] = [first | {"name": f"hb{size}", "size": size, "racks": 1} for size in (1, 2)]
        found["nic_planes"], rate = draw(st.sampled_from([[2], [2], [1, 2], [2, 4]])), network["nics"][0]["gbit_s"] / 2
        found["switches"].append(switch(draw(st.sampled_from([4, 8])), draw(st.integers(0, 3000)), rate))
        found["switches"][-1]["name"] = "core"
        found["optics"].append(
            {"name": "far", "gbit_s": rate, "reach_m": 500, "usd": draw(st.integers(0, 3000)), "w": 5}
        )
    return found


def _workload(draw: st.DrawFn, w: int, gpus: int, *, few: bool) -> dict[str, Any]:
    batch = draw(st.sampled_from([8, 12, 24]))
    sizes = [[4, 8], [4, 8, 12], [8, 16], [2, 6, 12], [6, 12]]
    return {
        "name": f"w{w}",
        "model": SHAPE,
        "global_batch": batch,
        "allow_tp_across": True,
        "max_iteration_time_s": batch / 8 * draw(st.floats(0.02, 0.3)),
        "gpus": draw(st.sampled_from(sizes if few or gpus > 16 else [None, *sizes])),
        "mapping": {"micro_batch": [1, 2], "recompute": "none", "zero": 0, "sequence_parallel": [True, False]},
    }


def _limits(draw: st.DrawFn, gpus: int, *, phased: bool) -> dict[str, float]:
    limits = {
        "power_mw": draw(st.sampled_from([None, None, gpus / 1000, gpus / 2000])),
        "racks": draw(st.sampled_from([None, None, None, gpus / 8])),
        "capex_usd": draw(st.sampled_from([None, None, 30_000.0 * gpus, 4_000.0 * gpus])),
    }
    return {key: value for key, value in limits.items() if value is not None and not (phased and key == "capex_usd")}


def _core(draw: st.DrawFn, network: dict[str, Any]) -> dict[str, Any]:
    """A core of one of the switches, from a link for many GPUs to one for each; on planes one of their links' rate."""
    share = draw(st.sampled_from([1 / 32, 1 / 8, 0.1, 0.3, 0.5, 1.0])) / max(network.get("gpus_per_nic", [1]))
    named = [one for one in network["switches"] if one["name"] == "core"]
    rates = {nic["gbit_s"] / planes for nic in network["nics"] for planes in network.get("nic_planes", [1])}
    one = draw(st.sampled_from(named or [one for one in network["switches"] if one["port_gbit_s"] in rates]))
    return {"switch": one["name"], "gbit_s_per_gpu": one["port_gbit_s"] * share}


def _phase(draw: st.DrawFn, t: int, gpus: list[int], workloads: int, count: int) -> dict[str, Any]:
    """A phase at prices that rise and fall, with all workloads or some; the last one has all of them."""
    factors = st.sampled_from([0.0, 0.5, 1.0, 1.0, 2.0])
    some = draw(st.lists(st.sampled_from(range(workloads)), min_size=1, max_size=workloads, unique=True))
    named = [_asked(draw, w) for w in (range(workloads) if t == count - 1 and draw(st.booleans()) else some)]
    everybody = draw(st.integers(0, 2)) == 0 or (t == count - 1 and len(named) < workloads)
    return {
        "year": float(2 * t),
        "gpus": gpus[t],
        "workloads": [] if everybody else named,
        "price": {kind: draw(factors) for kind in (*KINDS, "gpu", "energy")},
        "retrofit_usd_per_link": float(draw(st.sampled_from([0, 0, 100, 5000]))),
    }


def _asked(draw: st.DrawFn, w: int) -> dict[str, Any] | str:
    """A workload with its own bound, or another one."""
    bound = {"name": f"w{w}", "max_iteration_time_s": draw(st.floats(0.03, 0.8))}
    return draw(st.sampled_from([f"w{w}", bound]))


def _site(draw: st.DrawFn, s: int, gpus: int) -> dict[str, Any]:
    own = {
        "pue": draw(st.sampled_from([None, 1.0, 1.5])),
        "usd_per_kwh": draw(st.sampled_from([None, 0.0, 0.25, 2.0])),
    }
    return {
        "name": f"s{s}",
        "power_mw": draw(st.sampled_from([gpus / 500, gpus / 1000, gpus / 2000])),
        **{key: value for key, value in own.items() if value is not None},
    }


def _robust(draw: st.DrawFn, *, doubts: bool, losses: bool) -> dict[str, Any]:
    interval = st.sampled_from([(1.0, 1.0), (0.5, 1.0), (0.5, 2.0), (1.0, 3.0)])
    found: dict[str, Any] = {}
    if doubts:
        kinds = draw(st.lists(st.sampled_from([*KINDS, "gpu"]), min_size=1, max_size=2, unique=True))
        found["prices"] = {kind: draw(interval) for kind in kinds}
        found["efficiency"] = draw(st.sampled_from([(1.0, 1.0), (1.0, 1.0), (0.8, 1.0), (0.9, 1.2)]))
        open_ended = any(low < high for low, high in (found["efficiency"], *found["prices"].values()))
        found["aim"] = draw(st.sampled_from(["worst-case", "regret", "regret"] if open_ended else ["worst-case"]))
    survive = draw(st.lists(st.sampled_from(["nic", "leaf", "plane", "domain"]), max_size=2, unique=True))
    if losses and survive:
        found |= {"survive": survive, "slower": draw(st.sampled_from([1.0, 1.2, 2.0, 4.0]))}
    return found


def _attain(draw: st.DrawFn, table: dict[str, Any]) -> None:
    """Give a workload as its bound the exact time of some network, so that uplinks decide."""
    instance = Instance.model_validate(table)
    alone = instance.model_copy(update={"site": (), "robust": None})
    asked = of_phase(alone, len(alone.phase) - 1) if alone.phase else alone
    w = draw(st.sampled_from(range(len(asked.workload))))
    job = Job(asked.model_copy(update={"workload": (asked.workload[w],)}), 1.0)
    networks = [family for gpus in job.sizes[-2:] for family in job.networks(gpus) if family.tiers > 1]
    if networks:
        family = draw(st.sampled_from(networks))
        context = context_of(family)
        times_s = job.pool(context.site).time_s(context, draw(st.sampled_from(family.uplink_choices)))
        if math.isfinite(fastest_s := float(times_s.min(initial=math.inf))):
            for bound in _bounds_of(table, asked.workload[w].name):
                bound["max_iteration_time_s"] = fastest_s


def _bounds_of(table: dict[str, Any], name: str) -> Iterator[dict[str, Any]]:
    """Every table that bounds a workload."""
    yield from (one for one in table["workload"] if one["name"] == name)
    named = (one for phase in table.get("phase", ()) for one in phase["workloads"])
    yield from (one for one in named if not isinstance(one, str) and one["name"] == name)


def two(**changes: Any) -> Instance:
    """Two workloads on up to 32 GPUs."""
    common = {"model": SHAPE, "mapping": {"recompute": "none", "zero": 0, "micro_batch": [1, 2]}}
    table: dict[str, Any] = {
        "cluster__gpus": 32,
        "workload": [
            {"name": "large", "global_batch": 24, "max_iteration_time_s": 0.4, "gpus": [8, 16], **common},
            {"name": "small", "global_batch": 8, "max_iteration_time_s": 0.4, "gpus": [8], **common},
        ],
        "network__hb_domains": [
            {"name": "hb4", "size": 4, "gbyte_s": 450, "usd_per_gpu": 100, "w_per_gpu": 30, "racks": 1}
        ],
        "network__switches": [switch(16, 11000)],
        "objective": {"include": ["hb", "nic", "switch", "optics", "gpu"]},
        "sharing": {"mode": "partition"},
    }
    return ask(**{**table, **changes})


def growing_at(east_mw: float, west_mw: float, **changes: Any) -> Instance:
    """Two phases at two sites; the second phase takes more."""
    sites = [{"name": name, "power_mw": mw, "pue": 1.5} for name, mw in (("east", east_mw), ("west", west_mw))]
    phases = [{"year": 0, "gpus": 16, "workloads": ["small"]}, {"year": 2, "gpus": 32}]
    objective = {"minimize": "tco", "include": ["hb", "nic", "switch", "optics", "gpu"]}
    return two(site=sites, phase=phases, objective=objective, **changes)
