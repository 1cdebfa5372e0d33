"""HiGHS reads the programs of plans and finds their optima again; shipped and published networks keep their bounds."""

import contextlib
import copy
import csv
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from functools import cache, partial
from itertools import count, pairwise, product
from pathlib import Path
from typing import Any

import highspy
import numpy as np
import pyomo.core as pyo
import pytest

import coopt
from coopt.columns.times import bound_shares, unbounded
from coopt.instance.designs import PublishedDesign, read_designs
from coopt.instance.hardware import HbDomain, Nic, Switch
from coopt.instance.schema import Instance
from coopt.instance.texts import InstanceError
from coopt.network.designs import chain_of
from coopt.network.space import families
from coopt.plan.networks import ReproducedRow
from coopt.plan.schema import Plan
from coopt.plan.store import read_plan
from coopt.solving import export_files
from coopt.solving.export_files import model_lp, model_mps, programs_of
from coopt.solving.fleet import answer
from coopt.solving.fleet.parts import subset
from coopt.solving.highs import SolverAnswer, options
from coopt.solving.runs import Backend, Program, no_programs
from coopt.verifier.parts.bills import levels
from coopt.verifier.parts.layouts import chains
from coopt.verifier.parts.space import NO_CHARGE, DesignFamily, NicAttachment
from coopt.verifier.training.iteration import model_flop_per_token
from tests.conftest import FEW_MAPPINGS, ONE_NETWORK, SHIPPED, ask, question, shipped, small_model, switch
from tests.kinds import QUESTIONS as KINDS
from tests.kinds import solved

INSTANCES = Path(__file__).parents[2] / "instances"
WRITERS = {"lp": model_lp, "mps": model_mps}

QUESTIONS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "three tiers": {"cluster__gpus": 256, "network__switches": [switch(8, 5000)]},
    "tight": {
        "cluster__gpus": 128,
        "workload__0__max_iteration_time_s": 0.065,
        "network__fabrics": "rail-only",
        "network__switches": [switch(12, 5000)],
        "network__oversubscription": 5.0,
    },
    "limited": {"limits": {"power_mw": 1.0, "capex_usd": 1e8}},
    "free": {"objective": {"include": ["hb"]}},
    "two workloads": {
        "workload": [
            {"name": name, "model": small_model(), "global_batch": 64, "max_iteration_time_s": bound}
            for name, bound in (("w", 1.0), ("v", 0.5))
        ]
    },
}


