"""Schedules as files."""

from __future__ import annotations

import json
from collections.abc import Iterable

from coopt.network.schedules.board import Board
from coopt.network.schedules.schedule_form import Hop, Schedule


def schedule_json(board: Board, schedule: Schedule) -> str:
    """One JSON document, a send a line: step, chunk, and the vertices it passes from sender to receiver.

    Steps count from 0 in each phase; every gather step comes after the last reduce step.
    """
    roots = [board.names[root] for root in schedule.roots]
    head = {
        "format": 1,
        "graph": board.name,
        "algorithm": schedule.algorithm,
        "found_by": schedule.found_by,
        "domains": list(board.names[: board.domains]),
        "chunks": len(roots),
        "roots": roots,
        "steps": schedule.steps,
        "rounds": list(schedule.rounds),
    }
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
    lines += [
        f'"reduce": {_sends(board, schedule.reduction())}',
        f'"gather": {_sends(board, schedule.hops)}',
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _sends(board: Board, hops: Iterable[Hop]) -> str:
    rows = (json.dumps([hop.step, hop.chunk, [board.names[v] for v in hop.path]]) for hop in hops)
    return "[\n" + ",\n".join(rows) + "\n]"
