"""Mappings and placements as arrays of columns, and tools to evaluate equal rows once."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coopt.instance.transformer import Transformer

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

RECOMPUTE = ("none", "selective", "full", "norm+act", "norm+ffn")
NONE, SELECTIVE, FULL, NORM_ACT, NORM_FFN = range(5)
OUTERMOST = ("pp", "dp")
STAGES_APART, STAGES_TOGETHER = range(2)
"""The dimension that is outermost across domains: pipeline stages lie far apart, or the stages of a
pipeline lie next to each other.
"""
NAMED = {"recompute": RECOMPUTE, "outermost": OUTERMOST}
FEW_ROWS = 1 << 11
"""Number of rows up to which sorting them is cheaper than numbering their columns one by one."""
FEW_TO_TIME = 64
"""Number of rows up to which every row is timed: finding equal rows takes as long as timing about
80.
"""
SMALL_TABLE, TABLE_PER_ROW = 1 << 15, 1 << 7
"""Table sizes, in total and per row, up to which filling a table is cheaper than sorting the rows.
"""
UNSPLIT = {
    "recompute": NONE,
    "sequence_parallel": 0,
    "zero": 0,
    "offload_percent": 0,
    "outermost": STAGES_APART,
}
"""Values of fields where nothing is split or saved; all other fields are degrees and counts, with
value 1.
"""


@dataclass(frozen=True, kw_only=True)
class Mappings:
    """Parallel mappings of a workload, one per row.

    All arrays have shape (n,). `recompute` holds indices into `RECOMPUTE`, `outermost` into
    `OUTERMOST`.
    """

    tp: Ints
    cp: Ints
    pp: Ints
    dp: Ints
    ep: Ints
    micro_batch: Ints
    interleave: Ints
    recompute: Ints
    sequence_parallel: Bools
    zero: Ints
    offload_percent: Ints
    outermost: Ints

    @classmethod
    def of(cls, **columns: Any) -> Mappings:
        """Build rows from columns by name, of shape (n,); degrees that are left out are 1."""
        size = len(next(iter(columns.values())))
        return cls.of_table(
            np.array(
                [
                    np.asarray(columns.get(f.name, np.full(size, UNSPLIT.get(f.name, 1))))
                    for f in fields(cls)
                ]
            )
        )

    @classmethod
    def of_table(cls, table: Ints) -> Mappings:
        """Build rows from integers of shape (fields, n), in the order of the fields."""
        columns = dict(zip((f.name for f in fields(cls)), table, strict=True))
        return cls(**columns | {"sequence_parallel": columns["sequence_parallel"].astype(np.bool_)})

    @classmethod
    def of_choice(cls, values: Mapping[str, int | bool | str]) -> Mappings:
        """Build one row from the values of a plan, which name the recomputation and the outermost
        dimension.
        """
        names = {
            name: entries.index(str(values[name]))
            for name, entries in NAMED.items()
            if name in values
        }
        numbers = {**values, **names}
        return cls.of(**{name: [int(value)] for name, value in numbers.items()})

    def choice(self, row: int) -> dict[str, int | bool | str]:
        """Return the values of a row as plans store them."""
        numbers = {f.name: getattr(self, f.name)[row].item() for f in fields(self)}
        return numbers | {name: entries[numbers[name]] for name, entries in NAMED.items()}

    def __len__(self) -> int:
        return len(self.tp)

    def take(self, rows: Ints | Bools | slice) -> Mappings:
        """Select rows."""
        # a mask would be scanned once per column
        at = rows if isinstance(rows, slice) or rows.dtype != np.bool_ else np.flatnonzero(rows)
        return Mappings(**{name: column[at] for name, column in vars(self).items()})


@dataclass(frozen=True, kw_only=True)
class Placements:
    """The part of each parallel degree that lies inside an HB domain; arrays of shape (n,), row by
    row with `Mappings`.

    `expert_ranks` derives the expert groups from these. Where domains hold different numbers of
    GPUs, `dp` is the number of replicas in the fullest domains, `dp_min` that in the emptiest
    ones, and `dp_domains` the number of domains that hold the replicas of a stage.
    """

    tp: Ints
    cp: Ints
    pp: Ints
    dp: Ints
    dp_domains: Ints | None = None
    dp_min: Ints | None = None

    def __len__(self) -> int:
        return len(self.tp)

    def take(self, rows: Ints | Bools | slice) -> Placements:
        """Select rows."""
        return Placements(
            **{name: column[rows] for name, column in vars(self).items() if column is not None}
        )

    def dp_across(self, mappings: Mappings) -> Ints:
        """Return d_l, the number of domains that hold the replicas of a stage; shape (n,)."""
        return mappings.dp // self.dp if self.dp_domains is None else self.dp_domains

    @property
    def dp_at_least(self) -> Ints:
        """Minimum number of replicas of a stage in a domain that holds any; shape (n,)."""
        return self.dp if self.dp_min is None else self.dp_min

    @property
    def filled(self) -> Ints:
        """GPUs in use in the fullest domain; shape (n,)."""
        return self.tp * self.cp * self.pp * self.dp


def micro_batches(mappings: Mappings, global_batch: int) -> Ints:
    """m: micro-batches per pipeline and iteration."""
    return global_batch // (mappings.dp * mappings.micro_batch)


def replicas_together(mappings: Mappings, *, expert_tp: bool) -> Ints:
    """Minimum number of replicas of a stage that fill whole expert groups, with TP and context
    ranks in one domain; shape (n,).
    """
    return np.asarray(
        mappings.ep // np.gcd(mappings.ep, mappings.cp * (1 if expert_tp else mappings.tp))
    )


def uneven_replicas(dp: int, joint_replicas: int, domains: int) -> tuple[int, int]:
    """Replicas of a stage in the fullest and in the emptiest domains, where each group of
    `joint_replicas` stays in one domain.
    """
    groups = dp // joint_replicas
    return joint_replicas * -(-groups // domains), joint_replicas * (groups // domains)


def expert_ranks(
    mappings: Mappings, placements: Placements, *, expert_tp: bool
) -> tuple[Ints, Ints, Ints, Ints]:
    """Extent of expert groups, and of the groups of GPUs that hold the same experts; arrays of
    shape (n,).

    Returns
    -------
    inside, across, copies_inside, copies_across
        x_h, x_l: ranks of an expert group in one HB domain, and domains it spans; the same for the
        copies of an expert.
    """
    ranks_inside = placements.cp * placements.dp * (1 if expert_tp else placements.tp)
    domains = mappings.cp // placements.cp * placements.dp_across(mappings)
    domains = domains if expert_tp else domains * (mappings.tp // placements.tp)
    # an expert group takes the ranks of its domain first (docs/model.md, Which ranks)
    inside = np.gcd(mappings.ep, ranks_inside)
    across = mappings.ep // inside
    return inside, across, ranks_inside // inside, domains // across


def chunk_layers(layers: int, mappings: Mappings) -> Ints:
    """Layers of the largest model chunk: ceil(L / (p·v)); shape (n,)."""
    return -(-layers // (mappings.pp * mappings.interleave))


def stage_layers(model: Transformer, mappings: Mappings) -> tuple[Ints, Ints]:
    r"""Layers of the fullest stage, :math:`\ell`, and how many fewer the last stage has; shape (n,)
    each.

    If the layers do not fill all chunks, the missing ones are taken from the first and the last
    stage, which hold the embedding and the logits. They are taken from the last stage alone if it
    also has further predictions and its last chunk has enough layers, as in the recipes of
    DeepSeek-V3.
    """
    chunk = chunk_layers(model.layers, mappings)
    fullest = chunk * mappings.interleave
    missing_layers = mappings.pp * fullest - model.layers
    all_on_last = (missing_layers <= chunk) & (model.extra_predictions > 0)
    return fullest, np.where(all_on_last, missing_layers, missing_layers - missing_layers // 2)


def distinct_rows(*columns: Ints) -> tuple[tuple[Ints, ...], Ints]:
    """Return the distinct rows of columns of small integers, without sorting where that is cheaper.

    Where many rows have too many combinations for a table (powers of two up to a hundred thousand,
    for example), each column is numbered first. That keeps the order of its values, so the result
    is the same as with sorting.

    Returns
    -------
    rows, position
        `rows[j][position]` is column j again; rows are in rising order.
    """
    count = len(columns[0])
    if not count:
        return tuple(column[:0] for column in columns), np.zeros(0, dtype=np.int64)
    sizes = [int(column.max()) + 1 for column in columns]
    combinations = math.prod(sizes)
    if combinations <= np.iinfo(np.int64).max and (
        count <= FEW_ROWS or _may_fill(combinations, count)
    ):
        return _looked_up(columns, sizes)
    values, numbers = zip(
        *(_numbered(column, size) for column, size in zip(columns, sizes, strict=True)), strict=True
    )
    sizes = [len(present) for present in values]
    if math.prod(sizes) > np.iinfo(np.int64).max:
        table, position = np.unique(np.stack(columns), axis=1, return_inverse=True)
        return tuple(table), position.ravel()
    rows, position = _looked_up(numbers, sizes)
    return tuple(present[row] for present, row in zip(values, rows, strict=True)), position


def _looked_up(columns: Sequence[Ints], sizes: Sequence[int]) -> tuple[tuple[Ints, ...], Ints]:
    """Implement `distinct_rows` for columns below the given sizes, by the index of each row among
    all combinations.
    """
    keys, position = _numbered(np.ravel_multi_index(tuple(columns), sizes), math.prod(sizes))
    return np.unravel_index(keys, sizes), position


def _numbered(column: Ints, size: int) -> tuple[Ints, Ints]:
    """Return the distinct values of a column below `size` in rising order, and the index of each
    entry among them.
    """
    if not _may_fill(size, len(column)):
        values, position = np.unique(column, return_inverse=True)
        return values, position.ravel()
    present = np.zeros(size, dtype=np.bool_)
    present[column] = True
    values = np.flatnonzero(present)
    number = np.empty(size, dtype=np.int64)
    number[values] = np.arange(len(values))
    return values, number[column]


def _may_fill(size: int, count: int) -> bool:
    """Whether filling a table of that size is cheaper than sorting that many rows."""
    return size <= max(SMALL_TABLE, TABLE_PER_ROW * count)


def representatives(*columns: Ints) -> tuple[Ints, Ints]:
    """Select one row for each distinct combination of columns.

    Returns
    -------
    rows, position
        Indexing the results for `rows` by `position` gives the results of all rows.
    """
    combinations, position = distinct_rows(*columns)
    rows = np.empty(len(combinations[0]), dtype=np.int64)
    rows[position] = np.arange(len(position))
    return rows, position


def rows_to_time(*columns: Ints) -> tuple[Ints, Ints]:
    """`representatives`, or every row where there are so few that timing each is faster than
    finding equal ones.
    """
    count = len(columns[0])
    if count > FEW_TO_TIME:
        return representatives(*columns)
    return np.arange(count), np.arange(count)
