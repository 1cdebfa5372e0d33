"""Answers that fit their question in every number and are not true of it: those of another one, dressed as its own.

`python -m tests.verifier.lies COUNT [SEED]` tells how many lies are taken for proven, by `verify` and by `certify`, and
how many honest plans are refused; half of the questions use the rarer keys of `tests/verifier/twists.py`.
"""

import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from pydantic import ValidationError

from coopt.instance.question import BILLED
from coopt.instance.schema import Chosen, Instance
from coopt.instance.texts import InstanceError
from coopt.instance.variants import leaves_tp_open
from coopt.plan.schema import Plan
from coopt.solving.answer import solve
from coopt.verifier.audit import verify
from coopt.verifier.bounds.timed import worth
from coopt.verifier.certificates import certify
from coopt.verifier.checks.verdict import Verdict
from coopt.verifier.parts.bills import BillTotal
from tests.solving.drawn import by_hand
from tests.verifier.kinds import KINDS
from tests.verifier.twists import twisted

ASKED = ("shared", "partition", "phased", "robust", "regret", "fleet", "sites", "direct", "switches")
ABOUT_BOUNDS = {"bound", "infeasible", "rival-bound", "rival-none", "rivals-bound"}
SAME = 1e-12  # of a value: nearer ones are one value, and claiming it is no lie
TIME_LIMIT_S = 20.0
LISTS: dict[str, tuple[str, ...]] = {
    "network": (
        *("hb_domains", "fabrics", "nics", "switches", "optics"),
        *("nics_per_gpu", "gpus_per_nic", "nic_planes", "oversubscription", "pod_bundles"),
    ),
    "cluster": ("gpus", "generations"),
}
NARROWER: tuple[tuple[str, Any], ...] = (
    ("leaf_fill", "ratio"), ("bundles", "even"), ("pod_uplinks", "ratio"), ("tier_switches", "same"),
    ("domain_fill", "even"), ("link_ends", "same"), ("max_tiers", 2), ("max_tiers", 1), ("oversubscription", 1.0),
    ("oversubscription", [1.0, 2.0]),
)  # fmt: skip
"""Keys of the network and values that leave less to choose from, where others stand."""
MAPPED: tuple[tuple[str, list[Any]], ...] = (
    *(("tp", [one]) for one in (1, 2, 4, 8)),
    *(("pp", [one]) for one in (1, 2, 4)),
    *(("micro_batch", [one]) for one in (1, 2, 4)),
    *(("zero", [one]) for one in (0, 1)),
    ("recompute", ["full"]),
    ("sequence_parallel", [False]),
    ("outermost", ["dp"]),
    ("outermost", ["pp"]),
)
"""Splits of a workload that leave less to choose from."""
BOUNDS = {"max_iteration_time_s": 1, "train_days": 1, "min_tokens_per_s": -1}
KINDS_OF_OBJECTIVE = tuple(BILLED)
Table = dict[str, Any]


class Lie(NamedTuple):
    """A question, an answer that is not true of it, the true one, and where the lie comes from."""

    instance: Instance
    plan: Plan
    truth: Plan
    source: str


def table_of(instance: Instance) -> Table:
    """The question as one writes it."""
    return instance.model_dump(mode="json", by_alias=True, exclude_none=True)


def varied(instance: Instance, rng: random.Random) -> Instance:
    """The question with other prices, bounds, objective, and a bound that its best plan just meets now and then."""
    table = table_of(instance)
    for key in ("nics", "switches", "optics"):
        for product in table["network"].get(key, ()):
            product["usd"] = round(product["usd"] * rng.uniform(0.3, 3.0), rng.choice([0, 2, 9]))
    _at_bounds(table, rng.choice([1.0, rng.uniform(0.8, 2.0)]))
    if not (instance.phase or instance.robust):
        table["objective"]["minimize"] = rng.choice(["capex", "power", "tco"])
    asked = Instance.model_validate(table)
    if rng.random() < 0.3 and set(asked.beyond_one_network) <= {"[robust]"}:
        plan = solve(asked)
        for workload, run in zip(table["workload"], plan.workloads, strict=False):
            workload["max_iteration_time_s"] = run.iteration_time_s
    return Instance.model_validate(table)


