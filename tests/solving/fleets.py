"""Random small questions whose networks are coupled: fleets with phases, sites, cores, doubts and losses, islands, one
network that grows, and wishes for robust plans."""

import math
from collections.abc import Iterator
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from coopt.instance.couplings import Robust
from coopt.instance.schema import Instance
from coopt.instance.variants import of_phase
from coopt.network.growth import lines
from tests.conftest import DISCIPLINES, ask, question, small_model, switch
from tests.solving.every_optic import optics
from tests.solving.fleet_bills import Book
from tests.solving.fleet_oracle import LISTED, Job, TooManyError, fleets_of, menus_of, with_every_core_optic
from tests.solving.interrupted import failures, in_days
from tests.solving.oracle import fastest_s
from tests.solving.questions import modules, switch_of_cages

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
HALLS = ("hall",)
"""The same, each cable with the ends that reach as far as the hall takes it."""
CORE_HALLS = ("core hall",)
"""The same, beside a core."""
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
    core_ends = many_sided in (CORE_ENDS, CORE_HALLS)
    gpus = sorted(draw(st.lists(st.sampled_from([32] if core_ends else [16, 24, 32]), min_size=count, max_size=count)))
    include = draw(st.sampled_from([[*KINDS, "gpu"], [*KINDS, "gpu"], ["nic", "switch", "gpu"]]))
    network, workloads = _network(draw), draw(st.sampled_from([2, 2, 3]))
    if many_sided:
        sides = [side for side in many_sided if count == 1 or side not in AT_ONCE]
        network |= _many_sided(draw, network, sides)
        include = include if "link_ends" not in network else [*KINDS, "gpu"]
    joined = any(switch["name"] == "core" for switch in network["switches"])
    large = "tier_switches" in network or "link_ends" in network or joined
    sized = {"gpus": [8, 12, 16]} if large else {}  # so many take two tiers
    if count > 1 and "cables" in network:  # each length of cables has any of them in each phase
        network["optics"], workloads, sized = network["optics"][:4], 2, {"gpus": [4, 8]}
    aims = ["capex", "tco"] if count > 1 else ["capex", "tco", "power"]
    table = question(
        cluster={"gpu": "h100-sxm", "gpus": gpus[-1]},
        workload=[_workload(draw, w, gpus[-1], few=count * workloads > 4) | sized for w in range(workloads)],
        network=network,
        objective={"minimize": draw(st.sampled_from(aims)), "include": include, "usd_per_kwh": 0.5, "pue": 1.25}
        | _owned(draw),
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


def _network(draw: st.DrawFn) -> dict[str, Any]:
    sizes = draw(st.lists(st.sampled_from([1, 2, 4, 6, 8]), min_size=1, max_size=2, unique=True))
    radices = draw(st.lists(st.sampled_from([4, 6, 8, 12]), min_size=1, max_size=2, unique=True))
    rates = draw(st.lists(st.sampled_from([25, 100, 400]), min_size=1, max_size=2, unique=True))
    ratio = {"oversubscription": draw(st.sampled_from([1.0, 2.0, 3.5]))}
    return _parts(draw, sizes, radices, rates) | ratio | draw(st.sampled_from(DISCIPLINES))


def _parts(draw: st.DrawFn, sizes: list[int], radices: list[int], rates: list[int]) -> dict[str, Any]:
    """HB domains, NICs, switches and optics at whole prices, and the fabrics that may join them."""
    money = st.integers(0, 3000)
    return {
        "hb_domains": [
            {"name": f"hb{n}", "size": n, "gbyte_s": 450, "usd_per_gpu": draw(money), "w_per_gpu": 30, "racks": n / 8}
            for n in sizes
        ],
        "fabrics": draw(st.lists(st.sampled_from(["rail-only", "rail-optimized", "clos"]), min_size=1, unique=True)),
        "nics": [{"name": f"nic{r}", "gbit_s": r, "usd": draw(money), "w": 20} for r in rates],
        "switches": [
            switch(k, draw(money) * 4, r) | {"name": f"{k}x{r}", "reduces": True} for k in radices for r in rates
        ],
        "optics": optics(draw, rates),
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
    if kind in ("ends", "core ends", "hall", "core hall"):
        core = kind.startswith("core")
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
        return {"link_ends": "any", "hb_domains": domains, **own, **(hall(draw, own) if "hall" in kind else {})}
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
                    "name": f"half{nic['gbit_s']}", "gbit_s": nic["gbit_s"] / 2, "reach_m": 500, "usd": draw(money),
                    "w": 5,
                }
                for nic in network["nics"]
                if draw(st.booleans())
            ),
        ]  # fmt: skip
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


