"""A run answers each question once, keeps what is finished, and trusts nothing that is not whole."""

import json
import os
import re
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

import coopt
from coopt.instance.texts import InstanceError
from coopt.plan.schema import Progress
from coopt.suite import driver
from coopt.suite.folder import Outcome, run_folder
from coopt.suite.form import cases_of, read_study
from tests.suite.conftest import HEAD, INSTANCES, Here, Ran, Written
from tests.suite.processes import rows_without_times


def test_every_case_has_its_row_and_its_file_which_say_what_the_plan_says(written, ran, here, tmp_path) -> None:
    """A finished run is not run again, and a grown suite asks only what is new."""
    done = ran(written())
    assert (done.cases, done.worked, done.stopped, here.ended) == (6, 6, None, "closed")
    assert done.statuses == {"infeasible": 4, "optimal": 2}
    found = rows_without_times(tmp_path / "out")
    assert [(row["workload_max_iteration_time_s"], row["cluster_gpus"]) for row in found] == [
        (bound, gpus) for bound in (0.5, 0.68, 1.0) for gpus in (32, 64)
    ]
    assert {f"{row['case_id']}.json" for row in found} == set(os.listdir(tmp_path / "out" / "cases"))
    row = found[-1]
    outcome = Outcome.model_validate_json((tmp_path / "out" / "cases" / f"{row['case_id']}.json").read_bytes())
    plan, overrides = outcome.plan, json.loads(str(row["overrides"]))
    assert coopt.verify(coopt.load(INSTANCES / "tiny-64.toml", overrides), plan).accepted
    assert (row["capex_usd"], row["value"]) == (plan.cost.capex_usd, plan.objective.value)
    assert (row["hb_name"], row["switches"]) == (plan.design.hb_domain.name, plan.design.fabric.switch_count)
    assert row["iteration_time_s"] == plan.workloads[0].iteration_time_s
    (workload,) = row["workloads"]
    assert workload["mfu"] == row["mfu"] == plan.workloads[0].mfu
    again = ran(written(), resume=True)
    assert (again.kept, again.worked, len(here.seen)) == (6, 0, 6)
    assert rows_without_times(tmp_path / "out") == found
    more = '[grid.vary]\n"workload.max_iteration_time_s" = [0.5, 0.68, 1.0, 2.0]\n"cluster.gpus" = [32, 64]\n'
    grown = ran(written(more), resume=True)
    assert (grown.kept, grown.worked) == (6, 2)


def test_a_question_that_two_cases_ask_is_answered_once(written: Written, ran: Ran, here: Here) -> None:
    done = ran(written('[grid.vary]\n"solver.threads" = [1, 2, 3]\n'))
    assert (done.cases, done.asked, len(here.seen)) == (3, 1, 1)
    assert done.statuses == {"optimal": 3}