def _at_bounds(table: Table, factor: float) -> None:
    phases = (one for phase in table.get("phase", ()) for one in phase["workloads"])
    for workload in (*table["workload"], *phases):
        for key, power in BOUNDS.items():
            if workload.get(key) is not None:
                workload[key] *= factor**power


def restricted(table: Table, rng: random.Random) -> None:
    """Less to choose from."""
    places = [table[name] for name in LISTS] + [
        one for workload in table["workload"] for one in (workload, workload.get("options", {}).get("allowed", {}))
    ]
    keys = [key for names in LISTS.values() for key in names]
    keys += ["batches", "gpus", "dp_mode", "tp_sync_fraction", "transport"]
    several = [
        place[key] for place in places for key in keys if isinstance(place.get(key), list) and len(place[key]) > 1
    ]
    if not several:
        raise IndexError
    listed = rng.choice(several)
    listed.pop(rng.randrange(len(listed)))
    _first_of_lists(table)


def _first_of_lists(table: Table) -> None:
    """Keep what stands beside a list its first, and lists of one none."""
    cluster = table["cluster"]
    if cluster.get("generations"):
        cluster["gpu"] = cluster["generations"][0]
    for workload in table["workload"]:
        if workload.get("batches"):
            workload["global_batch"] = workload["batches"][0]
        allowed = workload.get("options", {}).get("allowed", {})
        workload.setdefault("options", {}).update({key: values[0] for key, values in allowed.items() if values})


def narrowed(table: Table, rng: random.Random) -> None:
    """Fewer networks, by a rule in place of a list."""
    network = table["network"]
    key, value = rng.choice([(key, value) for key, value in NARROWER if network.get(key) != value])
    network[key] = value


def mapped(table: Table, rng: random.Random) -> None:
    """Fewer ways to split a workload."""
    workload = rng.choice(table["workload"])
    key, values = rng.choice(MAPPED)
    workload["mapping"] = workload.get("mapping", {}) | {key: values}


def limited(table: Table, rng: random.Random, truth: Plan) -> None:
    """Less money, power or racks than the best plan takes, at all sites or at one."""
    if truth.cost is None:
        raise IndexError
    spent = {"capex_usd": truth.cost.capex_usd, "power_mw": truth.cost.power_w / 1e6}
    racks = [part.design.racks for part in truth.parts if part.design and part.design.racks]
    spent |= {"racks": float(sum(racks))} if racks else {}
    factor = 1 - 10 ** rng.uniform(-12, -0.5)
    if table.get("site") and rng.random() < 0.5:
        rng.choice(table["site"])["power_mw"] *= factor
    else:
        key = rng.choice(sorted(spent))
        table["limits"] = table.get("limits", {}) | {key: spent[key] * factor}


def tightened(table: Table, rng: random.Random) -> None:
    """Less time."""
    _at_bounds(table, 1 - 10 ** rng.uniform(-13, -0.3))


def relaxed(table: Table, rng: random.Random) -> None:
    """More time."""
    _at_bounds(table, 1 + 10 ** rng.uniform(-8, 0))


def swapped(table: Table, rng: random.Random) -> None:
    """Another objective."""
    table["objective"]["minimize"] = rng.choice(
        [kind for kind in KINDS_OF_OBJECTIVE if kind != table["objective"]["minimize"]]
    )


def extended(table: Table, rng: random.Random) -> None:
    """TP groups that may extend over HB domains, or may not, where that was left open."""
    across = rng.choice([True, True, False])
    if not any(workload.get("allow_tp_across") is None for workload in table["workload"]):
        raise IndexError
    for workload in table["workload"]:
        workload["allow_tp_across"] = across


CHANGES: tuple[Callable[..., None], ...] = (
    *(restricted, narrowed, mapped, limited, tightened, relaxed, swapped, extended),
)


