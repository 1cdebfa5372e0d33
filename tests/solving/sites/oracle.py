"""Random small clusters at several sites, and their optimum by trying everything."""

import math
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import permutations, product
from typing import Any

from hypothesis import strategies as st

from coopt.columns.grid import Context, context_of
from coopt.columns.times import waiting
from coopt.instance.couplings import Site, Wan
from coopt.instance.hardware import Gpu, HbDomain
from coopt.instance.schema import Instance
from coopt.instance.variants import local_question
from coopt.instance.workload import Workload
from coopt.network.family import Family
from coopt.network.parts import bill, electricity_of, total, weigh
from coopt.network.space import families
from coopt.plan.parts import Item, ItemKind, line
from tests.conftest import question, small_model, switch
from tests.solving.every_optic import optics, with_every_optic
from tests.solving.fleet_oracle import every_cabling
from tests.solving.fleets import hall
from tests.solving.oracle import every_mapping
from tests.solving.questions import modules, switch_of_cages

BYTES_OF_SMALL = 4.0 * (8 * (4 * 4096**2 + 2 * 4096 * 16384) + 51200 * 4096)  # fp32 gradients of tests' small model


@st.composite
def instances(
    draw: st.DrawFn, *, own_ends: bool = False, halls: bool = False, borders: bool = False, losses: bool = False
) -> Instance:
    """Up to three sites, up to four shares, whole prices; bounds and power from hopeless to loose. Links may have ends
    of their own, as long as in halls, channels may end in ports of a border, and any one may be lost."""
    shares, money = draw(st.integers(2, 4)), st.integers(0, 3000)
    gpus, names = 8 * shares * draw(st.sampled_from([1, 2])), ["a", "b", "c"][: draw(st.integers(2, 3))]
    pairs = [("a", "b"), ("b", "c"), ("a", "c")][: 1 if len(names) == 2 else draw(st.integers(2, 3))]
    each_mw = gpus * 1.4e-3 / shares
    table = question(
        cluster={"gpu": "h100-sxm", "gpus": gpus, "shares": shares},
        workload=[_workload(draw, w, gpus) for w in range(draw(st.integers(1, 2)))],
        site=[
            {
                "name": name,
                "power_mw": each_mw * draw(st.sampled_from([1.0, 1.6, 2.5, 10.0])),
                "pue": draw(st.sampled_from([1.0, 1.3])), "usd_per_kwh": draw(st.sampled_from([0.02, 0.1])),
            }
            for name in names
        ],
        wan=[
            {
                "between": list(pair), "gbit_s": draw(st.sampled_from([100, 400])), "usd": draw(money),
                "w": draw(st.sampled_from([0, 300])), "latency_ms": draw(st.sampled_from([0, 5])),
                "most": draw(st.integers(1, 4)),
            }
            for pair in pairs
        ],
        network={
            "hb_domains": [
                {
                    "name": f"hb{n}", "size": n, "gbyte_s": 450, "usd_per_gpu": draw(money), "w_per_gpu": 50,
                    "racks": n / 8,
                }
                for n in draw(st.sampled_from([[8], [4, 8]]))
            ],
            "fabrics": ["rail-only"],
            "nics": [{"name": "nic", "gbit_s": 400, "usd": draw(money), "w": 20}],
            "switches": [switch(k, draw(money)) for k in (8, 16)], "optics": optics(draw, [400]),
            "oversubscription": draw(st.sampled_from([1.0, 2.0])),
            **(_ends(draw) if own_ends or halls else {}),
        },
        objective={
            "minimize": draw(st.sampled_from(["capex", "power", "tco"])),
            "include": ["gpu", "hb", "nic", "switch", "optics"],
        },
        limits=draw(st.sampled_from([{}, {}, {"racks": gpus / 8}])),
    )  # fmt: skip
    borders = borders or (losses and draw(st.booleans()))
    if losses:
        table["robust"] = {"survive": "channel", "slower": {"channel": draw(st.sampled_from([1, 1.02, 1.1, 1.4, 4]))}}
    if halls:
        table["network"] |= hall(draw, table["network"])
    return Instance.model_validate(_bordered(draw, table) if borders else table)