def check_common(text: str) -> None:
    """Sections that every reader of LP files knows, none of them empty, and no constant to minimise."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("\\")]
    heads = [n for n, line in enumerate(lines) if not line.startswith(" ")]
    assert [lines[n] for n in heads[:2]] == ["minimize", "subject to"]
    assert lines[-1] == "end"
    assert {lines[n] for n in heads[2:-1]} <= {"bounds", "binary", "general"}
    assert all(second - first > 1 for first, second in pairwise(heads[1:]))
    terms = " ".join(lines[1 : heads[1]]).partition(":")[2].split()
    assert terms  # GLPK stops at an empty objective
    assert all(re.fullmatch(r"[+-][\d.e+-]+", number) for number in terms[::2])
    assert all(re.fullmatch(r"[a-z]\w*", name) for name in terms[1::2])


def read_again(text: str, ending: str, folder: Path) -> highspy.Highs:
    """What HiGHS makes of a file, with the options of our own searches."""
    file = folder / f"model.{ending}"
    file.write_text(text, "utf-8")
    if ending == "lp":
        check_common(text)
    h = highspy.Highs()
    for name, value in options(gap=0.0, threads=1).items():
        h.setOptionValue(name, value)
    assert h.readModel(str(file)) == highspy.HighsStatus.kOk
    with ThreadPoolExecutor(1) as alone:  # a thread keeps the number of threads of the first search in it
        assert alone.submit(h.run).result() != highspy.HighsStatus.kError
    return h


def solved_again(text: str, ending: str, folder: Path) -> highspy.Highs:
    """As `read_again`, of a program that has an optimum."""
    h = read_again(text, ending, folder)
    assert h.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return h


def check(instance: Instance, plan: Plan, ending: str, folder: Path) -> None:
    again = solved_again(WRITERS[ending](instance, plan), ending, folder)
    assert plan.status == "optimal"
    assert again.getInfo().objective_function_value == pytest.approx(plan.objective.value, rel=1e-9, abs=1e-6)


@pytest.mark.parametrize("ending", WRITERS)
@pytest.mark.parametrize("name", QUESTIONS)
def test_highs_finds_the_optimum_of_the_plan(name: str, ending: str, tmp_path: Path) -> None:
    instance = ask(**QUESTIONS[name])
    check(instance, coopt.solve(instance), ending, tmp_path)


@pytest.mark.parametrize("objective", ["power", "tco"])
def test_the_objective_is_the_one_the_plan_was_solved_for(objective: Any, tmp_path: Path) -> None:
    instance = ask()
    plan = coopt.solve(instance, objective=objective)
    assert plan.objective.value != coopt.solve(instance).objective.value
    check(instance, plan, "lp", tmp_path)


@pytest.mark.parametrize("file", ONE_NETWORK, ids=lambda file: file.stem)
def test_shipped_instances_have_the_same_optimum(
    file: Path, shipped_plan: Callable[[Path], Path], tmp_path: Path
) -> None:
    instance, plan = shipped(file), read_plan(shipped_plan(file))
    if plan.status == "optimal" and not instance.beyond_one_network:
        check(instance, plan, "mps", tmp_path)
        return
    for write in WRITERS.values():
        with pytest.raises(InstanceError, match=r"no network serves|best of 7"):
            write(instance, plan)


def test_variables_have_the_names_of_the_mathematics(tmp_path: Path) -> None:
    instance = ask()
    plan = coopt.solve(instance)
    h = solved_again(model_lp(instance, plan), "lp", tmp_path)
    names = h.getLp().col_names_
    assert {name.split("_")[0] for name in names} == {"y", "u", "s", "z"}
    values = dict(zip(names, h.getSolution().col_value, strict=True))
    (built,) = [name for name, value in values.items() if value > 0.5 and name[0] == "y"]
    (line,) = [line for line in model_lp(instance, plan).splitlines() if line.startswith(f"\\ {built}:")]
    assert plan.design.hb_domain.name in line


def test_wrong_coefficients_are_cut_off_and_cuts_are_part_of_the_program(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from coopt.solving import arrays

    honest = arrays.NetworkData

    def lying(**fields: Any) -> Any:
        return honest(**fields | {"need": (fields["need"] - 2).clip(1)})

    instance = ask(**QUESTIONS["tight"])
    expected = coopt.solve(instance)
    monkeypatch.setattr(arrays, "NetworkData", lying)
    plan = coopt.solve(instance)
    assert plan.objective.value == expected.objective.value
    assert plan.solver.cuts > 0
    assert "cuts_1" in model_lp(instance, plan)
    check(instance, plan, "lp", tmp_path)


def test_a_program_within_limits_that_nothing_meets_is_infeasible(tmp_path: Path) -> None:
    instance = ask(limits={"capex_usd": 1.0})
    plan = coopt.solve(instance)
    assert plan.status == "infeasible"
    h = read_again(model_lp(instance, plan), "lp", tmp_path)
    assert h.getModelStatus() == highspy.HighsModelStatus.kInfeasible


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "switched"])
def test_where_nothing_serves_no_program_of_any_kind_is_written(kind: str) -> None:
    table = copy.deepcopy(KINDS[kind])
    for workload in table["workload"]:
        workload["max_iteration_time_s"] = 1e-6
    instance = Instance.model_validate(table)
    plan = coopt.solve(instance, reasons=False)
    assert plan.status == "infeasible"
    with pytest.raises(InstanceError, match="no network serves"):
        model_lp(instance, plan)


def test_direct_links_that_no_mapping_may_have_leave_no_program(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = Instance.model_validate(KINDS["direct"])
    plan = coopt.solve(instance)
    monkeypatch.setattr(export_files, "programs_of", lambda _: no_programs)
    with pytest.raises(InstanceError, match="without 'direct'"):
        model_lp(instance, plan)


def test_an_optic_that_leaves_a_workload_no_option_has_no_program(monkeypatch: pytest.MonkeyPatch) -> None:
    def offered(run: Any) -> Any:
        (offer,), *rest = found(run)
        first = subset(offer.data, np.flatnonzero(offer.data.workload == 0))
        return [replace(offer, data=first), offer], *rest

    found = answer.offered
    monkeypatch.setattr(answer, "offered", offered)
    assert len(list(programs_of(Instance.model_validate(KINDS["partition"]))("choice"))) == 1


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "switched"])
def test_the_best_program_of_every_kind_is_worth_what_the_plan_is(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (instance, plan), values = solved(kind), []
    listed = cache(lambda asked, name: [*programs_of(asked)(name)])  # once for all files
    monkeypatch.setattr(export_files, "programs_of", lambda asked: partial(listed, asked))
    for text in programs(instance, plan):
        h = read_again(text, "mps", tmp_path)
        if h.getModelStatus() != highspy.HighsModelStatus.kInfeasible:
            values.append(h.getObjectiveValue())
    assert min(values) == pytest.approx(plan.objective.value, rel=1e-9)


def programs(instance: Instance, plan: Plan) -> Iterator[str]:
    """All programs of a question."""
    with contextlib.suppress(InstanceError):
        for number in count(1):
            yield model_mps(instance, plan, number)


def test_a_constant_to_minimise_is_a_variable_that_is_one(tmp_path: Path) -> None:
    model = pyo.ConcreteModel()
    model.x = pyo.Var(within=pyo.Binary)
    model.least = pyo.Constraint(expr=model.x >= 1)
    model.cost = pyo.Objective(expr=2 * model.x + 3)
    for ending in WRITERS:
        text = export_files._text(Program(model=model, unit=10.0, base=7.0), ending)
        assert export_files.CONSTANT in text
        assert solved_again(text, ending, tmp_path).getInfo().objective_function_value == 57.0


def test_an_objective_that_is_nothing_names_a_variable(tmp_path: Path) -> None:
    model = pyo.ConcreteModel()
    model.x = pyo.Var(within=pyo.Binary)
    model.least = pyo.Constraint(expr=model.x >= 1)
    model.cost = pyo.Objective(expr=0 * model.x)
    text = export_files._text(Program(model=model, unit=1.0), "lp")
    assert "\n obj: +0 x\n" in text
    assert solved_again(text, "lp", tmp_path).getInfo().objective_function_value == 0.0


def test_one_of_several_programs_has_to_be_named() -> None:
    instance = Instance.model_validate(KINDS["sites"])
    plan = coopt.solve(instance)
    for number, given in ((None, ""), (4, " = 4"), (0, " = 0")):
        with pytest.raises(InstanceError, match=f"--program{given}: .* 3 programs"):
            model_mps(instance, plan, number)
    assert "* program 2 of" in model_mps(instance, plan, 2)


def test_the_plan_of_another_instance_is_refused() -> None:
    plan = coopt.solve(ask())
    with pytest.raises(InstanceError, match="another instance"):
        model_lp(ask(cluster__gpus=128), plan)


def test_a_formulation_without_such_a_file_is_refused() -> None:
    instance = Instance.model_validate(KINDS["direct"])
    plan = coopt.solve(instance)
    odd = plan.model_copy(update={"solver": plan.solver.model_copy(update={"formulation": "magic"})})
    with pytest.raises(InstanceError, match=r"'magic',.* links or averages"):
        model_mps(instance, odd)


COUNTED_IN_TIME = {"workload__0__mapping": FEW_MAPPINGS, "workload__0__options": {}}
EVERY = KINDS | {kind: question(objective={"minimize": kind}, **COUNTED_IN_TIME) for kind in ("time", "usd_per_token")}
PROGRAMS = {"shared": "network", "turns": "network", "sites": "ring", "direct": "links", "switched": "network"}
"""The program whose optimum a plan is; the choice among islands where nothing is said."""


@pytest.mark.parametrize("kind", EVERY)
def test_no_plan_comes_without_the_optimum_of_a_program(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[tuple[str, SolverAnswer]] = []
    hand_over = Backend.solve

    def counted(self: Backend, model: Any, *args: Any, **settings: Any) -> SolverAnswer:
        answer = hand_over(self, model, *args, **settings)
        answers.append((model.name, answer))
        return answer

    monkeypatch.setattr(Backend, "solve", counted)
    plan = coopt.solve(Instance.model_validate(EVERY[kind]))
    assert plan.status == "optimal"
    outcomes = [answer.outcome for name, answer in answers if name == PROGRAMS.get(kind, "choice")]
    assert "optimal" in outcomes, [name for name, _ in answers]
    assert plan.solver.formulation in {name for name, _ in answers} or plan.rivals


ROOT = Path(__file__).parents[2]
RECORD = list(csv.DictReader((ROOT / "benchmarks" / "disciplines.csv").read_text("utf-8").splitlines()))
QUICK = ("tiny-64", "phased-128", "rail-only-gpt-1t", "fleet-core-growth", "direct-64")
"""Instances that are solved, routed and simulated within seconds; the benchmark records others."""


@pytest.mark.parametrize("name", QUICK)
def test_routes_and_simulation_keep_every_bound(name: str, shipped_plan: Callable[[Path], Path]) -> None:
    file = ROOT / "instances" / f"{name}.toml"
    instance, plan = coopt.load(file), read_plan(shipped_plan(file))
    assert plan.parts
    for part in plan.parts:
        if part.design is None:
            continue
        found = coopt.route(instance, plan, part=part.name, with_links=False)
        assert [one.within_bound for one in found.workloads] == [True] * len(part.workloads)
    assert coopt.simulate(instance, plan).met


MISSED = {"fleet-131k-w8": 1.0003}
"""Instances of which a simulation that draws which messages leave first misses a bound, and by how much at most."""


@pytest.mark.parametrize("row", RECORD, ids=lambda row: row["instance"])
def test_no_other_bound_is_missed_on_file(row: dict[str, str]) -> None:
    assert row["instance"] in {file.stem for file in SHIPPED}
    assert not row["routed"] or float(row["routed"]) <= 1
    assert not row["simulated"] or float(row["simulated"]) <= MISSED.get(row["instance"], 1)
    assert row["instance"] not in MISSED or float(row["simulated"]) > 1
    assert bool(row["simulated"]) == bool(row["spray"])


def test_every_instance_is_held_to_its_bounds() -> None:
    assert [row["instance"] for row in RECORD] == sorted(file.stem for file in SHIPPED)
    assert {*QUICK} < {row["instance"] for row in RECORD}


@pytest.mark.parametrize("gpus", [16_384, 24_576])
def test_a_network_like_that_of_llama_3_keeps_the_published_time(gpus: int) -> None:
    """Leaves without oversubscription and seven links down for one up above; 400 TFLOP/s a GPU (arXiv 2407.21783)."""
    keys = {
        "cluster.gpus": gpus, "workload.0.global_batch": gpus // 8,
        "workload.0.mapping": {"tp": 8, "pp": 16, "interleave": [1, 2, 4, 8], "zero": [1, 2]},
        "workload.0.options": {"dp_mode": "overlap"}, "network.hb_domains": "hgx-h100-8", "network.fabrics": "clos",
        "network.switches": "qm9700", "network.oversubscription": 7.0,
    }  # fmt: skip
    asked = coopt.load(ROOT / "instances" / "llama3-405b-16k.toml", keys)
    (workload,) = asked.workload
    bound_s = model_flop_per_token(workload.model) * workload.tokens_per_iteration / (gpus * 400e12)
    asked = coopt.load(ROOT / "instances" / "llama3-405b-16k.toml", keys | {"workload.0.max_iteration_time_s": bound_s})
    wide = [one for one in families(asked) if one.pods is not None and one.active == one.hb.size]
    like = next(one for one in wide if one.pods.l == 7 * one.pods.w and one.down in one.uplink_choices)
    (pace,) = bound_shares(asked, (like,), unbounded(asked, (like,), lambda site: None))
    assert pace[like.uplink_choices.index(like.down)] <= 1


FILE = Path(__file__).parents[2] / "instances" / "designs" / "published.toml"
DESIGNS = read_designs(FILE)
PORT_USD, END_USD = 694, 199


@pytest.fixture(scope="module")
def rows() -> dict[str, ReproducedRow]:
    """What each design on file costs, with the cheapest network in its place."""
    return {row.id: row for row in coopt.reproduce(FILE, cheapest=True).rows}


def least_usd(design: PublishedDesign) -> float:
    """The least price of all networks that are allowed, by the verifier's list of them and its counts."""
    chain = chain_of(design)
    leaf = max(Fraction(chain.fill, chain.uplinks), Fraction(1)) if chain.uplinks else Fraction(1)
    pods = chain.pods if chain.cores else ()
    whole = leaf * max([Fraction(1), *(Fraction(pod.down, pod.up) for pod in pods)])
    rails, found = design.rails or design.gpus_per_domain, []
    kinds = [("rail-only", rails)] if design.fabric == "rail-only" else []
    kinds += [(kind, size) for kind in ("rail-optimized", "clos") for size in {rails, design.gpus_per_domain}]
    network = ask(
        network__oversubscription=float(whole) * (1 + 1e-12) if whole > 1 else 1.0,
        network__leaf_fill="any",
        network__bundles=design.bundles,
    ).network
    for kind, size in kinds:
        for stack in product({tier.ports for tier in design.tiers}, repeat=3):
            nic = Nic(name="n", gbit_s=400, usd=0, w=0)
            box, *above = (Switch(name=f"{radix}", radix=radix, port_gbit_s=400, usd=0, w=0) for radix in stack)
            attachment = NicAttachment(kind, nic, design.nic_ports // design.planes, box, NO_CHARGE)  # type: ignore[arg-type]
            attachment = attachment._replace(above=tuple(above))
            hb = HbDomain(name="h", size=size, gbyte_s=1, usd_per_gpu=0, w_per_gpu=0)
            family = DesignFamily(design.gpus, hb, -(-design.gpus // size), attachment)
            for one in chains(family, network):
                for up in one.uplinks:
                    ports = one.with_up(up)
                    in_leaf = Fraction(ports.down, up) if up else Fraction(1)
                    in_pod = Fraction(ports.pod_down, ports.pod_up) if ports.pod_up else Fraction(1)
                    if in_leaf <= leaf and in_leaf * in_pod <= whole:
                        tiers = levels(family, ports)
                        switch_ports = sum(tier.switches * radix for tier, radix in zip(tiers, stack, strict=False))
                        links = sum(tier.links for tier in tiers)
                        found.append(design.planes * (switch_ports * PORT_USD + 2 * links * END_USD))
    return min(found)


@pytest.mark.parametrize("design", [one for one in DESIGNS if one.gpus <= 4608], ids=lambda design: design.id)
def test_no_network_of_the_space_is_cheaper(design: PublishedDesign, rows: dict[str, ReproducedRow]) -> None:
    found = rows[design.id].cheapest
    if found.usd is None:
        assert "rate" in found.why
        return
    assert found.usd == pytest.approx(min(found.published_usd, least_usd(design)), rel=1e-12)
    assert (found.counted is None) == (found.usd == found.published_usd)
    assert bool(found.why) == (found.counted is not None)


@pytest.mark.parametrize(
    ("design", "words"),
    [
        (
            "juniper-evpn-2-stripes",
            "one tier of 128-port switches, with 1 fewer tier, 19 fewer switches, 128 fewer cables",
        ),
        ("lenovo-289-4su", "separate rails on one tier of 128-port switches, with 2 fewer switches"),
        ("s110-b300-out-of-band", "clos, 43 end points and 6 uplinks a leaf"),
    ],
)
def test_the_words_of_a_rival_say_what_it_joins(rows: dict[str, ReproducedRow], design: str, words: str) -> None:
    """Nothing is rail-optimized on one tier, nor where a domain has one rail."""
    row = rows[design]
    assert row.cheapest.why.startswith(f"the cheapest network is {words}")


def test_racks_with_a_leaf_of_each_rail_keep_ports_free_and_rails_apart_stay_joined_within(
    rows: dict[str, ReproducedRow],
) -> None:
    # 8 racks of 72 GPUs: 32 leaves of 18 end points below 24 spines of 24 ports, where 18 leaves of 32 and 16 spines do
    row = rows["dgx-gb200-1su"]
    assert row.cheapest.counted.switches == (18, 16)
    assert row.cheapest.counted.links == (576, 576) == row.counted.links
    assert row.cheapest.published_usd == 56 * 64 * PORT_USD + 2 * 1152 * END_USD
    assert row.cheapest.usd == 34 * 64 * PORT_USD + 2 * 1152 * END_USD
    assert "need not keep the published rails, unit_domains, leaf_domains, pod" in row.cheapest.why
    # two rails of a domain of eight join four GPUs of it each, which a network for each GPU would not
    apart = rows["lenovo-289-4su"].cheapest.counted
    assert (apart.links, sum(apart.switches)) == ((256,), 2)