def dressed(instance: Instance, truth: Plan, answer: Instance, plan: Plan) -> Plan:
    """The plan with the bounds, the objective and the choice of a question, and nothing said of another."""
    table, value = plan.model_dump(mode="json", by_alias=True), _value(instance, truth, plan)
    table["instance"] = {"name": instance.name, "sha256": instance.sha256}
    table["overrides"] = {}
    across = plan.tp_across or any(workload.allow_tp_across for workload in answer.workload)
    table["tp_across"] = across and leaves_tp_open(instance)
    table["chosen"] = _chosen(instance, answer, plan).model_dump(mode="json")
    table["couplings"] |= _as_told(instance, truth, table["couplings"], value)
    table["objective"] |= {"kind": instance.objective.minimize}
    if value != plan.objective.value:
        table["objective"] |= {"value": value, "bound": value, "gap": 0.0}
    bounds = {(part.phase, run.name): run for part in truth.parts for run in part.workloads}
    plain = {workload.name: workload.bound_s for workload in instance.workload}
    every = [(None, run) for run in table["workloads"]]
    every += [(part["phase"], run) for part in table["parts"] for run in part["workloads"]]
    for phase, run in every:
        known = bounds.get((phase, run["name"]))
        run["bound_s"] = plain.get(run["name"], run["bound_s"]) if known is None else known.bound_s
        if known is not None and known.uptime is not None and run["uptime"] is not None:
            run["bound_s"] *= run["uptime"]["promised"] / known.uptime.promised
    return Plan.model_validate(table)


def _chosen(instance: Instance, answer: Instance, plan: Plan) -> Chosen:
    """What a plan of another question chooses of the lists of this one."""
    if not instance.open_keys:
        return Chosen()
    said, cluster = plan.chosen, instance.cluster
    options = {}
    for one, other in zip(instance.workload, answer.workload, strict=True):
        here = said.options.get(one.name, {})
        found = {key: here.get(key, getattr(other.options, key)) for key in one.options.allowed.listed}
        options |= {one.name: found} if found else {}
    batches = {
        one.name: said.global_batch.get(one.name, other.global_batch)
        for one, other in zip(instance.workload, answer.workload, strict=True)
        if one.batches
    }
    gpu = (said.gpu or answer.cluster.gpu.name) if cluster.generations else None
    return Chosen(gpu=gpu, global_batch=batches, options=options)


def _as_told(instance: Instance, truth: Plan, couplings: Table, value: float | None) -> Table:
    """What couplings say that a question decides and no plan: limits of sites, best plans, planning by phases."""
    told: Table = {}
    limits_w = {site.name: site.power_mw * 1e6 for site in instance.site}
    if couplings["sites"]:
        told["sites"] = [one | {"facility_limit_w": limits_w[one["site"]]} for one in couplings["sites"]]
    standing = truth.couplings.outlooks
    if couplings["outlooks"] and standing and len(standing.turns) == len(couplings["outlooks"]["turns"]):
        pairs = zip(couplings["outlooks"]["turns"], standing.turns, strict=True)
        told["outlooks"] = couplings["outlooks"] | {"turns": [one | {"best": other.best} for one, other in pairs]}
    if couplings["myopic"] and truth.couplings.myopic is not None:
        told["myopic"] = truth.couplings.myopic.model_dump(mode="json")
        if truth.couplings.myopic.value is not None and value is not None:
            told["myopic"] |= {"saving": truth.couplings.myopic.value - value}
    return told


def _value(instance: Instance, truth: Plan, plan: Plan) -> float | None:
    """What a plan is worth by the objective of a question."""
    kind, cost = instance.objective.minimize, plan.cost
    if cost is None or plan.objective.value is None:
        return None
    standing, mine = truth.couplings.outlooks, plan.couplings.outlooks
    if standing and mine and mine.aim == "regret" and len(standing.turns) == len(mine.turns):
        pairs = zip(mine.turns, standing.turns, strict=True)
        return max(0.0, *(one.value - other.best for one, other in pairs))
    if plan.objective.kind == kind:
        return plan.objective.value
    if kind != BILLED[kind]:
        return worth(
            instance, kind, BillTotal(cost.capex_usd, cost.power_w, cost.tco_usd), plan.workloads[0].iteration_time_s
        )
    return {"capex": cost.capex_usd, "power": cost.power_w, "tco": cost.tco_usd}[kind]


def questions(rng: random.Random) -> Iterator[Instance]:
    """Random questions without end: those of every kind at other prices, and those with rarer keys."""
    bases = [KINDS[kind]() for kind in ASKED]
    while True:
        try:
            yield varied(rng.choice(bases), rng) if rng.random() < 0.3 else Instance.model_validate(twisted(rng))
        except (ValidationError, InstanceError):
            continue  # no such question


