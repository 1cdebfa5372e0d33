"""A Chrome trace of an iteration, which Perfetto opens: a process for each stage, a lane for each
kind of event.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from coopt.verifier.simulation.passes import PassParts
from coopt.verifier.training.steps import Channel, StagePass

LANES = ("passes", "messages sent", "gradients and parameters")
PASSES, MESSAGES, GRADIENTS = range(len(LANES))
PARTS = {
    "compute": "kernels",
    "tp": "tensor-parallel traffic",
    "cp": "context-parallel traffic not hidden behind compute",
    "ep": "experts' traffic",
}
EXCHANGES = {
    "dp": "exchange between replicas",
    "edp": "exchange between copies of experts",
    "wan": "gradients of other sites",
    "embedding": "gradients of the tied embedding",
    "optimizer": "optimizer",
}
Event = dict[str, Any]


class TraceRecord:
    """The events of one workload; times are whole nanoseconds in microseconds, with what
    stragglers and software add to each.
    """

    def __init__(
        self,
        name: str,
        stages: int,
        chunks: int,
        parts: Callable[[int, StagePass], PassParts],
        factor: float,
    ) -> None:
        self.name, self.stages = name, stages
        self._several_chunks, self._parts, self._scale = chunks > 1, parts, factor * 1e9
        self.events: list[Event] = []

    def passed(self, stage: int, stage_pass: StagePass, start_s: float) -> None:
        """A pass with the seconds of its parts, one after the other."""
        parts = self._parts(stage, stage_pass)
        way = {"inputs": "gradients of inputs", "weights": "gradients of weights"}.get(
            stage_pass.gives, "backward"
        )
        name = (
            f"{way if stage_pass.is_backward else 'forward'}, micro-batch"
            f" {stage_pass.micro_batch + 1}"
        )
        if self._several_chunks:
            name += f", chunk {stage_pass.chunk + 1}"
        end_s = start_s + parts.whole_s
        self._add(stage, PASSES, name, start_s, end_s)
        for part, seconds in parts._asdict().items():
            if seconds:
                # a sum in another order does not end after the pass
                self._add(stage, PASSES, PARTS[part], start_s, min(start_s + seconds, end_s))
                start_s += seconds

    def sent(self, channel: Channel, start_s: float, end_s: float) -> None:
        """A message, on the lane of its sender."""
        content = "gradients" if channel.is_backward else "activations"
        self._add(
            channel.sender, MESSAGES, f"{content} to stage {channel.receiver + 1}", start_s, end_s
        )

    def exchanged(self, stage: int, name: str, start_s: float, end_s: float) -> None:
        """An exchange of gradients, or the optimizer."""
        if end_s > start_s:
            self._add(stage, GRADIENTS, EXCHANGES[name], start_s, end_s)

    def _add(self, stage: int, lane: int, name: str, start_s: float, end_s: float) -> None:
        start_ns, end_ns = (round(seconds * self._scale) for seconds in (start_s, end_s))
        self.events.append(
            {
                "name": name,
                "ph": "X",
                "ts": _microseconds(start_ns),
                "dur": _microseconds(end_ns - start_ns),
                "pid": stage,
                "tid": lane,
            }
        )


def _microseconds(ns: int) -> float:
    """Whole nanoseconds in the unit of a trace; no less where a reader cuts what is below one."""
    us = ns / 1000
    return us if int(us * 1000) == ns else math.nextafter(us, math.inf)


def chrome_trace(records: Iterable[TraceRecord]) -> str:
    """The trace of workloads, each after the other's processes, as a JSON array of events."""
    return json.dumps(list(_events(list(records))))


def _events(records: list[TraceRecord]) -> Iterator[Event]:
    first_process = 0
    for record in records:
        for stage in range(record.stages):
            name = (
                f"{record.name}, stage {stage + 1} of {record.stages}"
                if record.stages > 1
                else record.name
            )
            yield {
                "name": "process_name",
                "ph": "M",
                "pid": first_process + stage,
                "args": {"name": name},
            }
            for lane, words in enumerate(LANES):
                args = {"name": words}
                yield {
                    "name": "thread_name",
                    "ph": "M",
                    "pid": first_process + stage,
                    "tid": lane,
                    "args": args,
                }
        for event in record.events:
            yield event | {"pid": first_process + event["pid"]}
        first_process += record.stages