def hall(draw: st.DrawFn, network: dict[str, Any]) -> dict[str, Any]:
    """Rows of a hall, switches with or without heights, and a cable that reaches everywhere beside shorter ones."""
    first, *others = network["optics"]
    reaches = [draw(st.sampled_from([6, 10, 500])) for _ in others]
    halves = [first | {"name": "short", "usd": first["usd"] / 2, "reach_m": draw(st.sampled_from([6, 8, 10]))}]
    listed = [first | {"reach_m": 500}, *halves]
    listed += [one | {"reach_m": reach} for one, reach in zip(others, reaches, strict=True)]
    rows = {"racks_per_row": draw(st.sampled_from([1, 2, 5])), "row_pitch_m": draw(st.sampled_from([1.0, 3.0, 9.0]))}
    rows["switch_rack_units"] = draw(st.sampled_from([1.0, 4.0]))
    height = draw(st.sampled_from([{}, {"rack_units": 1}]))
    switches = [one | height for one in network["switches"]]
    rows |= draw(st.sampled_from([{}, {"switch_rack_kw": 1.0}]))
    return {"cables": "hall", "hall": rows, "switches": switches, "optics": listed} | _fibred(draw, listed)


def _fibred(draw: st.DrawFn, listed: list[dict[str, Any]]) -> dict[str, Any]:
    """Modules of one or two connectors, whose links have a pair of fibres each or two, with cables and splitters."""
    kinds = sorted({one["fibre"] for one in listed if "fibre" in one})
    if not kinds or not draw(st.integers(0, 3)):
        return {}
    names = {kind: draw(st.sampled_from([kind, f"200g-{kind}", f"100g-{kind}"])) for kind in kinds}
    optics = [
        one | {"fibre": names[one["fibre"]], "connectors": draw(st.sampled_from([1, 1, 2]))} if "fibre" in one else one
        for one in listed
    ]
    usd, metre = st.integers(0, 900), st.sampled_from([0, 1, 20, 90])
    fibre = [
        {"name": f"{kind}-{name}", "carries": carries, "pairs": pairs, "links": links, "usd": draw(usd)} | each
        for kind, carries in names.items()
        for name, pairs, links in (
            ("thin", draw(st.sampled_from([1, 2])), 1),
            ("thick", 8, 1),
            ("split2", 16, 2),
            ("split4", 16, 4),
        )
        for each in [{"usd_per_m": draw(metre)} if links == 1 else {}]
    ]
    return {"optics": optics, "fibre": fibre}


def _workload(draw: st.DrawFn, w: int, gpus: int, *, few: bool) -> dict[str, Any]:
    batch = draw(st.sampled_from([8, 12, 24]))
    sizes = [[4, 8], [4, 8, 12], [8, 16], [2, 6, 12], [6, 12]]
    return {
        "name": f"w{w}", "model": SHAPE, "global_batch": batch, "allow_tp_across": True,
        "max_iteration_time_s": batch / 8 * draw(st.floats(0.02, 0.3)),
        "gpus": draw(st.sampled_from(sizes if few or gpus > 16 else [None, *sizes])),
        "mapping": {"micro_batch": [1, 2], "recompute": "none", "zero": 0, "sequence_parallel": [True, False]},
    }  # fmt: skip


def _owned(draw: st.DrawFn) -> dict[str, float]:
    """Shares of a purchase that labour takes, and support a year; none as often as any."""
    return {key: draw(st.sampled_from([0.0, 0.0, 0.03, 0.5])) for key in ("labour_share", "support_share")}


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
        "year": float(2 * t), "gpus": gpus[t], "workloads": [] if everybody else named,
        "price": {kind: draw(factors) for kind in (*KINDS, "gpu", "energy")},
        "retrofit_usd_per_link": float(draw(st.sampled_from([0, 0, 100, 5000]))),
    }  # fmt: skip