def _bordered(draw: st.DrawFn, table: dict[str, Any]) -> dict[str, Any]:
    """The question with a border at each site, and fibre for which one module is too short."""
    money, watts = st.integers(0, 3000), st.sampled_from([0, 15])
    ends = [
        {"name": name, "gbit_s": rate, "reach_m": reach_m, "usd": draw(money), "w": draw(watts)}
        for name, rate, reach_m in (("joint", 400, 500), ("near", 400, 5e4), ("far", 400, 2e5), ("slow", 100, 2e5))
    ]
    for link in table["wan"]:
        link |= {"km": draw(st.sampled_from([20, 60])), "optics": ends[1:], "gbit_s": draw(st.sampled_from([100, 600]))}
    for site in table["site"]:
        each_mw = table["cluster"]["gpus"] * 1.4e-3 / table["cluster"]["shares"]
        site["power_mw"] = each_mw * draw(st.sampled_from([1.3, 1.7, 2.6])) + 0.002
    table["network"]["optics"].append(ends[0])
    box = draw(st.sampled_from(table["network"]["switches"]))
    core = {"switch": box["name"], "optic": "joint", "gbit_s_per_gpu": draw(st.sampled_from([1, 60]))}
    if "hall" in table["network"]:  # few products, as all cables of all numbers of links are tried
        table["network"] |= {"optics": [*table["network"]["optics"][:2], ends[0]], "fibre": []}
        brief = {"name": "brief", "reach_m": draw(st.sampled_from([8, 15, 30])), "usd": draw(money), "w": draw(watts)}
        table["network"]["optics"].append(ends[0] | brief)
        core["optic"] = draw(st.sampled_from(["joint", ["joint", "brief"]]))
    return table | {"sharing": {"core": core}}


def _ends(draw: st.DrawFn) -> dict[str, Any]:
    """A module of its own at each end of a link, on small switches."""
    money = st.integers(0, 3000)
    boxes = [switch_of_cages(draw, radix, money, (1,)) for radix in (4, 8)]
    listed = modules(draw, money, st.integers(0, 30))
    return {"link_ends": "any", "switches": boxes, "optics": listed[:4], "fabrics": ["rail-optimized"]}


def _workload(draw: st.DrawFn, w: int, gpus: int) -> dict[str, Any]:
    return {
        "name": f"w{w}", "model": small_model(), "global_batch": 2 * gpus, "allow_tp_across": True,
        "max_iteration_time_s": draw(st.sampled_from([0.2, 0.3, 0.5, 0.8])) * draw(st.floats(1.0, 1.5)),
        "mapping": {"micro_batch": [1, 4], "sequence_parallel": True, "zero": draw(st.sampled_from([[0, 1], [1, 3]]))},
        "options": {"dp_mode": draw(st.sampled_from(["sync", "overlap", "stale-1"]))},
    }  # fmt: skip


def enumerated(instance: Instance) -> float:
    """The least objective over every ring, division of shares, network, mapping and number of channels.

    With labour and support it is that of electricity at a price divided by what a purchase takes, times as much.
    """
    terms = instance.objective
    if terms.labour_share or terms.support_share:
        owned = 1 + terms.labour_share + terms.years * terms.support_share
        bare = terms.model_copy(
            update={"labour_share": 0.0, "support_share": 0.0, "usd_per_kwh": terms.usd_per_kwh / owned}
        )
        prices = [(site, (site.usd_per_kwh or 0.0) / owned) for site in instance.site]
        cheaper = tuple(site.model_copy(update={"usd_per_kwh": usd}) for site, usd in prices)
        return owned * enumerated(instance.model_copy(update={"objective": bare, "site": cheaper}))
    return min((_of_ring(instance, ring) for ring in _rings(instance)), default=math.inf)


Ring = tuple[list[Site], list[Wan]]


def _rings(instance: Instance) -> Iterator[Ring]:
    links = {frozenset(wan.between): wan for wan in instance.wan}
    for count in range(1, len(instance.site) + 1):
        for order in permutations(instance.site, count):
            around = [frozenset((order[i].name, order[(i + 1) % count].name)) for i in range(count)]
            pairs = [] if count == 1 else list(dict.fromkeys(around))
            if all(pair in links for pair in pairs):
                yield list(order), [links[pair] for pair in pairs]


