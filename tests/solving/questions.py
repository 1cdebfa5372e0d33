"""Random small questions about one network: planes, modules of their own at either end, any fabric, dear racks, caps,
leaves below larger spines, and interruptions."""

from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from coopt.instance.hardware import HbDomain
from coopt.instance.schema import Instance, Limits
from coopt.network.parts import cost_of
from coopt.network.space import families
from tests.conftest import DISCIPLINES, question, small_model
from tests.solving.every_optic import with_every_optic
from tests.solving.interrupted import failures, in_days
from tests.solving.oracle import FEW_TIMED, answers, disciplined, enumerated, instances, load

RATE = 400


@st.composite
def planar(draw: st.DrawFn) -> Instance:
    """Clusters of up to 96 GPUs whose NICs have one port, two or four, with switches of several modes."""
    gpus = draw(st.sampled_from([16, 32, 64, 96]))
    money = st.integers(0, 3000)
    sizes = draw(st.lists(st.sampled_from([1, 2, 4, 8]), min_size=1, max_size=2, unique=True))
    table = question(
        cluster__gpus=gpus, workload=[one_workload(draw, gpus)],
        network={
            **domains_and_fabrics(draw, sizes, money),
            "nics": _nics(draw, money), "nics_per_gpu": draw(st.sampled_from([1, 1, 2])),
            "nic_planes": draw(st.sampled_from([[1, 2, 4], [1, 2], [1, 4]])),
            "switches": [_box(draw, radix, money) for radix in draw(_radices())], "optics": _optics(draw, money),
            "oversubscription": draw(st.sampled_from([1.0, 2.0, 3.5, [1.0, 2.0], [1.5, 3.0]])),
            **disciplined(draw),
        },
        objective={"minimize": draw(st.sampled_from(["capex", "power", "tco"]))},
        limits=draw(st.sampled_from([{}, {}, {"power_mw": gpus / 5000}, {"capex_usd": 9000.0 * gpus}])),
    )  # fmt: skip
    return Instance.model_validate(table)


def _radices() -> st.SearchStrategy[list[int]]:
    return st.lists(st.sampled_from([4, 6, 8, 12]), min_size=1, max_size=2, unique=True)


def _nics(draw: st.DrawFn, money: st.SearchStrategy[int]) -> list[dict[str, Any]]:
    """A NIC with one module, and at times one with two beside it."""
    one = {"name": "one", "gbit_s": RATE, "ports": [1, 2, 4], "usd": draw(money), "w": 20}
    twin = {"name": "twin", "gbit_s": RATE, "ports": [2, 4], "cages": 2, "usd": draw(money), "w": 25}
    return draw(st.sampled_from([[one], [one], [one, twin]]))


def _box(draw: st.DrawFn, radix: int, money: st.SearchStrategy[int]) -> dict[str, Any]:
    modes = [{"radix": radix * n, "port_gbit_s": RATE / n} for n in draw(st.sampled_from([(2, 4), (2,), (4,)]))]
    return {"name": f"{radix}-port", "radix": radix, "port_gbit_s": RATE, "modes": modes, "usd": draw(money), "w": 90}


def _optics(draw: st.DrawFn, money: st.SearchStrategy[int]) -> list[dict[str, Any]]:
    """Optics that break out and optics that do not; the first reaches everywhere."""
    breakouts = draw(st.sampled_from([[2, 4], [2], [4]]))
    wide = {"name": "wide", "gbit_s": RATE, "breakout": breakouts, "reach_m": 500, "usd": draw(money), "w": 17}
    others = [
        {
            "name": f"plain-{rate:g}", "gbit_s": rate, "reach_m": draw(st.sampled_from([60, 500])), "usd": draw(money),
            "w": 9,
        }
        for rate in (RATE, RATE / 2, RATE / 4)
    ]  # fmt: skip
    half = {"name": "half", "gbit_s": RATE / 2, "breakout": [2], "reach_m": 500, "usd": draw(money), "w": 12}
    return [wide, *(other for other in [*others, half] if draw(st.booleans()))]