def _asked(draw: st.DrawFn, w: int) -> dict[str, Any] | str:
    """A workload with its own bound, or another one."""
    bound = {"name": f"w{w}", "max_iteration_time_s": draw(st.floats(0.03, 0.8))}
    return draw(st.sampled_from([f"w{w}", bound]))


def _site(draw: st.DrawFn, s: int, gpus: int) -> dict[str, Any]:
    own = {"pue": draw(st.sampled_from([None, 1.0, 1.5])), "usd_per_kwh": draw(st.sampled_from([None, 0.0, 0.25, 2.0]))}
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


def _attain(draw: st.DrawFn, table: dict[str, Any], sizes: int = 2) -> None:
    """Give a workload as its bound the exact time of some network of the largest sizes, so that uplinks decide."""
    instance = Instance.model_validate(table)
    alone = instance.model_copy(update={"site": (), "robust": None})
    asked = of_phase(alone, len(alone.phase) - 1) if alone.phase else alone
    w = draw(st.sampled_from(range(len(asked.workload))))
    job = Job(asked.model_copy(update={"workload": (asked.workload[w],)}), 1.0)
    networks = [family for gpus in job.sizes[-sizes:] for family in job.networks(gpus) if family.tiers > 1]
    if networks:
        family = draw(st.sampled_from(networks))
        time_s = fastest_s(asked.workload[w], job.gpu, family, draw(st.sampled_from(family.uplink_choices)))
        if math.isfinite(time_s):
            for bound in _bounds_of(table, asked.workload[w].name):
                bound["max_iteration_time_s"] = time_s


def _bounds_of(table: dict[str, Any], name: str) -> Iterator[dict[str, Any]]:
    """Every table that bounds a workload."""
    yield from (one for one in table["workload"] if one["name"] == name)
    named = (one for phase in table.get("phase", ()) for one in phase["workloads"])
    yield from (one for one in named if not isinstance(one, str) and one["name"] == name)


@st.composite
def partitions(draw: st.DrawFn, core: bool = False) -> Instance:
    """Two or three workloads on up to 48 GPUs with whole prices; every coupling, from hopeless to loose."""
    gpus = draw(st.sampled_from([16, 24, 32, 48]))
    sizes = draw(st.lists(st.sampled_from([1, 2, 4, 6, 8]), min_size=1, max_size=3, unique=True))
    radices = draw(st.lists(st.sampled_from([4, 6, 8, 12]), min_size=1, max_size=2, unique=True))
    rates = draw(st.lists(st.sampled_from([100, 400]), min_size=1, max_size=2, unique=True))
    include = draw(st.sampled_from([[*KINDS], [*KINDS, "gpu"], [*KINDS, "gpu"], ["switch", "nic"]]))
    network = _parts(draw, sizes, radices, rates) | {
        "nics_per_gpu": draw(st.sampled_from([1, [1, 2]])),
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
        workload=[_team(draw, w) for w in range(draw(st.sampled_from([2, 2, 3])))],
        network=network,
        objective={"minimize": draw(st.sampled_from(["capex", "capex", "power", "tco"])), "include": include}
        | _owned(draw),
        limits={key: value for key, value in limits.items() if value is not None},
        sharing={
            "mode": "partition",
            "most_products": {kind: 1 for kind in KINDS if draw(st.integers(0, 2)) == 0},
            "discount": list(discounts(draw, network, include, gpus)),
        }
        | ({"core": _core(draw, network)} if core else {}),
    )
    return Instance.model_validate(table)


def _team(draw: st.DrawFn, w: int) -> dict[str, Any]:
    batch = draw(st.sampled_from([8, 12, 24]))
    shape = small_model(layers=4, hidden=2048, heads=16, kv_heads=16, ffn=8192)
    if draw(st.integers(0, 3)) == 0:
        shape |= {"experts": 4, "top_k": 2, "ffn": 4096}
    return {
        "name": f"w{w}", "model": shape, "global_batch": batch, "allow_tp_across": True,
        "max_iteration_time_s": batch / 8 * draw(st.floats(0.02, 0.2)),
        "gpus": draw(st.sampled_from([None, None, [4, 8, 12]])),
        "options": {"collectives": draw(st.sampled_from(["levels", "fastest", "in-network"]))},
        "mapping": {"micro_batch": [1, 2], "recompute": "none", "zero": 0, "sequence_parallel": [True, False]},
    }  # fmt: skip


