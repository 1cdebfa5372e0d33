"""What a worker process does: tasks that come through a pipe, and what becomes of them on the way
back.

A task sends events, each a name and a document in JSON, and "end" at last. An interrupt (SIGINT)
ends the task and not the worker, so that what the worker keeps of one search serves the next.
"""

from __future__ import annotations

import json
import logging
import signal
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from multiprocessing.connection import Connection
from types import FrameType
from typing import Any

from coopt._interpreter import collect_rarely
from coopt.columns.islands.options import ListedIslands
from coopt.explain.answer import explain
from coopt.instance.schema import Instance
from coopt.instance.texts import InstanceError, names_in, toml_of
from coopt.plan.schema import OnProgress, Plan
from coopt.plan.store import decided
from coopt.report.fronts.files import front_contents
from coopt.report.page.contents import Origin, PageCase, moment, page_html
from coopt.report.words import progress_line, throttled
from coopt.serve.contents import (
    explanation_contents,
    plan_contents,
    verdict_contents,
)
from coopt.serve.questions import (
    LAST_ANSWER,
    NAME,
    OwnCatalog,
    edited,
    json_value,
    picks_of,
    place_of,
    question_of,
)
from coopt.solving.answer import solve
from coopt.solving.assumptions import assess
from coopt.solving.evaluate import mappings
from coopt.solving.fronts.sweep import has_front, pareto
from coopt.verifier.audit import verify

Send = Callable[[str, Any], None]
Document = Mapping[str, Any]
Task = Callable[[OwnCatalog, Document, Send], None]

TELL_S = 0.1
"""Least seconds between two events of progress."""

LISTED = ListedIslands()
"""What searches of this worker have listed; a dragged bound lists the islands of its workload
alone.
"""

READY = ("end", "")
"""What a worker says when it has begun, and after each task."""

POINTS, MAPPINGS = 16, 8
"""Most points of a front on the page, and mappings of a workload."""


def read_text(catalog: OwnCatalog, document: Document, send: Send) -> None:
    """Edit a text, and say what it holds and what is wrong with it."""
    text, table = document["text"], None
    complaints: tuple[str, ...] = ()
    try:
        if document["changes"]:
            text = edited(text, [(tuple(path), value) for path, value in document["changes"]])
        table = json_value(toml_of(text, NAME))
        question_of(text, catalog)
    except InstanceError as error:
        complaints = error.complaints
    except RecursionError:
        text, table, complaints = (
            document["text"],
            None,
            (f"{NAME}: nested too deeply, needs flat tables",),
        )
    send("question", {"text": text, "table": table, "complaints": _placed(complaints, table)})


def find_plan(catalog: OwnCatalog, document: Document, send: Send) -> None:
    """Solve a question, and doubt the answer."""
    question = _question(catalog, document)
    found = solve(question, on_progress=_teller(send), listed=LISTED)
    plan = assess(question, found)
    contents = plan_contents(*_of_choice(question, plan))
    plan_document = {"plan": plan.model_dump(mode="json", by_alias=True)}
    send(
        "plan",
        contents | plan_document | {"picks": picks_of(document["text"], question, plan.chosen)},
    )
    if plan.status != "unknown":
        send("verdict", verdict_contents(verify(question, plan)))


def trace_front(catalog: OwnCatalog, document: Document, send: Send) -> None:
    """Find the least cost for every time."""
    question = _question(catalog, document)
    send("front", front_contents(question, pareto(question, POINTS, on_progress=_teller(send))))


def find_reasons(catalog: OwnCatalog, document: Document, send: Send) -> None:
    """Find what binds the answer, or what has to give; of one network, which other mappings it
    would run.
    """
    question = _question(catalog, document)
    plan = None if document["plan"] is None else _sent_plan(document)
    explanation = explain(question, plan, time_limit_s=question.solver.time_limit_s)
    question, plan = (question, plan) if plan is None else _of_choice(question, plan)
    alone = plan is not None and plan.design is not None and not plan.couplings
    ranking = mappings(question, plan, most=MAPPINGS) if alone else None
    send(
        "explanation",
        explanation_contents(explanation, ranking, is_regret=question.minimizes_regret),
    )


