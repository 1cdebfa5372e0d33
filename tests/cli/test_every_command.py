"""Every command that looks into a plan answers every plan, part by part; what has no answer says why."""

import csv
import io
import itertools
import json
import math
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from coopt.explain.inquiry import Inquiry
from coopt.instance.schema import Instance
from coopt.plan.schema import Plan
from coopt.plan.store import plan_json
from coopt.solving.answer import solve
from tests.cli.conftest import Coopt
from tests.conftest import example_count, question
from tests.kinds import ALIKE, ISLANDS, PRICES, QUESTIONS, solved

SITES = [{"name": "east", "power_mw": 1.0, "usd_per_kwh": 0.05}, {"name": "west", "power_mw": 1.0}]
YEARS = [{"year": 2026, "gpus": 32}, {"year": 2028, "gpus": 64, "price": {"nic": 0.5}, "retrofit_usd_per_link": 10}]
ENDING = [YEARS[0], YEARS[1] | {"workloads": ["second"]}]
"""The network of the first workload stands idle in the end."""
FLEET: dict[str, Any] = ISLANDS | {
    "cluster__gpus": 64,
    "limits": {"power_mw": 1.0},
    "objective": {"minimize": "tco", "include": ["hb", "nic", "switch", "optics", "gpu"]},
    "network__hb_domains": "hgx-h100-8",
}
FLEETS = {
    "fleet everywhere": question(**FLEET, site=SITES, phase=ENDING),
    "one network that grows in doubt": question(
        **ALIKE | {"limits": {"power_mw": 1.0}}, phase=YEARS, robust={"prices": PRICES}
    ),
}
ASKED = QUESTIONS | FLEETS
SHOWN: dict[str, tuple[str, ...]] = {
    "faults": ("faults",),
    "route": ("route", "--algorithm", "greedy"),
    "traffic": ("traffic",),
}
LAUNCHED = ("megatron", "bridge")
EXPORTED = ("graphml", "dot", *LAUNCHED, "ranks", "routes", "bom-csv")
ONE_FILE = ("graphml", "dot", *LAUNCHED, "ranks", "routes")
NO_ANSWER = {("faults", "direct"), ("route", "direct"), ("routes", "direct")}
"""Direct links have no switches to route over: their routes are in the plan, and what a loss does has no model."""