def discounts(draw: st.DrawFn, network: dict[str, Any], include: list[str], gpus: int) -> Iterator[dict[str, Any]]:
    names = {"hb": "hb_domains", "nic": "nics", "switch": "switches", "optics": "optics"}
    listed = {kind: [one["name"] for one in network[key]] for kind, key in names.items()} | {"gpu": ["h100-sxm"]}
    for kind in include:
        for item in listed[kind]:
            if draw(st.booleans()):
                first = draw(st.integers(1, gpus if kind != "switch" else 6))
                yield {
                    "kind": kind, "item": item, "from": [first, first + draw(st.integers(1, gpus))],
                    "off": draw(st.sampled_from([[0.1, 0.3], [0.5, 0.5], [0.02, 0.4]])),
                    "applies": draw(st.sampled_from(["all-units", "incremental"])),
                }  # fmt: skip


@st.composite
def clusters(draw: st.DrawFn, halls: bool = False) -> Instance:
    """Two or three phases of up to 128 GPUs with whole prices that rise and fall; bounds from hopeless to loose. In
    halls, whose lengths choose cables, they are up to 16."""
    large = [[16, 64], [32, 128], [32, 96], [64, 64], [16, 32, 128], [32, 64, 96], [48, 96, 144]]
    gpus = draw(st.sampled_from([[4, 8], [2, 16], [8, 16], [16, 16], [4, 8, 16]] if halls else large))
    sizes = draw(st.lists(st.sampled_from([2, 4, 8, 16]), min_size=1, max_size=2, unique=True))
    rate = draw(st.sampled_from([25, 50, 100, 400]))
    radices = draw(st.lists(st.sampled_from([4, 6, 8, 12, 16]), min_size=1, max_size=2, unique=True))
    table = question(
        cluster__gpus=gpus[-1],
        workload=[_turn(draw, w) for w in range(draw(st.integers(1, 2)))],
        network=_parts(draw, sizes, radices, [rate])
        | {"oversubscription": draw(st.sampled_from([1.0, 2.0, 3.5, 7.0]))},
        objective={
            "minimize": draw(st.sampled_from(["capex", "capex", "tco"])),
            "include": draw(st.sampled_from([[*KINDS], ["switch", "optics"], [*KINDS, "gpu"]])),
            **_owned(draw),
        },
        limits=draw(st.sampled_from([{}, {}, {}, {"racks": gpus[-1] / 4}, {"power_mw": gpus[-1] / 7000}])),
        phase=[_stage(draw, t, count, gpus[-1]) for t, count in enumerate(gpus)],
    )
    if halls:
        network = _parts(draw, [2], [8], [400]) | {"oversubscription": draw(st.sampled_from([1.0, 2.0, 3.5]))}
        table["network"] = network | _many_sided(draw, network, ["hall"])
        del table["network"]["optics"][4:]  # each length of cables has any of them in each phase
        for optic in table["network"]["optics"]:  # so that what reaches farther costs more
            optic["usd"] = optic["usd"] // 4 + 4 * optic["reach_m"]
        table["objective"]["include"] = [*KINDS, "gpu"]
        table["limits"] = draw(st.sampled_from([{}, {}, {"racks": gpus[-1]}, {"power_mw": gpus[-1] / 600}]))
        table["workload"] = [one | {"global_batch": 48} for one in table["workload"]]
    if draw(st.booleans()):
        table["phase"] = list(_attained(draw, Instance.model_validate(table), table["phase"]))
    return Instance.model_validate(table)