def domains_and_fabrics(draw: st.DrawFn, sizes: list[int], money: st.SearchStrategy[int]) -> dict[str, Any]:
    """HB domains of some sizes at any price, and the fabrics that may join them."""
    return {
        "hb_domains": [
            {"name": f"hb{n}", "size": n, "gbyte_s": 450, "usd_per_gpu": draw(money), "w_per_gpu": 10} for n in sizes
        ],
        "fabrics": draw(st.lists(st.sampled_from(["rail-only", "rail-optimized", "clos"]), min_size=1, unique=True)),
    }


def one_workload(draw: st.DrawFn, gpus: int) -> dict[str, Any]:
    return {
        "name": "w", "model": small_model(), "global_batch": gpus, "allow_tp_across": True,
        "max_iteration_time_s": draw(st.sampled_from([0.06, 0.09, 0.15, 0.3])) * draw(st.floats(1.0, 1.5)),
        "mapping": {"micro_batch": [1, 4], "sequence_parallel": True},
    }  # fmt: skip


@st.composite
def twin_ported(draw: st.DrawFn, planes: tuple[int, ...] = (1,)) -> Instance:
    """Clusters of up to 96 GPUs with single modules for NICs and switches and such as serve several ports of a switch,
    over two kinds of fibre, beside a cable that comes with both ends."""
    gpus = draw(st.sampled_from([16, 32, 48, 64, 96]))
    money, watts = st.integers(0, 3000), st.integers(0, 30)
    sizes = draw(st.lists(st.sampled_from([1, 2, 4, 8]), min_size=1, max_size=2, unique=True))
    radices = draw(st.lists(st.sampled_from([4, 6, 8, 12]), min_size=1, max_size=2, unique=True))
    table = question(
        cluster__gpus=gpus, workload=[one_workload(draw, gpus)],
        network={
            **domains_and_fabrics(draw, sizes, money),
            "nics": {"name": "nic", "gbit_s": RATE, "ports": list(planes), "usd": draw(money), "w": 20},
            "nics_per_gpu": draw(st.sampled_from([1, 1, 2])), "nic_planes": list(planes),
            "switches": [switch_of_cages(draw, radix, money, planes) for radix in radices],
            "optics": modules(draw, money, watts),
            "link_reach_m": draw(st.sampled_from([[50, 100, 500], [40, 40, 40], [50, 100, 100]])),
            "oversubscription": draw(st.sampled_from([1.0, 2.0, 3.5, [1.0, 2.0], [1.5, 3.0]])),
            **disciplined(draw),
        },
        objective={
            "minimize": draw(st.sampled_from(["capex", "power", "tco"])),
            "include": draw(st.sampled_from([["hb", "nic", "switch", "optics"]] * 3 + [["hb", "switch"]])),
        },
        limits=draw(st.sampled_from([{}, {}, {"power_mw": gpus / 5000}, {"capex_usd": 9000.0 * gpus}])),
    )  # fmt: skip
    return Instance.model_validate(table)