def lies(rng: random.Random, honest: list[tuple[Instance, Plan]]) -> Iterator[Lie]:
    """Lies without end; the true answers met on the way are added to `honest`."""
    for instance in questions(rng):
        truth = solve(instance, time_limit_s=TIME_LIMIT_S)
        honest.append((instance, truth))
        for change in rng.sample(CHANGES, len(CHANGES)):
            table = table_of(instance)
            try:
                change(table, rng, *([truth] if change is limited else ()))
                other = Instance.model_validate(table)
            except (ValidationError, InstanceError, IndexError):
                continue  # no such question
            answer = solve(other, time_limit_s=TIME_LIMIT_S)
            if answer.status in ("optimal", "infeasible"):
                told = dressed(instance, truth, other, answer)
                if _differs(instance, truth, told):
                    yield Lie(instance, told, truth, change.__name__)


def _differs(instance: Instance, truth: Plan, claim: Plan) -> bool:
    """Whether a claim is of another value than the truth, or that there is none."""
    if truth.status not in ("optimal", "infeasible"):
        return False
    value, best = claim.objective.value, truth.objective.value
    if value is None or best is None:
        return value is not best
    scale = (
        max(turn.value for turn in truth.couplings.turns)
        if _of_regret(instance) and truth.couplings.turns
        else abs(best)
    )
    return abs(value - best) > SAME * scale


def judged(lie: Lie) -> str:
    """What becomes of a lie; by which checks it is refused is told where its bound alone gives it away."""
    verdict = verify(lie.instance, lie.plan)
    names = {check.name for check in verdict.failures}
    word = "refused" if not verdict.accepted else "undecided" if _doubted(lie, verdict) else "taken for proven"
    return f"{word} for its bound alone" if names and names <= ABOUT_BOUNDS else word


def _doubted(lie: Lie, verdict: Verdict) -> bool:
    """Whether a verdict takes the bound on trust, and any rival that it names is no dearer than the true plan.

    A rival of a plan that denies any design has a price, which is not to be compared with a regret.
    """
    value, rival = lie.truth.objective.value, verdict.undecided
    if value is None or rival is None or (_of_regret(lie.instance) and lie.plan.objective.value is None):
        return bool(verdict.on_trust)
    return bool(verdict.on_trust) and rival.value <= value * (1 + SAME)


def _of_regret(instance: Instance) -> bool:
    return instance.robust is not None and instance.robust.aim == "regret"


def certified(lie: Lie) -> str:
    """What `coopt certify` says of a lie: of one that is too cheap it may prove the bound, which is true, as any bound
    is where nothing is feasible."""
    bound, value = lie.plan.objective.bound, lie.truth.objective.value
    true = bound is not None and (lie.truth.status == "infeasible" or (value is not None and bound <= value))
    kind = lie.instance.objective.minimize
    if kind != BILLED[kind] or true:
        return "not asked"
    return "proven" if certify(lie.instance, lie.plan).ok else "not proven"


def campaign(count: int, start: int = 0) -> Counter[str]:
    """What becomes of so many lies, and of the true answers to their questions."""
    honest: list[tuple[Instance, Plan]] = []
    found: Counter[str] = Counter()
    told = lies(random.Random(start), honest)
    looked_at = 0
    for lie in (next(told) for _ in range(count)):
        word, proven = judged(lie), certified(lie)
        found[f"lies {word}"] += 1
        found[f"lies {proven} by certify"] += 1
        if word == "taken for proven" or (proven == "proven" and word != "undecided"):
            asked = lie.instance.model_dump_json(exclude_none=True, by_alias=True)
            sys.stderr.write(f"LIE {word}, {proven}, {lie.source}: {asked} {lie.plan.model_dump_json(by_alias=True)}\n")
        while looked_at < min(len(honest), count):
            instance, truth = honest[looked_at]
            looked_at += 1
            answer = verify(instance, truth)
            found[f"honest plans {'accepted' if answer.accepted else 'refused'}"] += 1
            if not answer.accepted:
                names = [check.name for check in answer.failures]
                sys.stderr.write(f"HONEST {names} {instance.model_dump_json(exclude_none=True, by_alias=True)}\n")
        if sum(found.values()) % 50 < 4:
            sys.stderr.write(f"{dict(found)}\n")
    return found


if __name__ == "__main__":
    by_hand(campaign, "taken for proven", "honest plans refused")
