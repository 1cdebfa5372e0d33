"""What each stage of a pipeline does in an iteration, in order: passes, and exchanges of messages.

One forward, one backward (1F1B), and its interleaved form, as Megatron-LM runs them; ZB-H1 and
DualPipe, which split the backward pass.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Literal, NamedTuple


class Channel(NamedTuple):
    """From a stage to the one after it (activations) or before it (gradients)."""

    sender: int
    receiver: int
    is_backward: bool


class StagePass(NamedTuple):
    """One micro-batch through one chunk; of DualPipe chunk 1 is the stage of the pipeline that goes
    the other way.
    """

    chunk: int
    micro_batch: int
    is_backward: bool
    gives: Literal["all", "inputs", "weights"] = "all"
    """gradients that a backward pass takes"""


class StageExchange(NamedTuple):
    """Messages (activations or gradients) that a stage waits for before it goes on."""

    sends: tuple[Channel, ...]
    receives: tuple[Channel, ...]


Step = StagePass | StageExchange


class PipelineShape(NamedTuple):
    """Stages, chunks of each, micro-batches."""

    stages: int
    chunks: int
    micro_batches: int
    schedule: str = "1f1b"

    def steps(self, stage: int) -> Iterator[Step]:
        """Everything a stage does, in order."""
        if self.schedule != "1f1b" and self.stages > 1:
            groups = self._put_off(stage) if self.schedule == "zb-h1" else self._two_way(stage)
            return (step for group in groups for step in self._with_messages(stage, group))
        return self._interleaved(stage) if self.chunks > 1 else self._one_each(stage)

    def _one_each(self, stage: int) -> Iterator[Step]:
        """1F1B: as many forward passes ahead as stages follow, then one forward and one backward in
        turn.
        """
        is_last, m = stage == self.stages - 1, self.micro_batches
        ahead = min(self.stages - stage - 1, m)
        down = () if is_last else (Channel(stage, stage + 1, False),)
        up = (Channel(stage, stage - 1, True),) if stage else ()
        from_above = (Channel(stage - 1, stage, False),) if stage else ()
        from_below = () if is_last else (Channel(stage + 1, stage, True),)
        for i in range(ahead):
            yield StageExchange((), from_above)
            yield StagePass(0, i, False)
            yield StageExchange(down, ())
        yield StageExchange((), from_above if ahead < m else ())
        for i in range(m - ahead):
            yield StagePass(0, ahead + i, False)
            yield StageExchange(down, from_below)
            yield StagePass(0, i, True)
            yield StageExchange(up, from_above if ahead + i + 1 < m else ())
        for i in range(m - ahead, m):
            yield StageExchange((), from_below)
            yield StagePass(0, i, True)
            yield StageExchange(up, ())

    def _with_messages(self, stage: int, group: tuple[StagePass, ...]) -> Iterator[Step]:
        """Passes that begin when all of their inputs are there, and whose results leave
        together.
        """
        sends: list[Channel] = []
        receives: list[Channel] = []
        for stage_pass in group:
            step = 1 if stage_pass.is_backward == (stage_pass.chunk == 1) else -1
            if stage_pass.gives != "weights":
                sends += [Channel(stage, stage + step, stage_pass.is_backward)] * (
                    0 <= stage + step < self.stages
                )
                receives += [Channel(stage - step, stage, stage_pass.is_backward)] * (
                    0 <= stage - step < self.stages
                )
        yield StageExchange((), tuple(receives))
        yield from group
        yield StageExchange(tuple(sends), ())

    def _put_off(self, stage: int) -> Iterator[tuple[StagePass, ...]]:
        """ZB-H1: 1F1B, in which stage i, counted from 0, takes gradients of weights i micro-batches
        late.
        """
        m = self.micro_batches
        ahead = min(self.stages - stage - 1, m)
        yield from ((StagePass(0, i, False),) for i in range(ahead))
        for i in range(m + stage):
            if i + ahead < m:
                yield (StagePass(0, i + ahead, False),)
            if i < m:
                yield (StagePass(0, i, True, "inputs"),)
            if 0 <= i - stage < m:
                yield (StagePass(0, i - stage, True, "weights"),)

    def _two_way(self, stage: int) -> Iterator[tuple[StagePass, ...]]:
        """DualPipe: half of the micro-batches each way; `near_way` is the way that begins at the
        nearer end.
        """
        near_way = int(stage >= self.stages // 2)
        from_end = min(stage, self.stages - 1 - stage)
        to_middle, half = self.stages // 2 - 1 - from_end, self.micro_batches // 2
        # the loops below are the eight steps of dualpipe.py, each with its own number of passes
        numbers = {(chunk, back): iter(range(half)) for chunk in (0, 1) for back in (False, True)}
        put_off_passes: deque[StagePass] = deque()

        def forward(chunk: int) -> StagePass:
            return StagePass(chunk, next(numbers[chunk, False]), False)

        def backward(chunk: int) -> StagePass:
            return StagePass(chunk, next(numbers[chunk, True]), True)

        def put_off(chunk: int) -> StagePass:
            backward_pass = backward(chunk)
            put_off_passes.append(backward_pass._replace(gives="weights"))
            return backward_pass._replace(gives="inputs")

        far_way = 1 - near_way
        for _ in range(2 * to_middle):
            yield (forward(near_way),)
        for _ in range(from_end + 1):
            yield (forward(near_way),)
            yield (forward(far_way),)
        for _ in range(to_middle):
            yield (put_off(far_way),)
            yield (put_off_passes.popleft(),)
            yield (forward(far_way),)
        for i in range(half - self.stages + from_end + 1):
            if i == 0 and to_middle == 0:
                yield (forward(near_way),)
                yield (backward(far_way),)
            else:
                yield forward(near_way), backward(far_way)
            yield forward(far_way), backward(near_way)
        for _ in range(to_middle):
            yield (backward(far_way),)
            yield forward(far_way), backward(near_way)
        for i in range(2 * from_end + 2):
            chunk = near_way if i % 2 else far_way
            yield (put_off(chunk) if i > from_end else backward(chunk),)
        for _ in range(to_middle):
            yield (put_off_passes.popleft(),)
            yield (put_off(near_way),)
        while put_off_passes:
            yield (put_off_passes.popleft(),)

    def _interleaved(self, stage: int) -> Iterator[Step]:
        """Micro-batches go through the first chunks in groups of as many as there are stages, then
        the next chunks.
        """
        p, total = self.stages, self.micro_batches * self.chunks
        is_all_ahead = self.micro_batches == p
        # as many chunks ahead as Megatron-LM: two for each stage that follows, and all chunks but
        # the last of one group
        ahead = total if is_all_ahead else min((p - stage - 1) * 2 + (self.chunks - 1) * p, total)
        yield StageExchange((), self._receives_of(stage, 0, is_backward=False))
        for k in range(ahead):
            yield self._pass(k, is_backward=False)
            # with its last pass ahead a stage also waits for the first gradient
            turns = k == ahead - 1 and not is_all_ahead
            first_back = self._receives_of(stage, 0, is_backward=True) if turns else ()
            receives = self._receives_of(stage, k + 1, is_backward=False)
            yield StageExchange(self._sends_of(stage, k, is_backward=False), receives + first_back)
        for k in range(total - ahead):
            yield self._pass(k + ahead, is_backward=False)
            yield self._pass(k, is_backward=True)
            sends = self._sends_of(stage, k + ahead, is_backward=False) + self._sends_of(
                stage, k, is_backward=True
            )
            receives = self._receives_of(stage, k + ahead + 1, is_backward=False)
            yield StageExchange(sends, receives + self._receives_of(stage, k + 1, is_backward=True))
        yield StageExchange(
            (), self._receives_of(stage, 0, is_backward=True) if is_all_ahead else ()
        )
        for k in range(total - ahead, total):
            yield self._pass(k, is_backward=True)
            receives = self._receives_of(stage, k + 1, is_backward=True)
            yield StageExchange(self._sends_of(stage, k, is_backward=True), receives)

    def _pass(self, k: int, *, is_backward: bool) -> StagePass:
        group, place = divmod(k, self.stages * self.chunks)
        chunk, i = divmod(place, self.stages)
        return StagePass(
            self.chunks - 1 - chunk if is_backward else chunk, group * self.stages + i, is_backward
        )

    def _sends_of(self, stage: int, k: int, *, is_backward: bool) -> tuple[Channel, ...]:
        """Where the result of a pass goes: nowhere from the last chunk of all, or back from the
        first.
        """
        if self._is_end(stage, k, is_backward, sends=True):
            return ()
        return (Channel(stage, (stage + (-1 if is_backward else 1)) % self.stages, is_backward),)

    def _receives_of(self, stage: int, k: int, *, is_backward: bool) -> tuple[Channel, ...]:
        """Where the input of a pass comes from, if there is such a pass and it has one."""
        if self._is_end(stage, k, is_backward, sends=False):
            return ()
        return (Channel((stage + (1 if is_backward else -1)) % self.stages, stage, is_backward),)

    def _is_end(self, stage: int, k: int, is_backward: bool, *, sends: bool) -> bool:
        """Whether a pass that sends is through the last chunk of the last stage, or one that
        receives through the first of the first, and the other way round backward; or there is none.
        """
        end = (0, 0) if sends == is_backward else (self.stages - 1, self.chunks - 1)
        is_pass = k < self.micro_batches * self.chunks
        return not is_pass or (stage, self._pass(k, is_backward=is_backward).chunk) == end
