"""What happens when, as a Chrome trace that Perfetto opens: a process for each stage, a lane for each thing it does."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from coopt.verifier.simulation.passes import PassParts
from coopt.verifier.simulation.schedules import Channel, StagePass

LANES = ("passes", "messages sent", "gradients and parameters")
PASSES, MESSAGES, GRADIENTS = range(len(LANES))
PARTS = {
    "compute": "kernels",
    "tp": "tensor-parallel traffic",
    "cp": "keys and values, what is not hidden",
    "ep": "experts' traffic",
}
EXCHANGES = {
    "dp": "gradients of replicas",
    "edp": "gradients of copies of experts",
    "wan": "gradients of other sites",
    "embedding": "gradients of the tied embedding",
    "optimizer": "optimizer",
}
Event = dict[str, Any]


class TraceRecord:
    """The events of one workload; times are in microseconds, with what stragglers and software add to each."""

    def __init__(
        self, name: str, stages: int, chunks: int, parts: Callable[[int, StagePass], PassParts], factor: float
    ) -> None:
        self.name, self.stages = name, stages
        self._several_chunks, self._parts, self._scale = chunks > 1, parts, factor * 1e6
        self.events: list[Event] = []

    def passed(self, stage: int, one: StagePass, start_s: float) -> None:
        """A pass with the seconds of its parts, one after the other."""
        parts = self._parts(stage, one)
        name = f"{'backward' if one.is_backward else 'forward'}, micro-batch {one.micro_batch + 1}"
        if self._several_chunks:
            name += f", chunk {one.chunk + 1}"
        self._add(stage, PASSES, name, start_s, start_s + parts.whole_s)
        for part, seconds in parts._asdict().items():
            if seconds:
                self._add(stage, PASSES, PARTS[part], start_s, start_s + seconds)
                start_s += seconds

    def sent(self, channel: Channel, start_s: float, end_s: float) -> None:
        """A message, on the lane of its sender."""
        content = "gradients" if channel.is_backward else "activations"
        self._add(channel.sender, MESSAGES, f"{content} to stage {channel.receiver + 1}", start_s, end_s)

    def exchanged(self, stage: int, name: str, start_s: float, end_s: float) -> None:
        """An exchange of gradients, or the optimizer."""
        if end_s > start_s:
            self._add(stage, GRADIENTS, EXCHANGES[name], start_s, end_s)

    def _add(self, stage: int, lane: int, name: str, start_s: float, end_s: float) -> None:
        self.events.append(
            {
                "name": name,
                "ph": "X",
                "ts": start_s * self._scale,
                "dur": (end_s - start_s) * self._scale,
                "pid": stage,
                "tid": lane,
            }
        )


def chrome_trace(records: Iterable[TraceRecord]) -> str:
    """The trace of workloads, each after the other's processes, as a JSON array of events."""
    return json.dumps(list(_events(list(records))))


def _events(records: list[TraceRecord]) -> Iterator[Event]:
    first = 0
    for record in records:
        for stage in range(record.stages):
            name = f"{record.name}, stage {stage + 1} of {record.stages}" if record.stages > 1 else record.name
            yield {"name": "process_name", "ph": "M", "pid": first + stage, "args": {"name": name}}
            for lane, words in enumerate(LANES):
                yield {"name": "thread_name", "ph": "M", "pid": first + stage, "tid": lane, "args": {"name": words}}
        for event in record.events:
            yield event | {"pid": first + event["pid"]}
        first += record.stages
