"""Whatever happens to a worker, every case is answered or recorded as failed, and the others go on."""

import gc
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coopt._interpreter import OBJECTS
from coopt._version import __version__
from coopt.suite.driver import DIED, work_through
from coopt.suite.folder import Outcome
from coopt.suite.form import Case, cases_of, read_study
from coopt.suite.pools import LocalPool, PoolLostError, available_cores
from coopt.suite.work import outcome_json
from tests.suite.conftest import Written


def case(number: int) -> Case:
    return Case(case_id=str(number), grid="g", instance="i", action="solve", axes={}, overrides={}, question="")


class Fragile:
    """A pool that breaks with everything in it when it meets certain cases: some always, some the first time."""

    def __init__(self, slots: int, deadly: set[str], unlucky: set[str]) -> None:
        self.slots, self.deadly, self.unlucky = slots, deadly, set(unlucky)
        self.inside: list[tuple[Case, Future[str]]] = []
        self.broken = False
        self.handed: Counter[str] = Counter()
        self.most = 0

    def submit(self, case: Case) -> Future[str]:
        if self.broken:
            raise BrokenExecutor
        self.handed[case.case_id] += 1
        future: Future[str] = Future()
        self.inside.append((case, future))
        self.most = max(self.most, len(self.inside))
        if (
            len(self.inside) == self.slots
            or case.case_id in self.deadly | self.unlucky
            or self.handed[case.case_id] > 1
        ):
            self._settle()
        return future

    def _settle(self) -> None:
        dying = [case.case_id for case, _ in self.inside if case.case_id in self.deadly | self.unlucky]
        self.unlucky -= set(dying)
        self.broken = bool(dying)
        for case, future in self.inside:
            if self.broken:
                future.set_exception(BrokenExecutor())
            else:
                future.set_result(answer(case))
        self.inside.clear()

    def renew(self) -> None:
        assert self.broken
        self.broken = False

    def close(self) -> None: ...

    def abandon(self) -> None: ...


def answer(case: Case) -> str:
    return Outcome(case_id=case.case_id, action="solve", status="optimal").model_dump_json(by_alias=True)


@given(st.integers(1, 12), st.data())
def test_only_the_deadly_case_fails_and_each_is_heard_of_once(count: int, data: st.DataObject) -> None:
    numbers = [str(number) for number in range(count)]
    deadly = data.draw(st.sets(st.sampled_from(numbers)))
    unlucky = data.draw(st.sets(st.sampled_from(numbers))) - deadly
    pool = Fragile(1, deadly, unlucky)
    heard: list[Outcome] = []
    work_through(map(case, range(count)), pool, heard.append)
    assert sorted(outcome.case_id for outcome in heard) == sorted(numbers)
    assert {outcome.case_id for outcome in heard if outcome.status == "failed"} == deadly
    assert all(pool.handed[name] == (2 if name in deadly | unlucky else 1) for name in numbers)


def test_those_that_were_in_a_pool_that_broke_are_asked_again_alone() -> None:
    pool = Fragile(3, {"2"}, set())
    heard: list[Outcome] = []
    work_through(map(case, range(9)), pool, heard.append)
    (failed,) = [outcome for outcome in heard if outcome.status == "failed"]
    assert failed.case_id == "2"
    assert failed.why == (DIED,)
    assert {outcome.case_id for outcome in heard} == {str(number) for number in range(9)}
    assert pool.handed == Counter({str(n): 2 if n < 3 else 1 for n in range(9)})


def test_a_pool_out_of_reach_ends_the_run_and_an_error_of_the_executor_is_recorded() -> None:
    """A pool has no more in it than its slots."""

    class Gone(Fragile):
        def submit(self, case: Case) -> Future[str]:
            future: Future[str] = Future()
            future.cancel()
            future.set_running_or_notify_cancel()
            return future

    class Odd(Fragile):
        def submit(self, case: Case) -> Future[str]:
            future: Future[str] = Future()
            future.set_exception(ModuleNotFoundError("coopt"))
            return future

    heard: list[Outcome] = []
    with pytest.raises(PoolLostError):
        work_through([case(1)], Gone(2, set(), set()), heard.append)
    work_through([case(1)], Odd(1, set(), set()), heard.append)
    assert [(one.status, one.why) for one in heard] == [("failed", ("ModuleNotFoundError: coopt",))]
    pool = Fragile(4, set(), set())
    work_through(map(case, range(16)), pool, heard.append)
    assert pool.most == 4


class Threads:
    """Any executor will do: here one of threads."""

    slots = 4

    def __init__(self, executor: Executor) -> None:
        self.executor = executor

    def submit(self, case: Case) -> Future[str]:
        return self.executor.submit(outcome_json, __version__, case.case_id, case.action, case.question)

    def renew(self) -> None: ...

    def close(self) -> None: ...

    def abandon(self) -> None: ...


def test_threads_give_the_answers_of_processes_of_which_one_is_killed(written: Written) -> None:
    file = written('[grid.vary]\n"workload.max_iteration_time_s" = [0.5, 0.7, 0.8, 0.9, 1.0, 1.1]\n')
    cases = cases_of(read_study(file).suite, file.parent)
    local, heard = LocalPool(2), list[Outcome]()
    first = local._first.result()

    def hear(outcome: Outcome) -> None:
        if not heard:
            os.kill(first, signal.SIGKILL)
        heard.append(outcome)

    work_through(cases, local, hear)
    local.close()
    assert sorted(o.case_id for o in heard) == sorted(c.case_id for c in cases)
    assert {o.status for o in heard} == {"optimal", "infeasible"}
    by_threads: list[Outcome] = []
    with ThreadPoolExecutor(2) as executor:
        work_through(cases, Threads(executor), by_threads.append)
    answers = [{o.case_id: (o.status, o.plan and o.plan.objective) for o in some} for some in (heard, by_threads)]
    assert answers[0] == answers[1]


def test_workers_seldom_look_for_cycles_and_end_with_their_starter_or_when_abandoned() -> None:
    pool = LocalPool(1)
    worker = pool._first.result()
    assert pool._executor.submit(gc.get_threshold).result() == (OBJECTS, 20, 20)
    pool.abandon()
    deadline = time.monotonic() + 30
    while Path(f"/proc/{worker}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{worker}").exists()


def test_a_worker_sets_its_threads_before_numpy_is_imported() -> None:
    """There are no more workers than cores that this process may use."""
    loaded = "import sys, coopt.suite.pools; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
    cores = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(cores)})
        assert available_cores() == 1
    finally:
        os.sched_setaffinity(0, cores)