def switch_of_cages(
    draw: st.DrawFn, radix: int, money: st.SearchStrategy[int], planes: tuple[int, ...]
) -> dict[str, Any]:
    """A switch whose cages hold one port, or two or four at the rate of the NIC."""
    box: dict[str, Any] = {"name": f"{radix}-port", "radix": radix, "port_gbit_s": RATE, "usd": draw(money), "w": 90}
    if len(planes) > 1:
        return box | {"modes": [{"radix": radix * n, "port_gbit_s": RATE / n} for n in planes if n > 1]}
    shared = draw(st.sampled_from([n for n in (1, 2, 2, 4) if radix % n == 0]))
    return box | {"cages": radix // shared}


def modules(draw: st.DrawFn, money: st.SearchStrategy[int], watts: st.SearchStrategy[int]) -> list[dict[str, Any]]:
    """A cable that reaches everywhere, then modules of one, two and four ports over either fibre."""
    cable = {"name": "cable", "gbit_s": RATE, "breakout": [2, 4], "reach_m": 500, "usd": draw(money), "w": draw(watts)}
    modules = [
        {
            "name": f"{fibre}-{ports}", "gbit_s": RATE * ports, "breakout": [2, 4], "fibre": fibre,
            "reach_m": draw(st.sampled_from([60, 500])), "usd": draw(money), "w": draw(watts),
        }
        for fibre in ("multi", "single")
        for ports in (1, 2, 4)
        if draw(st.integers(0, 3))
    ]  # fmt: skip
    return [cable, *modules]


@st.composite
def wide(draw: st.DrawFn) -> Instance:
    """Clusters of up to 128 GPUs: planes, NICs that GPUs share, bundles in pods, any split and filling of leaves and
    pods, bundles of any size, ends of links, products by tier; bounds from hopeless to loose."""
    gpus = draw(st.sampled_from([16, 30, 32, 48, 64, 96, 128]))
    money, planes = st.integers(0, 3000), draw(st.sampled_from([(1,), (1, 2), (2,), (1, 2, 4)]))
    sizes = draw(st.lists(st.sampled_from([1, 2, 4, 6, 8]), min_size=1, max_size=2, unique=True))
    radices = draw(st.lists(st.sampled_from([4, 6, 8, 12]), min_size=1, max_size=2, unique=True))
    few = any(size % 2 == 0 for size in sizes)
    network: dict[str, Any] = {
        **domains_and_fabrics(draw, sizes, money),
        "nics": {"name": "nic", "gbit_s": RATE, "ports": list(planes), "usd": draw(money), "w": 20},
        "nic_planes": list(planes),
        "gpus_per_nic": draw(st.sampled_from([[1], [1, 2], [2]])) if few else [1], "nics_per_gpu": 1,
        "switches": [_wide_box(draw, radix, money, planes) for radix in radices],
        "optics": [*modules(draw, money, st.integers(0, 30)), *_slow(draw, money, planes)],
        "oversubscription": draw(st.sampled_from([1.0, 1.5, 2.0, 3.5, [1.0, 2.0], [1.5, 3.0]])),
        "leaf_fill": draw(st.sampled_from(["any", "any", "ratio"])),
        "pod_uplinks": draw(st.sampled_from(["ratio", "any"])), "link_ends": draw(st.sampled_from(["own", "same"])),
        "tier_switches": draw(st.sampled_from(["same", "same", "any"])),
        "switch_cages": draw(st.sampled_from(["told", "kept"])),
        **disciplined(draw),
    }  # fmt: skip
    if network["routing"] not in ("pinned", "ecmp"):
        network["pod_bundles"] = draw(st.sampled_from([[1], [1, 2], [2], [1, 2, 3]]))
    if network["gpus_per_nic"] == [1]:
        network["nics_per_gpu"] = draw(st.sampled_from([1, 2, [1, 2]]))
    workload = one_workload(draw, gpus)
    workload["max_iteration_time_s"] *= draw(st.sampled_from([1.0, 4.0, 20.0]))
    table = question(
        cluster__gpus=gpus, workload=[workload], network=network,
        objective={"minimize": draw(st.sampled_from(["capex", "power", "tco"]))},
        limits=draw(st.sampled_from([{}, {}, {"power_mw": gpus / 2000}, {"capex_usd": 9000.0 * gpus}])),
    )  # fmt: skip
    try:
        return Instance.model_validate(table)
    except ValueError:
        table["network"] |= {"optics": [*table["network"]["optics"], *_all_slow(planes)]}
        return Instance.model_validate(table)


def _wide_box(draw: st.DrawFn, radix: int, money: st.SearchStrategy[int], planes: tuple[int, ...]) -> dict[str, Any]:
    """A switch with a mode for each number of planes, or with cages of several ports."""
    box = {"name": f"{radix}-port", "radix": radix, "port_gbit_s": RATE, "usd": draw(money), "w": 90}
    modes = [{"radix": radix * n, "port_gbit_s": RATE / n} for n in planes if n > 1]
    shared = draw(st.sampled_from([n for n in (1, 1, 2) if radix % n == 0]))
    return box | ({"modes": modes} if modes else {"cages": radix // shared})


def _slow(draw: st.DrawFn, money: st.SearchStrategy[int], planes: tuple[int, ...]) -> list[dict[str, Any]]:
    """Modules of the rate of a port, where NICs have several."""
    return [one | {"usd": draw(money)} for one in _all_slow(planes) if draw(st.booleans())]


def _all_slow(planes: tuple[int, ...]) -> list[dict[str, Any]]:
    return [{"name": f"slow-{n}", "gbit_s": RATE / n, "reach_m": 500, "usd": 1000, "w": 7} for n in planes if n > 1]


@st.composite
def capped(draw: st.DrawFn) -> Instance:
    """Random instances with a cap on another measure, which some network in time just meets or just misses."""
    instance = draw(instances(32))
    kind = draw(st.sampled_from(["capex", "power", "tco"]))
    objective = {"minimize": kind, "include": ("hb", "nic", "switch", "optics")}
    free = instance.model_copy(
        update={"limits": Limits(), "objective": instance.objective.model_copy(update=objective)}
    )
    key = {"capex": "power_mw", "power": "capex_usd"}.get(kind) or draw(st.sampled_from(["power_mw", "capex_usd"]))
    uses = sorted(_uses(free, key))
    assume(len(uses) > 1)
    use = draw(st.sampled_from(uses[: max(len(uses) // 2, 1)])) * draw(st.sampled_from([1.0, 1.0, 0.999]))
    return free.model_copy(update={"limits": Limits.model_validate({key: max(use, 1e-6)})})


def _uses(instance: Instance, key: str) -> set[float]:
    """What networks in time take of a limit."""
    found, networks = set(), list(with_every_optic(instance, families(instance)))
    load(instance.workload, instance.cluster.gpu, networks)
    for family in networks:
        for uplinks in family.uplink_choices:
            if answers(instance, family, uplinks):
                cost = cost_of(instance, family, uplinks)
                found.add(cost.capex_usd if key == "capex_usd" else cost.power_w / 1e6)
    return found


@st.composite
def racked(draw: st.DrawFn) -> Instance:
    """Random questions whose domains are dear and seldom come out even."""
    drawn, gpus = draw(instances()), draw(st.sampled_from([20, 28, 40, 44, 56, 60, 72, 84, 100]))
    sizes = draw(st.lists(st.sampled_from([6, 7, 8, 11, 12, 16]), min_size=1, max_size=2, unique=True))
    price, rate = draw(st.sampled_from([1000, 9000])), draw(st.sampled_from([50, 450]))
    table = {"gbyte_s": rate, "usd_per_gpu": price, "w_per_gpu": price, "racks": 1}
    slower = draw(st.sampled_from([2.0, 6.0, 20.0]))
    workloads = [
        one.model_copy(
            update={
                "global_batch": gpus * 2,
                "allow_tp_across": True,
                "max_iteration_time_s": (one.max_iteration_time_s or 1.0) * slower,
                "options": one.options.model_copy(update={"collectives": "levels"}),
            }
        )
        for one in drawn.workload
    ]
    domains = [HbDomain.model_validate({"name": f"hb{size}", "size": size, **table}) for size in sizes]
    charged = draw(
        st.sampled_from([one for one in DISCIPLINES if one["charge"] == "loads" and one["routing"] != "pinned"])
    )
    network = drawn.network.model_copy(update={"hb_domains": tuple(domains), "domain_fill": "any", **charged})
    changes = {"network": network, "workload": tuple(workloads), "limits": Limits()}
    return drawn.model_copy(update={**changes, "cluster": drawn.cluster.model_copy(update={"gpus": (gpus,)})})


@st.composite
def in_turn(draw: st.DrawFn) -> Instance:
    """Two workloads whose days have a limit one after the other, too; some without a bound of their own, some
    interrupted."""
    drawn = draw(instances(32).filter(lambda one: len(one.workload) == 2 and one.network.routing != "pinned"))
    table = drawn.model_dump(by_alias=True)
    bounded = [
        in_days(one | {"mapping": one["mapping"] | FEW_TIMED}, one["max_iteration_time_s"]) for one in table["workload"]
    ]
    total = sum(one["train_days"] for one in bounded) * draw(st.sampled_from([0.5, 0.7, 0.8, 0.9, 1.5]))
    workloads = [
        one | ({"train_days": None} if one["train_days"] > total or draw(st.booleans()) else {}) for one in bounded
    ]
    availability = draw(failures()) | {"confidence": None} if draw(st.integers(0, 2)) == 0 else None
    limits = table["limits"] | {"train_days_total": total}
    return Instance.model_validate(table | {"workload": workloads, "limits": limits, "availability": availability})


@st.composite
def tolerant(draw: st.DrawFn) -> Instance:
    """One workload with a margin on its days, memory or ports, whose batch may differ and whose GPUs may stand idle."""
    drawn, gpus = draw(instances(32)), draw(st.sampled_from([14, 16, 20, 22, 26, 28, 33]))
    table, batch = drawn.model_dump(by_alias=True), draw(st.sampled_from([11, 13, 22, 26, 34]))
    tolerance = draw(st.sampled_from([0.0, 0.05, 0.1]))
    workload = table["workload"][0] | {"global_batch": batch, "batch_tolerance": tolerance}
    workload["mapping"] |= FEW_TIMED
    seconds = workload["max_iteration_time_s"] * draw(st.sampled_from([1.0, 3.0]))
    keep = {
        "time": draw(st.sampled_from([0.0, 0.1])), "memory": draw(st.sampled_from([0.0, 0.1, 0.8])),
        "ports": draw(st.sampled_from([0.0, 0.25])), "ties": "fastest",
    }  # fmt: skip
    changes = {"workload": [in_days(workload, seconds)], "limits": {}, "margin": keep}
    cluster = {"gpus": gpus, "idle_gpus": draw(st.sampled_from([False, True, 3]))}
    return Instance.model_validate(table | changes | {"cluster": table["cluster"] | cluster})


def least_of_batches(instance: Instance) -> float:
    """The least objective with each batch that the question may choose."""
    table = instance.model_dump(by_alias=True)
    (workload,) = table["workload"]
    return min(
        enumerated(Instance.model_validate(table | {"workload": [fixed]}))
        for batch in instance.workload[0].batches or (workload["global_batch"],)
        for fixed in [workload | {"global_batch": batch, "batches": (), "batch_tolerance": 0.0}]
    )


@st.composite
def interrupted(draw: st.DrawFn) -> Instance:
    """Small clusters whose parts fail so often that it decides; some bounds on days, some on iterations."""
    bare = draw(st.one_of(instances(), planar()))
    looser = draw(st.sampled_from([1.0, 1.02, 1.1, 1.5]))
    asked = [one | {"mapping": one["mapping"] | FEW_TIMED} for one in bare.model_dump(by_alias=True)["workload"]]
    workloads = [
        in_days(one, one["max_iteration_time_s"] * looser) if draw(st.integers(0, 3)) else one for one in asked
    ]
    table = bare.model_dump(by_alias=True) | {"workload": workloads, "availability": draw(failures())}
    return Instance.model_validate(table)