def write_report(catalog: OwnCatalog, document: Document, send: Send) -> None:
    """Write the page of a plan for a meeting."""
    question, plan = _question(catalog, document), _sent_plan(document)
    file = f"{question.name}.toml"
    origin = Origin(command="coopt serve", instance_file=file, plan_file="none", written=moment())
    verdict = verify(question, plan)
    question, plan = _of_choice(question, plan)
    case = PageCase(instance=question, plan=plan, verdict=verdict, origin=origin)
    if case.stands_alone or (case.answered and plan.cost is None):
        case = replace(case, explanation=explain(question, plan))
    if case.stands_alone and has_front(question):
        case = replace(case, front=pareto(question, POINTS))
    send("report", page_html(case))


TASKS: dict[str, Task] = {
    "question": read_text,
    "plan": find_plan,
    "front": trace_front,
    "explanation": find_reasons,
    "report": write_report,
}


def _placed(complaints: tuple[str, ...], table: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """Each complaint with the keys of the field that it belongs to, in the table that a text
    holds.
    """
    names = names_in(table or {})
    return [{"sentence": sentence, "path": place_of(sentence, names)} for sentence in complaints]


def _table_of(document: Document) -> Mapping[str, Any] | None:
    """The table of the text that was sent; None where it holds none."""
    try:
        return toml_of(document["text"], NAME)
    except InstanceError:
        return None


def _sent_plan(document: Document) -> Plan:
    try:
        return Plan.model_validate(document["plan"])
    except ValueError:
        raise InstanceError(
            "question: the document sent is no plan, needs the plan shown on this page"
        ) from None


def _of_choice(question: Instance, plan: Plan) -> tuple[Instance, Plan]:
    """The question that a plan chose, with its plan; as they are where nothing is built."""
    return decided(question, plan) if plan.cost is not None else (question, plan)


def _question(catalog: OwnCatalog, document: Document) -> Instance:
    """The question of a text, with one thread and no more time for its search than the server
    grants.
    """
    question = question_of(document["text"], catalog)
    limit_s = min(question.solver.time_limit_s, document["limit_s"])
    solver = question.solver.model_copy(update={"time_limit_s": limit_s, "threads": 1})
    return question.model_copy(update={"solver": solver})


def _teller(send: Send) -> OnProgress:
    """A listener that sends every new stage, and news within a stage now and then."""
    return throttled(
        lambda step: send(
            "progress", asdict(step) | {"gap": step.gap, "line": progress_line(step)}
        ),
        TELL_S,
    )


class Interrupts:
    """An interrupt ends the task that runs, after what it sends; between tasks it does nothing."""

    def __init__(self) -> None:
        self.running = self.sending = self.cancelled = False
        signal.signal(signal.SIGINT, self._hear)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        if self.running:
            self.cancelled = True
            if not self.sending:
                raise KeyboardInterrupt

    def send(self, pipe: Connection, name: str, document: Any) -> None:
        """Send an event whole; a task that was cancelled ends here at the latest."""
        text = json.dumps(document, separators=(",", ":"))
        self.sending = True
        if not self.cancelled:
            pipe.send((name, text))
        self.sending = False
        if self.cancelled:
            raise KeyboardInterrupt


def serve_tasks(pipe: Connection, catalog: OwnCatalog) -> None:
    """Do tasks one after the other, until the other end of the pipe closes."""
    interrupts = Interrupts()
    collect_rarely()
    pipe.send(READY)
    while True:
        try:
            task, document = pipe.recv()
            interrupts.cancelled, interrupts.running = False, True
            _do(
                TASKS[task],
                catalog,
                document,
                lambda name, answer: interrupts.send(pipe, name, answer),
            )
            interrupts.running = False
        except KeyboardInterrupt:
            interrupts.running = False
        except (EOFError, OSError):
            return
        pipe.send(READY)


def _do(task: Task, catalog: OwnCatalog, document: Document, send: Send) -> None:
    """Do a task; what it refuses or fails at is an event like others."""
    try:
        task(catalog, document, send)
    except InstanceError as error:
        send("refused", {"complaints": _placed(error.complaints, _table_of(document))})
    except Exception as error:
        logging.getLogger(__name__).exception("the task %s failed", task.__name__)
        send("failed", {"sentence": f"The task failed ({type(error).__name__}); {LAST_ANSWER}."})
