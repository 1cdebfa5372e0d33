"""Memory of mappings as tables: `coopt fits`."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.text import Text

from coopt.report import words
from coopt.report.own_runs import mapping_words
from coopt.report.words import figures, pieces
from coopt.validation.fits import SHOWN, Fits, MappingMemory


def fits_report(answers: Sequence[Fits]) -> list[RenderableType]:
    """The memory of one mapping by component, or the mappings that fit."""
    return [piece for fits in answers for piece in _one(fits)]


def _one(fits: Fits) -> list[RenderableType]:
    head = (
        f"{fits.model} on {words.times(fits.gpus, fits.gpu)}, sequences of {fits.seq:,} tokens,"
        f" batch {fits.global_batch:,}, {fits.precision}: {fits.memory_limit_gib:.1f} GiB a GPU"
        + (f" after {fits.memory_margin:.0%} is left free." if fits.memory_margin else ".")
    )
    if fits.mappings == 1:
        (memory,) = fits.listed
        return pieces(Text(head, style="bold"), *_components(memory, fits), *_instead(fits))
    verb = "fits" if fits.fitting == 1 else "fit"
    counts = f"{fits.fitting:,} of {words.counted(fits.mappings, 'mapping')} {verb}."
    first = "the first " if len(fits.listed) == SHOWN else ""
    listed = (
        f"The table lists {first}{words.counted(len(fits.listed), 'combination')} of degrees, those"
        " with the fewest GPUs in a replica first. For each it shows the mapping with the least"
        " recomputation, then with sequence parallelism, then with the lowest ZeRO stage."
    )
    rows = [
        (
            mapping_words(memory.mapping),
            f"{memory.memory_gib:.1f}",
            ", ".join(f"{name} {gib:.1f}" for name, gib in [*memory.parts_gib.items()][:2]),
        )
        for memory in fits.listed
    ]
    table = figures("Mappings that fit", ("mapping",), ("GiB", "two largest parts (GiB)"), rows)
    return pieces(
        Text(head, style="bold"), f"{counts} {listed}" if rows else counts, table if rows else None
    )


def _components(memory: MappingMemory, fits: Fits) -> list[RenderableType]:
    share = memory.memory_gib / fits.memory_limit_gib
    state = (
        f"{mapping_words(memory.mapping)} fits: {memory.memory_gib:.1f} GiB, {share:.0%} of the"
        f" {fits.memory_limit_gib:.1f} GiB."
        if memory.fits
        else f"{mapping_words(memory.mapping)} does not fit: {memory.memory_gib:.1f} GiB,"
        f" {memory.memory_gib - fits.memory_limit_gib:.1f} GiB too much."
    )
    rows = [(name, f"{gib:.2f}") for name, gib in memory.parts_gib.items()]
    rows.append(("all", f"{memory.memory_gib:.2f}"))
    return [state, figures("Memory of the fullest GPU", ("component",), ("GiB",), rows)]


def _instead(fits: Fits) -> list[RenderableType]:
    if fits.listed[0].fits:
        return []
    rows = [(mapping_words(one.mapping), f"{one.memory_gib:.1f}") for one in fits.instead]
    if not rows:
        return [
            "No single change of ZeRO, recomputation, sequence parallelism or offloading makes this"
            " mapping fit."
        ]
    return [figures("Mappings that fit after one change", ("mapping",), ("GiB",), rows)]
