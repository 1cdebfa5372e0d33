"""Random small questions that use the rarer keys of an instance, several at once, each as one would write it."""

import random
from collections.abc import Callable
from typing import Any

from pydantic import ValidationError

from coopt.instance.schema import Instance
from coopt.instance.texts import InstanceError
from tests.conftest import question, small_model, switch

Table = dict[str, Any]
Twist = Callable[[Table, random.Random], None]

SECONDS_PER_DAY = 86_400
MODULE = {"name": "single", "gbit_s": 400, "fibre": "lane", "reach_m": 500, "usd": 600, "w": 8}
MODULES = (
    MODULE,
    MODULE | {"name": "twin", "gbit_s": 800, "breakout": 2, "usd": 800, "w": 14},
    MODULE | {"name": "other", "gbit_s": 800, "breakout": 2, "usd": 700, "fibre": "wavelength", "reach_m": 60},
    MODULE | {"name": "cable", "fibre": None, "reach_m": 60, "usd": 650, "w": 5},
)
SPLIT_NIC = {"name": "split", "gbit_s": 400, "ports": [1, 2], "usd": 1500, "w": 20}
SPLIT_SWITCH = {"modes": [{"radix": 32, "port_gbit_s": 200}]}


def first(table: Table) -> Table:
    """The first workload."""
    found: Table = table["workload"][0]
    return found


