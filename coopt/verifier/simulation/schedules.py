"""What a stage of a pipeline does in an iteration, pass by pass, and with whom it exchanges messages in between.

One forward, one backward (1F1B), and its interleaved form, as Megatron-LM runs them: a stage goes on when all messages
of an exchange have arrived.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class Channel(NamedTuple):
    """From a stage to the one after it (activations) or before it (gradients)."""

    sender: int
    receiver: int
    is_backward: bool


class StagePass(NamedTuple):
    """One micro-batch through one chunk."""

    chunk: int
    micro_batch: int
    is_backward: bool


class GradientExchange(NamedTuple):
    """Messages that a stage waits for before it goes on."""

    sends: tuple[Channel, ...]
    receives: tuple[Channel, ...]


Step = StagePass | GradientExchange


class PipelineShape(NamedTuple):
    """Stages, chunks of each, micro-batches."""

    stages: int
    chunks: int
    micro_batches: int

    def steps(self, stage: int) -> Iterator[Step]:
        """Everything a stage does, in order."""
        return self._interleaved(stage) if self.chunks > 1 else self._one_each(stage)

    def _one_each(self, stage: int) -> Iterator[Step]:
        """1F1B: as many forward passes ahead as stages follow, then one forward and one backward in turn."""
        is_last, m = stage == self.stages - 1, self.micro_batches
        ahead = min(self.stages - stage - 1, m)
        down = () if is_last else (Channel(stage, stage + 1, False),)
        up = (Channel(stage, stage - 1, True),) if stage else ()
        from_above = (Channel(stage - 1, stage, False),) if stage else ()
        from_below = () if is_last else (Channel(stage + 1, stage, True),)
        for i in range(ahead):
            yield GradientExchange((), from_above)
            yield StagePass(0, i, False)
            yield GradientExchange(down, ())
        yield GradientExchange((), from_above if ahead < m else ())
        for i in range(m - ahead):
            yield StagePass(0, ahead + i, False)
            yield GradientExchange(down, from_below)
            yield StagePass(0, i, True)
            yield GradientExchange(up, from_above if ahead + i + 1 < m else ())
        for i in range(m - ahead, m):
            yield GradientExchange((), from_below)
            yield StagePass(0, i, True)
            yield GradientExchange(up, ())

    def _interleaved(self, stage: int) -> Iterator[Step]:
        """Micro-batches go through the first chunks in groups of as many as there are stages, then the next chunks."""
        p, total = self.stages, self.micro_batches * self.chunks
        is_all_ahead = self.micro_batches == p
        ahead = total if is_all_ahead else min((p - stage - 1) * 2 + (self.chunks - 1) * p, total)
        yield GradientExchange((), self._received(stage, 0, is_backward=False))
        for k in range(ahead):
            yield self._pass(k, is_backward=False)
            turns = k == ahead - 1 and not is_all_ahead
            first_back = self._received(stage, 0, is_backward=True) if turns else ()
            following = self._received(stage, k + 1, is_backward=False)
            yield GradientExchange(self._sent(stage, k, is_backward=False), following + first_back)
        for k in range(total - ahead):
            yield self._pass(k + ahead, is_backward=False)
            yield self._pass(k, is_backward=True)
            sent = self._sent(stage, k + ahead, is_backward=False) + self._sent(stage, k, is_backward=True)
            following = self._received(stage, k + ahead + 1, is_backward=False)
            yield GradientExchange(sent, following + self._received(stage, k + 1, is_backward=True))
        yield GradientExchange((), self._received(stage, 0, is_backward=True) if is_all_ahead else ())
        for k in range(total - ahead, total):
            yield self._pass(k, is_backward=True)
            following = self._received(stage, k + 1, is_backward=True)
            yield GradientExchange(self._sent(stage, k, is_backward=True), following)

    def _pass(self, k: int, *, is_backward: bool) -> StagePass:
        group, place = divmod(k, self.stages * self.chunks)
        chunk, i = divmod(place, self.stages)
        return StagePass(self.chunks - 1 - chunk if is_backward else chunk, group * self.stages + i, is_backward)

    def _sent(self, stage: int, k: int, *, is_backward: bool) -> tuple[Channel, ...]:
        """Where the result of a pass goes: nowhere from the last chunk of all, or back from the first."""
        step = -1 if is_backward else 1
        is_end = self._is_end(stage, self._pass(k, is_backward=is_backward), forward_end=not is_backward)
        return () if is_end else (Channel(stage, (stage + step) % self.stages, is_backward),)

    def _received(self, stage: int, k: int, *, is_backward: bool) -> tuple[Channel, ...]:
        """Where the input of a pass comes from, if there is such a pass and it has one."""
        if k >= self.micro_batches * self.chunks:
            return ()
        step = -1 if is_backward else 1
        is_end = self._is_end(stage, self._pass(k, is_backward=is_backward), forward_end=is_backward)
        return () if is_end else (Channel((stage - step) % self.stages, stage, is_backward),)

    def _is_end(self, stage: int, one: StagePass, *, forward_end: bool) -> bool:
        """Whether a pass is through the last chunk of the last stage, or through the first of the first."""
        end = (self.stages - 1, self.chunks - 1) if forward_end else (0, 0)
        return (stage, one.chunk) == end
