"""How a workload is cut: the mapping, as plain numbers."""

from __future__ import annotations

from typing import NamedTuple

from coopt.plan.schema import MappingChoice


class Split(NamedTuple):
    """A mapping; symbols t, p, d, c, x, b, v of docs/model.md."""

    tp: int
    pp: int
    dp: int
    cp: int
    ep: int
    micro_batch: int
    interleave: int
    recompute: str
    sequence_parallel: bool
    zero: int

    def micro_batches(self, global_batch: int) -> int:
        """m: micro-batches each pipeline runs in one iteration."""
        return global_batch // (self.dp * self.micro_batch)

    def chunk_layers(self, layers: int) -> int:
        """Layers of a chunk: ceil(L/(p·v))."""
        return -(-layers // (self.pp * self.interleave))

    def stage_layers(self, layers: int) -> int:
        """ℓ: layers of the fullest stage."""
        return self.interleave * self.chunk_layers(layers)

    def missing_layers(self, layers: int) -> int:
        """How many layers the stages have fewer than if all were full."""
        return self.pp * self.stage_layers(layers) - layers

    def last_lacks(self, layers: int) -> int:
        """o: layers the last stage has fewer than a full one."""
        return -(-self.missing_layers(layers) // 2)


def split_of(mapping: MappingChoice) -> Split:
    """The mapping of a plan."""
    return Split(**mapping.model_dump())
