"""One iteration, event by event: passes and hops of all stages, gradients, tied embedding,
optimizer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from coopt.instance.hardware import Gpu
from coopt.instance.workload import Workload
from coopt.verifier.simulation.events import EventClock, FairRates
from coopt.verifier.simulation.fabric_flows import (
    TIED,
    along_trees,
    backward,
    expert_copies,
    forward,
    halving,
    replicas,
)
from coopt.verifier.simulation.passes import (
    PassParts,
    PassSegment,
    PassTimes,
    gradient_segments,
)
from coopt.verifier.simulation.pipeline import Observer, PipelineRun, StageHop
from coopt.verifier.training.caching import kept
from coopt.verifier.training.communication import OVERLAP_COST, OtherWays, Speeds
from coopt.verifier.training.gathers import halving_shares
from coopt.verifier.training.iteration import embedding_s
from coopt.verifier.training.placing import Placement
from coopt.verifier.training.steps import Channel, PipelineShape, StagePass
from coopt.verifier.training.work import Work

SEEDS = 8
"""Draws of which message leaves first, where several can leave at the same moment."""


class Carrier(NamedTuple):
    """What carries traffic: inside the domain at so many byte/s, across at `pace_byte_s` of a GPU
    at pace 1.

    `rates` is None where nothing crosses domains; `nic_byte_s` is the rate of the NICs of a GPU.
    """

    inside_byte_s: float
    pace_byte_s: float
    rates: FairRates | None
    nic_byte_s: float = 0.0

    def has(self, phase: str) -> bool:
        """Whether anything crosses domains in a phase."""
        return self.rates is not None and phase in self.rates.number

    def s_byte(self, *phases: str) -> float:
        """Seconds a byte takes while some phases are under way and nothing else is; 0 where nothing
        crosses.
        """
        crossing = [phase for phase in phases if self.has(phase)]
        if self.rates is None or not crossing:
            return 0.0
        return 1 / (self.rates.pace(*crossing) * self.pace_byte_s)

    def other_ways(self, phases: Sequence[str], members: int) -> OtherWays:
        """Seconds a byte of so many domains takes by halving and doubling, and by trees; infinite
        where closed.
        """
        if not self.has(halving(phases[0], 0)):
            return OtherWays(math.inf, math.inf)
        rounds = enumerate(halving_shares(members))
        halved = sum(
            share * self.s_byte(*(halving(phase, number) for phase in phases))
            for number, share in rounds
        )
        trees = [along_trees(phase) for phase in phases]
        return OtherWays(halved, self.s_byte(*trees) if self.has(trees[0]) else math.inf)

    def speeds(self, place: Placement, stages: int) -> Speeds:
        """How fast each kind of traffic is while all stages send it, and nothing else is under way;
        hops are timed one by one.
        """
        phases = {kind: [kind] for kind in ("tp", "cp", "ep", TIED)}
        phases |= {"dp": list(map(replicas, range(stages)))}
        phases |= {"edp": list(map(expert_copies, range(stages)))}
        replica_domains = place.dp_across * place.cp_across
        members = {"tp": place.tp_across, "dp": replica_domains, "edp": place.copies_across}
        s_byte = {f"{kind}_s_byte": self.s_byte(*of_kind) for kind, of_kind in phases.items()}
        return Speeds(
            self.inside_byte_s,
            pp_s_byte=0.0,
            **s_byte,
            ways=lambda kind: self.other_ways(phases[kind], members[kind]),
        )


class IterationRecord(Observer, Protocol):
    """Somebody who writes down what happens after the passes as well."""

    def exchanged(self, stage: int, name: str, start_s: float, end_s: float) -> None:
        """A stage has exchanged something, or updated its parameters."""


class SimulatedParts(NamedTuple):
    """Seconds of an iteration by what they are spent on; what runs behind something earlier is not
    counted.
    """

    pipeline: float
    gradients: float
    embedding: float
    optimizer: float
    stragglers: float

    @property
    def whole_s(self) -> float:
        """The iteration."""
        return sum(self)


class Departure(NamedTuple):
    """A pass of a stage, counted from 0, and seconds after it began."""

    number: int
    after_s: float


class IterationSimulation:
    """A workload on what carries its traffic."""

    def __init__(
        self, workload: Workload, gpu: Gpu, work: Work, place: Placement, carrier: Carrier
    ) -> None:
        self.work, self.carrier, split = work, carrier, work.split
        self.shape = PipelineShape(split.pp, split.interleave, work.micro_batches, work.schedule)
        speed = carrier.speeds(place, split.pp)
        self.embedding_s = embedding_s(work, place, speed)
        """in which first and last stage add up gradients of the tied embedding, when everybody else
        is done
        """
        self._times = PassTimes(workload, gpu, work, place, speed)
        self.hops = {
            Channel(stage, (stage + step) % split.pp, is_backward): self._hop(stage, step)
            for stage in range(split.pp if split.pp > 1 else 0)
            for step in (1, -1)
            # pipelines in both directions send activations and gradients either way
            for is_backward in ((False, True) if work.schedule == "dualpipe" else (step < 0,))
        }
        self.gradients = [
            list(gradient_segments(work, place, speed, {"dp": dp, "edp": edp}))
            for dp, edp in ((replicas(stage), expert_copies(stage)) for stage in range(split.pp))
        ]

    @kept(lambda self, stage, stage_pass: (stage, stage_pass._replace(micro_batch=0)))
    def pass_parts(self, stage: int, stage_pass: StagePass) -> PassParts:
        """What a pass takes, by cause."""
        return self._times.parts(stage, stage_pass)

    def pass_s(self, stage: int, stage_pass: StagePass) -> float:
        """From the first kernel of a pass to the last."""
        return self.pass_parts(stage, stage_pass).whole_s

    def _hop(self, stage: int, step: int) -> StageHop:
        """A message to the next stage (step 1) or the one before; the network carries those that
        leave their domain.
        """
        links, traffic = self.work.links, self.work.traffic
        cost, sent_bytes = traffic.hop_cost, traffic.sent_bytes
        phase = (forward if step > 0 else backward)(stage)
        fixed_s = links.send_s + self._times.hop_gather_s
        if not self.carrier.has(phase):
            fixed_s += sent_bytes / (links.hb * self.carrier.inside_byte_s)
            return StageHop(cost * fixed_s, None, 0.0)
        volume = cost * sent_bytes / (links.send * self.carrier.pace_byte_s)
        return StageHop(cost * fixed_s, phase, volume)

    def departure(self, stage: int) -> Departure:
        """When gradients of a stage set out to hide behind as much compute as the model gives them.

        While traffic of layers crosses domains, NICs are busy: gradients set out as much later.
        Inside a domain each waits for the other on its links: of the time that gradients need
        there, they give way in the share of it that traffic has.
        """
        inside_s = sum(segment.inside_s for segment in self.gradients[stage])
        busy_share = min(1.0, inside_s / self.work.window_s) if self.work.window_s else 1.0
        shares = {
            kind: 1.0 if self.carrier.has(kind) else busy_share for kind in ("tp", "cp", "ep")
        }
        passes = [step for step in self.shape.steps(stage) if isinstance(step, StagePass)]
        # of a pass only that share hides gradients: the core is for keys and values
        hiding = (self.work.layer_s - self.work.core_s) / self.work.layer_s
        left_s, busy_s, before_s, number = self.work.window_s, 0.0, 0.0, len(passes)
        while left_s > 0 and number:
            number -= 1
            parts = self.pass_parts(stage, passes[number])
            part = min(1.0, left_s / (hiding * parts.compute)) if parts.compute else 1.0
            left_s -= hiding * parts.compute
            busy_s += part * sum(share * getattr(parts, kind) for kind, share in shares.items())
            before_s = (1 - part) * parts.whole_s
        return Departure(number, busy_s + before_s)

    def run(self, record: IterationRecord | None = None, seed: int = 0) -> SimulatedParts:
        """Run the iteration."""
        return _Run(self, record, seed).parts()

    def runs(self, record: IterationRecord | None = None) -> tuple[SimulatedParts, ...]:
        """Run the iteration with each seed, and record the first; once where nothing is drawn."""
        first = _Run(self, record, 0)
        seeds = range(1, SEEDS) if first.pipeline.is_drawn else ()
        return (first.parts(), *(self.run(seed=seed) for seed in seeds))


class _Run:
    """One run of the clock, with its own eye on the passes: gradients that hide set out during one
    of them.
    """

    def __init__(self, of: IterationSimulation, record: IterationRecord | None, seed: int) -> None:
        self._of, self._record, self._work, self._carrier = of, record, of.work, of.carrier
        stages = range(of.shape.stages)
        self.clock = EventClock(self._carrier.rates)
        self._finished_s, self._start_s, self._end_s = ([0.0] * len(stages) for _ in range(3))
        self._passes = [0] * len(stages)
        self._departures = (
            [of.departure(stage) for stage in stages] if of.work.mode == "overlap" else []
        )
        # one step late: gradients of the iteration before are under way from its beginning
        if of.work.mode == "stale-1":
            for stage in stages:
                self._exchange(stage)
        self.pipeline = PipelineRun(
            self.clock, of.shape, of.pass_s, of.hops, self._finish, self, seed
        )
        self.pipeline.start()
        self.clock.run()

    def passed(self, stage: int, stage_pass: StagePass, start_s: float) -> None:
        """A pass begins, during which gradients may set out."""
        if self._record is not None:
            self._record.passed(stage, stage_pass, start_s)
        if self._departures and self._departures[stage].number == self._passes[stage]:
            self.clock.after(self._departures[stage].after_s, lambda: self._exchange(stage))
        self._passes[stage] += 1

    def sent(self, channel: Channel, start_s: float, end_s: float) -> None:
        """A message has arrived."""
        if self._record is not None:
            self._record.sent(channel, start_s, end_s)

    def _finish(self, stage: int) -> None:
        """A stage has done its last pass."""
        self._finished_s[stage] = self.clock.now
        if self._work.mode == "sync":
            self._exchange(stage)

    def _exchange(self, stage: int) -> None:
        """Send the gradients of a stage, segment by segment."""
        self._start_s[stage] = self.clock.now
        segments = iter(self._of.gradients[stage])

        def go_on() -> None:
            segment = next(segments, None)
            if segment is None:
                self._end_s[stage] = self.clock.now
            else:
                self._segment(stage, segment, go_on)

        go_on()

    def _segment(self, stage: int, segment: PassSegment, go_on: Callable[[], None]) -> None:
        start_s, phase = self.clock.now, segment.phase

        def end() -> None:
            self._note(stage, segment.name, start_s, self.clock.now)
            go_on()

        if phase is None:
            self.clock.after(segment.fixed_s, end)
        else:
            volume = segment.size_bytes / (self._work.links.rail * self._carrier.pace_byte_s)
            # one ring through all ranks, or trees, are over when both levels are
            earliest_s = start_s + segment.fixed_s + segment.beside_s

            def carried() -> None:
                self.clock.after(max(0.0, earliest_s - self.clock.now), end)

            self.clock.after(segment.fixed_s, lambda: self.clock.transfer(phase, volume, carried))

    def _ready_s(self, stage: int) -> float:
        """When a stage has its gradients; a transfer behind compute still costs a share of its
        time.
        """
        exchange_s = self._end_s[stage] - self._start_s[stage]
        behind_s = OVERLAP_COST * exchange_s if self._work.mode == "overlap" else 0.0
        return max(self._end_s[stage], self._finished_s[stage] + behind_s)

    def parts(self) -> SimulatedParts:
        """The iteration by what it is spent on."""
        work, last_stage = self._work, self._of.shape.stages - 1
        ready = [self._ready_s(stage) for stage in range(last_stage + 1)]
        passed_s, gathered_s = max(self._finished_s), max(ready)
        embedded_s = gathered_s
        if work.traffic.embedding_bytes:
            start_s = max(ready[0], ready[last_stage])
            end_s = start_s + self._of.embedding_s
            embedded_s = max(gathered_s, end_s)
            for stage in (0, last_stage):
                self._note(stage, "embedding", start_s, end_s)
        for stage in range(last_stage + 1):
            self._note(stage, "optimizer", embedded_s, embedded_s + work.optimizer_s)
        typical = (passed_s, gathered_s - passed_s, embedded_s - gathered_s, work.optimizer_s)
        return SimulatedParts(*typical, (work.factor - 1) * sum(typical))

    def _note(self, stage: int, name: str, start_s: float, end_s: float) -> None:
        """Tell who writes down."""
        if self._record is not None:
            self._record.exchanged(stage, name, start_s, end_s)