def toml(value: Any) -> str:
    """A value as TOML, tables inline."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {toml(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value)


@cache
def answered(kind: str) -> Plan:
    """The optimum of a kind."""
    plan = solved(kind)[1] if kind in QUESTIONS else solve(Instance.model_validate(FLEETS[kind]))
    assert plan.status == "optimal", plan.explanation
    return plan


class Case:
    """The question and the plan of a kind as files, and commands on them."""

    def __init__(self, coopt: Coopt, kind: str, folder: Path) -> None:
        self.coopt, self.kind, self.plan = coopt, kind, answered(kind)
        self.files = folder / "question.toml", folder / "plan.json"
        lines = (f"{json.dumps(key)} = {toml(value)}" for key, value in ASKED[kind].items())
        self.files[0].write_text("\n".join(lines), "utf-8")
        self.files[1].write_text(plan_json(self.plan), "utf-8")

    def run(self, command: str, *options: object) -> Result:
        """The answer of a command or of an export."""
        words = SHOWN.get(command, ("export", "--format", command))
        return self.coopt(words[0], *self.files, *words[1:], *options)


@pytest.fixture(params=ASKED)
def case(request: pytest.FixtureRequest, coopt: Coopt, tmp_path: Path) -> Case:
    return Case(coopt, str(request.param), tmp_path)


def test_every_part_of_every_plan_is_exported(case: Case) -> None:
    """Commands that have no answer say so; those that show one are asked for all parts below."""
    refused = [command for command in SHOWN if (command, case.kind) in NO_ANSWER]
    for part, command in itertools.product(case.plan.parts, [*refused, *EXPORTED]):
        jobs = [run.name for run in part.workloads] if command in LAUNCHED else []
        done = case.run(command, "--part", part.name, *(["--workload", jobs[0]] if jobs else []))
        if command in LAUNCHED and not jobs:
            assert (done.exit_code, part.name in done.stderr) == (1, True)
        elif (command, case.kind) in NO_ANSWER:
            assert (done.exit_code, "direct links" in done.stderr) == (1, True)
        else:
            assert (done.exit_code, bool(done.stdout.strip())) == (0, True), (command, done.stderr)


def test_a_part_on_which_nothing_trains_is_answered_in_a_sentence_and_has_no_files(coopt, tmp_path):
    case = Case(coopt, "fleet everywhere", tmp_path)
    (idle,) = [part.name for part in case.plan.parts if not part.workloads]
    for command in ("traffic", "faults", "simulate"):
        done = case.coopt(command, *case.files, "--part", idle)
        assert (done.exit_code, len(done.stdout.splitlines())) == (0, 1), done.stderr
    for words in (("traffic", "--matrix", tmp_path / "pairs.csv"), ("chakra", "-o", tmp_path / "traces.zip")):
        done = case.run(*words, "--part", idle)
        assert (done.exit_code, "nothing trains" in done.stderr) == (1, True), done.stderr


def test_without_a_name_all_parts_are_answered_in_turn(case: Case) -> None:
    """Of faults every core that parts share follows."""
    parts, several = [part.name for part in case.plan.parts], len(case.plan.parts) > 1
    for command in (name for name in SHOWN if (name, case.kind) not in NO_ANSWER):
        names = parts + [core.name for core in case.plan.couplings.cores] * (command == "faults")
        lines = case.run(command).stdout.splitlines()
        assert [line.removeprefix("Part ") for line in lines if line.startswith("Part ")] == names * several
        table = json.loads(case.run(command, "--json").stdout)
        if several:
            assert [row["part"] for row in table] == names
            alone = json.loads(case.run(command, "--part", names[-1], "--json").stdout)
            assert _untimed({"part": names[-1], **alone}) == _untimed(table[-1])
        else:
            assert table["schema"] == f"coopt-{command.replace('route', 'routing')}/1"


def test_every_part_of_every_plan_is_simulated(case: Case) -> None:
    """In one document, part by part; a bound may be missed, as by gradients one step late on the links of hops."""
    done = case.coopt("simulate", *case.files, "--json")
    rows = json.loads(done.stdout)["workloads"]
    runs = [(part.name, run) for part in case.plan.parts for run in part.workloads]
    assert [(row["part"], row["name"]) for row in rows] == [(name, run.name) for name, run in runs]
    assert [row["closed_form_s"] for row in rows] == [run.iteration_time_s for _, run in runs]
    assert [row["bound_s"] for row in rows] == pytest.approx([run.bound_s for _, run in runs])
    assert done.exit_code == (0 if all(row["met"] for row in rows) else 5)
    last = rows[-1]["part"]
    alone = json.loads(case.coopt("simulate", *case.files, "--part", last, "--json").stdout)["workloads"]
    assert alone == [row for row in rows if row["part"] == last]


def _untimed(value: Any) -> Any:
    """An answer without the seconds that finding it took."""
    if isinstance(value, dict):
        return {key: _untimed(inner) for key, inner in value.items() if key != "seconds"}
    return [_untimed(inner) for inner in value] if isinstance(value, list) else value


def test_an_export_of_one_file_asks_for_the_part_and_one_that_is_not_there_is_refused(case: Case) -> None:
    for command in ONE_FILE if len(case.plan.parts) > 1 else ():
        done = case.run(command)
        assert (done.exit_code, "needs --part" in done.stderr) == (1, True)
        assert ", ".join(repr(part.name) for part in case.plan.parts) in done.stderr
    for command in (*SHOWN, *EXPORTED):
        done = case.run(command, "--part", "nowhere")
        assert (done.exit_code, "--part nowhere: " in done.stderr) == (1, True)


def test_the_bill_has_a_column_for_the_part(case: Case) -> None:
    rows = list(csv.DictReader(io.StringIO(case.run("bom-csv").stdout)))
    whole = {row["part"] for row in rows} & {""} or {case.plan.parts[0].name}
    for name, cost in ((*whole, case.plan.cost), *((part.name, part.cost) for part in case.plan.parts)):
        assert cost is not None
        for unit, total in (("usd", cost.capex_usd), ("w", cost.power_w)):
            assert math.fsum(float(row[unit]) for row in rows if row["part"] == name) == pytest.approx(total)
    last = case.plan.parts[-1].name
    alone = list(csv.DictReader(io.StringIO(case.run("bom-csv", "--part", last).stdout)))
    assert alone == [row for row in rows if row["part"] == last]


def test_a_workload_names_the_part_that_trains_it(coopt: Coopt, tmp_path: Path) -> None:
    case = Case(coopt, "partition", tmp_path)
    for name in ("first", "second"):
        assert case.run("ranks", "--workload", name).stdout == case.run("ranks", "--part", name).stdout
        assert len(json.loads(case.run("traffic", "--workload", name, "--json").stdout)["workloads"]) == 1
    refused = case.run("traffic", "--matrix", tmp_path / "matrix.csv")
    assert (refused.exit_code, "needs --part 'first'" in refused.stderr) == (1, True)


def test_an_island_alone_in_its_partition_is_answered(coopt: Coopt, tmp_path: Path) -> None:
    """Its workload may go by the name that a network of all workloads has."""
    table = dict(QUESTIONS["partition"])
    table["workload"] = [table["workload"][0] | {"name": "network"}]
    question, plan = tmp_path / "question.toml", tmp_path / "plan.json"
    question.write_text("\n".join(f"{key} = {toml(value)}" for key, value in table.items()), "utf-8")
    assert coopt("solve", question, "-o", plan).exit_code == 0
    assert Plan.model_validate_json(plan.read_text("utf-8")).design is not None
    for words in (("verify",), *SHOWN.values(), ("export", "--format", "ranks")):
        assert coopt(words[0], question, plan, *words[1:]).exit_code == 0


@pytest.fixture
def one_in_sixteen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the questions of an explanation the first, the 17th and so on are asked, and others left for lack of time.

    Campaigns ask them all.
    """
    answers, turns, every = Inquiry.answers, itertools.count(), example_count(1, usual=16)

    def some(study: Inquiry, key: str, ask: Callable[[], Any]) -> Iterable[Any]:
        if next(turns) % every:
            study.untried.append(key)
            return ()
        return answers(study, key, ask)

    monkeypatch.setattr(Inquiry, "answers", some)