HARM: dict[str, Callable[[str, str], str]] = {
    "cut": lambda text, other: text[: len(text) // 2],
    "empty": lambda text, other: "",
    "of another case": lambda text, other: other,
    "of another form": lambda text, other: text.replace("coopt-case/1", "coopt-case/9"),
    "without content": lambda text, other: "{}",
    "with a wrong bill": lambda text, other: re.sub(r'"capex_usd":\s*([\d.]+)', '"capex_usd": 1.0', text),
    "with another status": lambda text, other: re.sub(r'"status":\s*"optimal"', '"status": "feasible"', text, count=1),
    "without its plan": lambda text, other: re.sub(
        r'"plan":\s*\{.*\},\s*"fastest"', '"plan": null, "fastest"', text, flags=re.DOTALL
    ),
}


@pytest.mark.parametrize("harm", HARM)
def test_a_file_that_cannot_be_trusted_is_written_anew(written, ran, finished, harm) -> None:
    before = rows_without_times(finished)
    first, other, *_ = (finished / "cases" / f"{row['case_id']}.json" for row in before if row["status"] == "optimal")
    first.write_text(HARM[harm](first.read_text("utf-8"), other.read_text("utf-8")), "utf-8")
    again = ran(written(), resume=True)
    assert (again.kept, again.worked, again.damaged) == (5, 1, 1)
    assert rows_without_times(finished) == before


@pytest.mark.parametrize("harm", [None, "capex_usd"])
def test_the_fastest_designs_are_kept_where_they_evaluate_to_what_the_file_says(written, ran, tmp_path, harm) -> None:
    fastest = written('action = "fastest"\n')
    ran(fastest)
    (file,) = (tmp_path / "out" / "cases").glob("*.json")
    if harm is not None:
        file.write_text(re.sub(rf'"{harm}":\s*([\d.]+)', f'"{harm}": 1.0', file.read_text("utf-8")), "utf-8")
    again = ran(fastest, resume=True)
    assert (again.kept, again.damaged) == ((1, 0) if harm is None else (0, 1))


def test_what_failed_is_tried_again_and_what_was_refused_is_not(written, ran, finished) -> None:
    file = sorted((finished / "cases").glob("*.json"))[0]
    failed = Outcome.model_validate_json(file.read_bytes()).model_copy(update={"status": "failed", "plan": None})
    file.write_text(failed.model_dump_json(by_alias=True), "utf-8")
    again = ran(written(), resume=True)
    assert (again.kept, again.worked, again.damaged) == (5, 1, 0)


@pytest.mark.parametrize(
    ("place", "value", "why"),
    [("solve", lambda instance: 1 / 0, "ZeroDivisionError"), ("__version__", "0.0.0", "coopt 0.0.0")],
    ids=["error", "another release"],
)
def test_an_error_inside_a_case_is_its_row(written, ran, tmp_path, monkeypatch, place, value, why) -> None:
    monkeypatch.setattr(f"coopt.suite.work.{place}", value)
    assert ran(written()).statuses == {"failed": 6}
    assert why in str(rows_without_times(tmp_path / "out")[0]["why"])


def test_a_refused_combination_is_a_row_with_the_sentence(written: Written, ran: Ran, tmp_path: Path) -> None:
    done = ran(written('[grid.vary]\n"network.nics" = ["cx7-400g", "cx6-200g"]\n'))
    assert done.statuses == {"optimal": 1, "refused": 1}
    assert "200 Gbit/s" in str(rows_without_times(tmp_path / "out")[1]["why"])


def test_an_interrupt_keeps_all_that_is_finished(written, ran, here, tmp_path, monkeypatch) -> None:
    def interrupted(cases: object, pool: Here, on_outcome: Callable[[Outcome], None]) -> None:
        for case in list(cases)[:2]:  # type: ignore[call-overload]
            on_outcome(Outcome.model_validate_json(pool.submit(case).result()))
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(driver, "work_through", interrupted)
        done = ran(written())
    assert (done.stopped, done.worked, here.ended) == ("interrupted", 2, "abandoned")
    assert len(rows_without_times(tmp_path / "out")) == 2
    assert ran(written(), resume=True).kept == 2


@pytest.mark.usefixtures("finished")
def test_a_folder_with_something_in_it_is_refused(written: Written, ran: Ran, tmp_path: Path) -> None:
    with pytest.raises(InstanceError, match="--resume"):
        ran(written())
    with pytest.raises(InstanceError, match=r"'small'.*'other'"):
        ran(written(head=HEAD.replace('"small"', '"other"')), resume=True)
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.png").write_bytes(b"cat")
    for resume in (False, True):
        with pytest.raises(InstanceError):
            ran(written(), "photos", resume=resume)
    assert os.listdir(tmp_path / "photos") == ["cat.png"]


def test_a_folder_of_a_run_without_an_answer_is_as_good_as_new(written: Written, ran: Ran, tmp_path: Path) -> None:
    with run_folder(tmp_path / "out", read_study(written()), resume=False):
        pass
    (tmp_path / "out" / "cases" / ".half.tmp").write_text("{", "utf-8")
    assert ran(written()).worked == 6
    assert not list((tmp_path / "out" / "cases").glob(".*"))


def test_two_runs_in_one_folder_are_one_too_many(written: Written, ran: Ran, tmp_path: Path) -> None:
    file = written()
    with (
        run_folder(tmp_path / "out", read_study(file), resume=False),
        pytest.raises(InstanceError, match="another run"),
    ):
        ran(file, resume=True)
    assert ran(file, resume=True).worked == 6


def test_a_place_that_cannot_be_written_is_refused(written: Written, ran: Ran, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    with pytest.raises(InstanceError, match="is a file"):
        ran(written(), "file")
    with pytest.raises(InstanceError, match="cannot be written"):
        ran(written(), "file/below")
    (tmp_path / "kept" / "journal.jsonl").mkdir(parents=True)
    (tmp_path / "kept" / "suite.json").write_text(read_study(written()).model_dump_json(by_alias=True), "utf-8")
    with pytest.raises(InstanceError, match=r"journal\.jsonl: cannot be written"):
        ran(written(), "kept", resume=True)


def test_an_interrupt_that_is_lost_in_a_callback_still_ends_the_run(written, here, tmp_path) -> None:
    def press(step: Progress) -> None:
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)

    file = written()
    study = read_study(file)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # also where a shell ignores it
    with run_folder(tmp_path / "out", study, resume=False) as place:
        done = driver.Driver(study.suite.name, cases_of(study.suite, file.parent), place, press).run(lambda: here)
    signal.signal(signal.SIGINT, before)
    assert (done.stopped, done.worked, here.ended) == ("interrupted", 1, "abandoned")