def own_ends(table: Table, rng: random.Random) -> None:
    """A module of its own at each end of a link."""
    table["network"]["optics"] = [one | {"usd": rng.randint(100, 2000)} for one in MODULES]
    table["network"]["switches"] = [one | {"cages": one["radix"] // 2} for one in table["network"]["switches"]]
    table["network"]["link_ends"] = rng.choice(["own", "own", "same"])


def charged(table: Table, rng: random.Random) -> None:
    """Traffic charged in another way."""
    ways: list[Table] = [
        {"charge": "loads"},
        {"charge": "loads", "spray_efficiency": 0.6},
        {"charge": "loads", "routing": 1.5},
        {"charge": "loads", "routing": "pinned"},
        {"charge": "loads", "routing": "ecmp"},
        {"charge": "ratio", "routing": 1.5},
    ]
    table["network"] |= rng.choice(ways)


def filled(table: Table, rng: random.Random) -> None:
    """Domains, leaves and bundles filled in other ways, and GPUs that fill no whole number of domains."""
    choices: list[Table] = [
        {"domain_fill": "any"}, {"domain_fill": "fewest"}, {"bundles": "any"}, {"leaf_fill": "ratio"},
        {"pod_uplinks": "any"}, {"pod_bundles": [1, 2]}, {"oversubscription": [1.0, 2.0]}, {"max_tiers": 2},
    ]  # fmt: skip
    for one in rng.sample(choices, 2):
        table["network"] |= one
    table["cluster"]["gpus"] = rng.choice([48, 56, 60, 64])


def several_sizes(table: Table, rng: random.Random) -> None:
    """Numbers of GPUs to choose from."""
    table["cluster"]["gpus"] = sorted(rng.sample([16, 24, 32, 48, 64], rng.randint(2, 3)))


def several_batches(table: Table, rng: random.Random) -> None:
    """Batches to choose from; more tokens take longer, so that the bound is one of pace."""
    first(table)["global_batch"] = rng.sample([32, 64, 96, 128], rng.randint(2, 3))


def several_knobs(table: Table, rng: random.Random) -> None:
    """Ways to train to choose from."""
    keys: Table = {
        "dp_mode": ["sync", "overlap", "stale-1"],
        "tp_sync_fraction": [1.0, 0.5],
        "transport": ["rdma", "ipoib"],
    }
    for key in rng.sample(sorted(keys), rng.randint(1, 2)):
        first(table).setdefault("options", {})[key] = rng.sample(keys[key], 2)


def several_gpus(table: Table, rng: random.Random) -> None:
    """Generations of GPUs to choose from."""
    table["cluster"]["gpu"] = rng.sample(["h100-sxm", "a100-80g", "b200"], 2)
    table["network"]["hb_domains"] = [
        {"name": f"box{size}", "size": size, "gbyte_s": 300, "usd_per_gpu": rng.randint(50, 900), "w_per_gpu": 9}
        for size in (4, 8)
    ]
    table["objective"] |= {"include": ["hb", "nic", "switch", "optics", "gpu"]}


def attached(table: Table, rng: random.Random) -> None:
    """NICs that GPUs share, or of which each has several, or whose ports lead to networks of their own."""
    which = rng.randrange(4)
    if which == 0:
        table["network"]["gpus_per_nic"] = [1, 2]
    elif which == 1:
        table["network"]["nics_per_gpu"] = [1, 2]
    elif which == 2:
        table["network"]["nics"] = [SPLIT_NIC]
        table["network"]["nic_planes"] = [1, 2]
        table["network"]["switches"] = [switch(16, rng.randint(5000, 12000)) | SPLIT_SWITCH]
        table["network"]["optics"] = [MODULE | {"breakout": [2]}, MODULE | {"name": "half", "gbit_s": 200, "usd": 300}]
    else:
        table["network"]["tier_switches"] = "any"
        table["network"]["switches"] = [switch(8, rng.randint(1000, 9000)), switch(16, rng.randint(5000, 20000))]


def margins(table: Table, rng: random.Random) -> None:
    """What a plan leaves free."""
    ways: list[Table] = [{"time": 0.1}, {"time": "model", "confidence": 0.9}, {"memory": 0.3}, {"ports": 0.2}]
    table["margin"] = rng.choice(ways) | rng.choice(ways)
    table["margin"].pop("confidence", None) if table["margin"].get("time") != "model" else None


def interrupted(table: Table, rng: random.Random) -> None:
    """Bounds in days, and failures that take of them."""
    work = first(table)
    bound_s = work.pop("max_iteration_time_s", 0.5)
    iterations = 20_000
    tokens = iterations * work["model"]["seq"] * 64
    work |= {"train_tokens": float(tokens), "train_days": bound_s * iterations / SECONDS_PER_DAY}
    table["availability"] = {"rates": "llama-3", "at": rng.choice(["low", "published", "high"])}
    table["availability"] |= rng.choice([{}, {"spare_domains": [0, 1, 2]}, {"confidence": 0.9}, {"checkpoint_s": 20.0}])


def capped(table: Table, rng: random.Random) -> None:
    """Limits, most of them loose."""
    ways: list[Table] = [{"power_mw": 0.2}, {"capex_usd": 4e6}, {"racks": 40}, {"power_mw": 0.02}, {"capex_usd": 3e5}]
    table["limits"] = rng.choice(ways)


def counted(table: Table, rng: random.Random) -> None:
    """Other things count."""
    ways: list[Table] = [
        {"include": ["hb", "nic", "switch", "optics", "gpu"]},
        {"include": ["switch", "optics"]},
        {"years": 9.0, "usd_per_kwh": 0.3, "pue": 1.6},
        {"years": 0.0},
    ]
    table["objective"] |= rng.choice(ways)


def timed(table: Table, rng: random.Random) -> None:
    """Objectives that weigh a bill by time, some without a bound of their own."""
    kind = rng.choice(["time", "usd_per_token", "carbon"])
    table["objective"] = {"minimize": kind, "kg_co2_per_kwh": 0.4}
    first(table)["train_tokens"] = 1e12
    if rng.random() < 0.5:
        first(table).pop("max_iteration_time_s", None)
    if kind == "time":
        table["limits"] = rng.choice([{"capex_usd": 4e5}, {"power_mw": 0.02}, {"capex_usd": 8e5}])


def paced(table: Table, rng: random.Random) -> None:
    """A bound on the pace in place of the time."""
    work = first(table)
    if "max_iteration_time_s" in work:
        work["min_tokens_per_s"] = 64 * work["model"]["seq"] / work.pop("max_iteration_time_s")


def gathered(table: Table, rng: random.Random) -> None:
    """Collectives that take their fastest algorithm, experts, or two workloads in turn."""
    which = rng.randrange(3)
    if which == 0:
        first(table).setdefault("options", {})["collectives"] = "fastest"
    elif which == 1:
        experts = {"ffn": 2048, "experts": 16, "top_k": 2}
        first(table)["model"] = small_model(**experts)
    else:
        other = {"name": "other", "model": small_model(gated=True), "global_batch": 32, "max_iteration_time_s": 1.0}
        table["workload"].append(other | {"mapping": first(table)["mapping"]})


def doubted(table: Table, rng: random.Random) -> None:
    """Prices and parts that may turn out otherwise."""
    ways: list[Table] = [
        {"survive": ["nic"], "slower": 1.5},
        {"survive": ["leaf", "plane"], "slower": {"leaf": 2.0, "plane": 3.0}},
        {"prices": {"switch": [0.2, 9.0], "nic": [0.5, 2.0]}},
        {"prices": {"switch": [0.2, 9.0], "optics": [0.5, 2.0]}, "aim": "regret"},
        {"efficiency": [0.8, 1.1]},
        {"survive": ["domain"], "slower": 2.0},
    ]
    table["robust"] = rng.choice(ways)


def grown(table: Table, rng: random.Random) -> None:
    """Phases of growth."""
    table["cluster"]["gpus"] = 64
    table["phase"] = [
        {"year": 0, "gpus": rng.choice([16, 32]), "workloads": [{"name": "w", "max_iteration_time_s": 3.0}]},
        {"year": rng.choice([1.0, 2.5]), "gpus": 64, "price": {"nic": rng.choice([0.5, 1.4]), "switch": 0.8}},
    ]
    if rng.random() < 0.5:
        table["phase"][1]["retrofit_usd_per_link"] = rng.choice([10, 300])


def parted(table: Table, rng: random.Random) -> None:
    """Islands that share products, volume prices, a core, or GPUs."""
    table["cluster"]["gpus"] = rng.choice([48, 64])
    mapping = first(table)["mapping"]
    table["workload"] = [
        {"name": name, "model": small_model(), "global_batch": 32, "max_iteration_time_s": bound_s}
        | {"gpus": rng.choice([[16], [16, 32], [8, 16, 24]]), "mapping": mapping}
        for name, bound_s in (("w", 1.0), ("v", rng.choice([0.6, 1.5])))
    ]
    table["sharing"] = {"mode": "partition"} | rng.choice(
        [
            {},
            {"most_products": {"hb": 1, "switch": 1}},
            {"core": {"switch": "16-port", "gbit_s_per_gpu": 50.0}},
            {
                "discount": [
                    {"kind": "nic", "item": "cx7-400g", "from": [20], "off": [0.2], "applies": "incremental"},
                    {"kind": "switch", "item": "8-port", "from": [6], "off": [0.3], "applies": "all-units"},
                ]
            },
        ]
    )


def spread(table: Table, rng: random.Random) -> None:
    """Sites with budgets of their own, for islands or for shares of one job."""
    table["site"] = [
        {"name": "east", "power_mw": rng.choice([0.03, 0.1]), "usd_per_kwh": 0.05},
        {"name": "west", "power_mw": rng.choice([0.05, 0.2]), "pue": 1.1},
    ]
    table["objective"]["include"] = ["hb", "nic", "switch", "optics", "gpu"]
    if "sharing" not in table:
        table["cluster"] |= {"gpus": 64, "shares": 4}
        table["wan"] = [
            {"between": ["east", "west"], "gbit_s": 100.0, "usd": 5000.0, "w": 30, "latency_ms": 2.0, "most": 8}
        ]


ONE_NETWORK: tuple[Twist, ...] = (
    *(own_ends, charged, filled, several_sizes, several_batches, several_knobs, several_gpus),
    *(attached, margins, interrupted, capped, counted, timed, paced, gathered, doubted, grown, spread),
)
ISLANDS: tuple[Twist, ...] = (charged, filled, margins, capped, counted, doubted, grown, spread, attached)


def twisted(rng: random.Random, *, islands: bool | None = None) -> Table:
    """A random question with one to three rarer keys, as a table; it may be none that can be asked.

    Parameters
    ----------
    islands
        Whether workloads have islands of their own; one in four questions where left out.
    """
    table = question(
        cluster__gpus=rng.choice([16, 32, 48, 64]),
        network__switches=[switch(8, rng.randint(1000, 9000)), switch(16, rng.randint(4000, 20000))],
        network__nics=["cx7-400g", "cx6-200g"] if rng.random() < 0.2 else "cx7-400g",
        network__charge=rng.choice(["loads", "ratio"]),
        network__fabrics=rng.choice([["rail-only", "clos"], ["rail-optimized", "clos"], ["rail-only"], ["clos"]]),
        objective={"minimize": rng.choice(["capex", "capex", "power", "tco"])},
        workload__0__max_iteration_time_s=round(10 ** rng.uniform(-1.3, 0.1), 3),
    )
    if islands is None:
        islands = rng.random() < 0.25
    if islands:
        parted(table, rng)
    for twist in rng.sample(ISLANDS if islands else ONE_NETWORK, rng.choice([1, 2, 2, 3])):
        twist(table, rng)
    return table


def twisted_islands(rng: random.Random) -> Instance | None:
    """Random islands; None where the draw is no question."""
    return asked(twisted(rng, islands=True))


def asked(table: Table) -> Instance | None:
    """The question of a table; None where it is none."""
    try:
        return Instance.model_validate(table)
    except (ValidationError, InstanceError):
        return None