def _attained(draw: st.DrawFn, instance: Instance, phases: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Phases whose bound is exactly the time of some network of one line, so that uplinks decide."""
    every = list(lines(instance))
    line = draw(st.sampled_from(every)) if every else None
    for t, phase in enumerate(phases):
        asked, time_s = of_phase(instance, t), math.inf
        if line is not None:
            family = line[t]
            time_s = fastest_s(
                asked.workload[0], asked.cluster.gpu, family, draw(st.sampled_from(family.uplink_choices))
            )
        bound = [{"name": "w0", "max_iteration_time_s": time_s}] if math.isfinite(time_s) else ["w0"]
        yield phase | {"workloads": bound}


def _turn(draw: st.DrawFn, w: int) -> dict[str, Any]:
    return {
        "name": f"w{w}", "model": small_model(gated=draw(st.booleans()), kv_heads=8), "global_batch": 288,
        "allow_tp_across": True, "max_iteration_time_s": 2.0,
        "mapping": {"micro_batch": [1, 3], "sequence_parallel": True, "zero": 1}, "options": {"attention": "flash"},
    }  # fmt: skip


def _stage(draw: st.DrawFn, t: int, gpus: int, last: int) -> dict[str, Any]:
    pace = draw(st.sampled_from([0.1, 0.2, 0.2, 0.4, 0.4, 0.6])) * draw(st.floats(1.0, 1.5)) * last / gpus
    asked: dict[str, Any] = (
        {"workloads": [{"name": "w0", "max_iteration_time_s": pace}]} if draw(st.integers(0, 3)) else {}
    )
    factors = st.sampled_from([0.0, 1.0, 1.0, 2.0, 3.0])
    return asked | {
        "year": float(2 * t),
        "gpus": gpus,
        "price": {kind: draw(factors) for kind in (*KINDS, "gpu", "energy")},
        "retrofit_usd_per_link": float(draw(st.sampled_from([0, 100, 1000, 20000]))),
    }


@st.composite
def wishes(draw: st.DrawFn) -> Robust:
    """Losses, intervals and aims of all sorts."""
    interval = st.sampled_from([(1.0, 1.0), (0.5, 1.0), (0.5, 2.0), (1.0, 3.0)])
    prices = {
        kind: draw(interval) for kind in draw(st.lists(st.sampled_from([*KINDS, "gpu"]), max_size=2, unique=True))
    }
    survive = draw(st.lists(st.sampled_from(["nic", "leaf", "plane", "domain"]), max_size=2, unique=True))
    by_part = st.fixed_dictionaries({part: st.sampled_from([1.0, 1.1, 1.5, 2.5]) for part in survive})
    return Robust.model_validate(
        {
            "survive": survive, "slower": draw(st.sampled_from([1.0, 1.2, 2.0]) | by_part), "prices": prices,
            "efficiency": draw(st.sampled_from([(1.0, 1.0), (0.8, 1.0), (0.9, 1.2)])),
            "aim": draw(st.sampled_from(["worst-case", "regret"])),
        }
    )  # fmt: skip


@st.composite
def small_leaves(draw: st.DrawFn) -> Instance:
    """A few GPUs on two tiers, with leaves of one product below spines of another wherever that is cheaper."""
    boxes = [switch(ports, draw(st.integers(1, usd))) for ports, usd in ((4, 400), (8, 4000))]
    changes = {"cluster__gpus": draw(st.sampled_from([8, 12])), "workload__0__global_batch": 24}
    domain = {"name": "hb2", "size": 2, "gbyte_s": 450, "usd_per_gpu": 1, "w_per_gpu": 1}
    changes |= {"network__hb_domains": domain, "network__nics_per_gpu": 2, "network__switches": boxes}
    changes |= {"network__fabrics": "clos", "network__tier_switches": "any", "network__oversubscription": 1.0}
    changes |= {"workload__0__max_iteration_time_s": draw(st.sampled_from([0.5, 5.0]))}
    return ask(**changes).model_copy(update={"robust": draw(wishes())})


@st.composite
def growing_in_halls(draw: st.DrawFn, cores: bool = False) -> Instance:
    """Two islands that are in time with few GPUs at first, and later in the exact time of some network."""
    sides = CORE_HALLS if cores else HALLS
    table = draw(fleets((2, 2, 3), (0, 0, 2), cores=cores, many_sided=sides)).model_dump(
        by_alias=True, exclude_unset=True
    )
    table["limits"] = draw(st.sampled_from([{}, {}, {"racks": 20.0}, {"power_mw": 0.03}]))
    *before, last = table["phase"]
    last["gpus"], last["workloads"], table["cluster"]["gpus"] = 16, [], 16
    last["price"] |= {kind: draw(st.sampled_from([0.5, 1.0])) for kind in KINDS}
    table["sharing"]["discount"] = table["sharing"]["discount"][:1]
    for phase in before:
        phase["gpus"] = 8
    for _ in range(2):
        _attain(draw, table, sizes=1)
    for phase in before:
        phase["workloads"] = [{"name": "w0", "max_iteration_time_s": 99.0}, *draw(st.sampled_from([["w1"], []]))]
        phase["price"] |= dict.fromkeys(KINDS, draw(st.sampled_from([1.0, 2.0])))
    return Instance.model_validate(table)


GPU_FACTORS = [(0.1, 1.0), (0.2, 1.1), (0.5, 3.0), (2.0, 3.0), (0.1, 0.4)]


DOMAINS = st.lists(
    st.tuples(st.sampled_from([1, 2, 4, 8]), st.sampled_from([0.0, 400.0, 3_000.0])),
    min_size=2, max_size=3, unique=True,
)  # fmt: skip


FACTORS = [(0.3, 1.0), (0.5, 2.0), (2.0, 3.0)]


def affordable(instance: Instance) -> list[float]:
    """Capex at the listed prices of every fleet within the other limits, rising."""
    books = [Book(instance=one) for one in with_every_core_optic(instance)]
    return sorted(
        {
            usd
            for book in books
            for some in fleets_of(book, menus_of(book, 1.0), LISTED)
            for usd in some.capex_usd(LISTED).tolist()
        }
    )


@st.composite
def budgeted(draw: st.DrawFn) -> Instance:
    """Islands whose prices are open, within a budget at the listed prices that lets in a few fleets at least."""
    table = draw(fleets()).model_dump(by_alias=True)
    kind = draw(st.sampled_from(["hb", "nic", "switch", "optics"]))
    prices = {"gpu": draw(st.sampled_from(GPU_FACTORS)), kind: draw(st.sampled_from(FACTORS))}
    table["robust"] = {"prices": prices, "aim": "regret"}
    table["objective"] |= {"include": [*KINDS, "gpu"], "minimize": draw(st.sampled_from(["capex", "capex", "tco"]))}
    table["cluster"]["gpu"]["usd"] = draw(st.sampled_from([100.0, 2_000.0, 20_000.0]))
    # idle GPUs of large domains are cheap at some prices, and other parts in place of them at others
    table["network"]["hb_domains"] = [
        {"name": f"hb{n}", "size": size, "gbyte_s": 450.0, "usd_per_gpu": usd, "w_per_gpu": 10.0, "racks": 0.25}
        for n, (size, usd) in enumerate(draw(DOMAINS))
    ]
    table["sharing"]["discount"] = []
    table["workload"] = table["workload"][: draw(st.integers(1, 2))]
    for workload in table["workload"]:
        workload["gpus"] = draw(st.sampled_from([[2], [4], [2, 6], [4, 8]]))
        workload["max_iteration_time_s"] = draw(st.sampled_from([0.3, 1.0, 10.0]))
    table["limits"].pop("capex_usd", None)
    try:
        costs = affordable(Instance.model_validate(table))
    except TooManyError:
        assume(False)
    assume(costs)
    budget = costs[min(draw(st.integers(0, 6)), len(costs) - 1)] * (1 + 1e-9)
    return Instance.model_validate(table | {"limits": table["limits"] | {"capex_usd": budget}})


OF_FLEETS_IN_DAYS: tuple[dict[str, Any], ...] = (
    {},
    {"sites": (1, 2)},
    {"phases": (2, 2, 3)},
    {"doubts": True},
    {"phases": (1, 2), "sites": (0, 2), "cores": True},
    {"many_sided": ("planes",)},
    {"many_sided": ("shared",)},
    {"many_sided": ("shared",), "phases": (2,)},
    {"many_sided": ("planes",), "phases": (2,), "doubts": True},
)


@st.composite
def interrupted_fleets(draw: st.DrawFn) -> Instance:
    """A small fleet with failures; most of its workloads have days, some in single phases alone."""
    table = draw(fleets(**draw(st.sampled_from(OF_FLEETS_IN_DAYS)))).model_dump(by_alias=True)
    for one in table["workload"]:
        if draw(st.integers(0, 3)):
            one |= in_days(one, one["max_iteration_time_s"] * draw(st.sampled_from([1.0, 1.02, 1.1, 1.5])))
    table["availability"] = draw(failures())
    if table["network"]["gpus_per_nic"] != (1,):
        table["availability"]["rates"]["gpus_per_host"] = 4
    return Instance.model_validate(table)


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