@pytest.mark.usefixtures("one_in_sixteen")
def test_every_plan_is_explained_traced_and_worked_out(case: Case) -> None:
    """Some of it is left and named; regrets do not compare."""
    instance, plan = case.files
    explained = case.coopt("explain", instance, plan, "--json")
    assert explained.exit_code in (0, 4), explained.stderr
    answers = json.loads(explained.stdout)
    assert answers["value"] == case.plan.objective.value
    assert answers["bounds"] or answers["rivals"]
    traced = case.coopt("pareto", instance, "--points", 3, "--time-limit", 0.1, "--json")
    assert traced.exit_code in ((1,) if case.kind == "regret" else (0, 4)), traced.stderr
    assert ("needs robust.aim = 'worst-case'" in traced.stderr) == (case.kind == "regret")
    worked_out = case.coopt("evaluate", instance, "--plan", plan, "--json")
    assert worked_out.exit_code == 0, worked_out.stderr
    assert json.loads(worked_out.stdout)["objective"] == pytest.approx(case.plan.objective.value, rel=1e-9)


@pytest.mark.parametrize("kind", FLEETS)
def test_fleets_are_accepted(coopt: Coopt, tmp_path: Path, kind: str) -> None:
    """Plans of other kinds are verified by tests of reports and of the verifier."""
    assert coopt("verify", *Case(coopt, kind, tmp_path).files).exit_code == 0


def test_every_plan_is_billed(case: Case) -> None:
    found = json.loads(case.coopt("bom", case.files[1], "--json").stdout)
    assert case.plan.cost is not None
    assert (found["usd"], found["w"]) == (case.plan.cost.capex_usd, case.plan.cost.power_w)
    assert [network["name"] for network in found["networks"]] == [part.name for part in case.plan.parts]
    for network in found["networks"]:
        assert math.fsum(item["usd"] for item in network["items"]) == pytest.approx(network["usd"])
    assert case.coopt("bom", case.files[1]).exit_code == 0