Waits = dict[float, float]
"""What workloads wait for gradients of other sites (s), by how many times as long their bounds then are."""

Spent = tuple[float, float, float, float]
"""Objective, purchase (USD), power (W) and racks."""


def _of_ring(instance: Instance, ring: Ring) -> float:
    sites, links = ring
    whole, best = instance.cluster.shares or 0, math.inf
    for channels in product(*(range(1, link.most + 1) for link in links)):
        pairs = [(_lit(instance, a), c) for a, c in zip(links, channels, strict=True)]
        waits_s = {1.0: _wait_s(ring, channels)}
        if "channel" in instance.losses:
            left = [[c - (a == lost) for a, c in zip(links, channels, strict=True)] for lost in links]
            if not all(map(all, left)):
                continue
            after_s = max((_wait_s(ring, tuple(some)) for some in left), default=0.0)
            slower = instance.losses["channel"]
            waits_s[slower] = max(after_s, waits_s.get(slower, 0.0))
        lit = sum(
            c * sum(_weighed(instance, site, a.usd / 2, a.w / 2) for site in sites if site.name in a.between)
            for a, c in pairs
        )
        bought = lit, sum(c * a.usd for a, c in pairs), sum(c * a.w for a, c in pairs), 0.0
        for parts in product(range(1, whole + 1), repeat=len(sites)):
            if sum(parts) == whole:
                best = min(best, _sites(instance, ring, channels, parts, waits_s, bought))
    return best


def _modules(link: Wan) -> int:
    """Modules of a channel at each end, in a border whose ports have 400 Gbit/s."""
    return 0 if link.km is None else -(-int(link.gbit_s) // 400)


def _lit(instance: Instance, link: Wan) -> Wan:
    """The link with its modules in the price and power of a channel."""
    fit = [one for one in link.optics if one.gbit_s == 400 and one.reach_m >= (link.km or 0) * 1e3]
    if not fit or "optics" not in instance.objective.include:
        return link
    usd, w = min((one.usd, one.w) for one in fit)
    return link.model_copy(update={"usd": link.usd + 2 * _modules(link) * usd, "w": link.w + 2 * _modules(link) * w})


def _wait_s(ring: Ring, channels: tuple[int, ...]) -> float:
    sites, links = ring
    if not links:
        return 0.0
    steps, slowest = 2 * (len(sites) - 1), max(link.latency_ms for link in links) / 1e3
    rate = min(c * link.gbit_s for c, link in zip(channels, links, strict=True)) * 1e9 / 8
    return steps * slowest + steps / len(sites) * BYTES_OF_SMALL / rate


def _sites(
    instance: Instance, ring: Ring, channels: tuple[int, ...], parts: tuple[int, ...], waits_s: Waits, bought: Spent
) -> float:
    """The least objective of channels that are bought and of what is built at the sites; limits of all sites couple
    them, so that all combinations are tried but those that take more of everything that counts."""
    chosen = [bought]
    for site, shares in zip(ring[0], parts, strict=True):
        lit = [(_lit(instance, a), c) for a, c in zip(ring[1], channels, strict=True) if site.name in a.between]
        ends_w, modules = sum(c * a.w / 2 for a, c in lit), sum(c * _modules(a) for a, c in lit)
        designs = _designs(instance, site, shares, ends_w, tuple(waits_s.items()), modules)
        sums = (tuple(map(sum, zip(one, other, strict=True))) for one in chosen for other in designs)
        chosen = _unbeaten(instance, (one for one in sums if _within(instance, one)))  # type: ignore[arg-type]
    return min((value for value, *_ in chosen), default=math.inf)


def _within(instance: Instance, spent: Spent) -> bool:
    _, usd, w, racks = spent
    return all(use <= cap for use, cap in instance.limits.against(usd=usd, w=w, racks=racks).values())


def _unbeaten(instance: Instance, several: Iterable[Spent]) -> list[Spent]:
    """Those that no other beats in its objective and in all that is limited."""
    limits = instance.limits
    counts = (True, limits.capex_usd is not None, limits.power_mw is not None, limits.racks is not None)
    kept: list[Spent] = []
    for one in sorted(set(several)):
        if not any(all(b <= a for a, b, c in zip(one, other, counts, strict=True) if c) for other in kept):
            kept.append(one)
    return kept


def _weighed(instance: Instance, site: Site, usd: float, w: float) -> float:
    return weigh(electricity_of(instance.objective, site), usd, w)


@lru_cache(maxsize=4096)
def _designs(
    instance: Instance, site: Site, shares: int, ends_w: float, waits_s: tuple[tuple[float, float], ...], modules: int
) -> list[Spent]:
    """What every network takes that serves all workloads in time and can be fed, with the border in which so many
    modules of channels end."""
    local, pue = local_question(instance, shares), electricity_of(instance.objective, site).pue
    found = []
    for family in _networks(local):
        for uplinks in family.uplink_choices:
            if instance.sharing.core is not None and modules > family.core_links:
                continue
            lines = (*bill(local, family, uplinks), *_border(instance, family, modules))
            cost = total(local.objective, lines)
            value = _weighed(instance, site, cost.capex_usd, cost.power_w)
            racks = math.ceil(family.domains * (family.hb.racks or 0))
            one = (value, cost.capex_usd, cost.power_w, float(racks))
            fed = (cost.power_w + ends_w) * pue <= site.power_mw * 1e6
            if fed and _unbeaten(instance, [*found, one]) != found and _in_time(local, family, uplinks, waits_s):
                found = _unbeaten(instance, [*found, one])
    return found


@lru_cache(maxsize=64)
def _networks(local: Instance) -> list[Family]:
    """Every network of a site, with each number of links into its border from what is asked to one for each GPU."""
    core, gpus = local.sharing.core, local.cluster.most_gpus
    by_length = local.network.cables == "hall"
    if core is None and by_length:
        return [laid for family in families(local, unlaid=True) for laid in every_cabling(local, family)]
    if core is None:
        return list(with_every_optic(local, families(local)))
    # half a link less than a number asks for just that number
    rates = [400 * (n - 0.5) / gpus for n in range(math.ceil(gpus * core.gbit_s_per_gpu / 400), gpus + 1)]
    questions = [local.having(sharing={"core": core.having(gbit_s_per_gpu=rate)}) for rate in rates]
    if by_length:
        unlaid = dict.fromkeys(family for each in questions for family in families(each, unlaid=True))
        return [laid for family in unlaid for laid in every_cabling(local, family)]
    return list(dict.fromkeys(one for each in questions for one in with_every_optic(each, families(each))))


def _border(instance: Instance, family: Family, modules: int) -> list[Item]:
    """What a border takes: a module at both ends of each link from a leaf, and switches for links and channels."""
    core, network = instance.sharing.core, instance.network
    if core is None:
        return []
    (box,) = (one for one in network.switches if one.name == core.switch)
    count = math.ceil((family.core_links + modules) / box.radix)
    lines: list[tuple[ItemKind, Any, int]] = [("switch", box, count)]
    if network.cables == "tier":
        (end,) = (one for one in network.optics if one.name == core.optic)
        lines.append(("optics", end, 2 * family.core_links))
    for run in family.core_cables:
        lines += [("optics", run.ends.below, run.below), ("optics", run.ends.above, run.above)]
        lines += [("fibre", one, one.units) for one in run.fibre]
    return [line(kind, one.name, n, one.usd, one.w) for kind, one, n in lines if kind in instance.objective.include]


def _in_time(local: Instance, family: Family, uplinks: int, waits_s: tuple[tuple[float, float], ...]) -> bool:
    context, gpu = context_of(family), local.cluster.gpu
    return all(
        _least_s(one, gpu, family.hb, context, uplinks, wait_s) <= one.bound_s * slower
        for one in local.workload
        for slower, wait_s in waits_s
    )


@lru_cache(maxsize=1 << 14)
def _least_s(workload: Workload, gpu: Gpu, hb: HbDomain, context: Context, uplinks: int, wait_s: float) -> float:
    """The time of the fastest mapping; sites, and networks that differ in prices only, have the same."""
    pool = every_mapping(workload, gpu, hb, context.site, context.discipline)
    return float(waiting(pool, wait_s).time_s(context, uplinks).min(initial=math.inf))
