"""Published designs counted again."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from coopt.fabric.designs import counted
from coopt.instance import listings
from coopt.instance.designs import PublishedDesign, read_designs
from coopt.instance.errors import InstanceError
from coopt.plan.networks import Counts, ReproducedRow, Reproduction


def counted_again(path: str | Path) -> Reproduction:
    """Every published design of a file, counted by the rules of docs/designs.md.

    Raises
    ------
    InstanceError
        With every complaint about the form of the file: file, design, key, value given, what is needed.
    """
    file, designs = Path(path).name, read_designs(path)
    missing = [design.id for design in designs if design.published is None]
    if missing:
        raise InstanceError(
            f"{file}: design {name!r}: published is missing, needs the counts of its source" for name in missing
        )
    rows = tuple(_row(design, file) for design in designs)
    return Reproduction(rows=rows, exact=sum(row.ok for row in rows), of=len(rows))


def _row(design: PublishedDesign, file: str) -> ReproducedRow:
    assert design.published is not None, "refused above"
    published = Counts(switches=design.published.switches, links=design.published.links)
    try:
        tiers = counted(design, file)
    except InstanceError as error:
        return ReproducedRow(
            id=design.id, source=design.source, published=published, counted=None, ok=False, why=str(error)
        )
    ours = Counts(switches=tuple(tier.switches for tier in tiers), links=tuple(tier.links for tier in tiers))
    differences = [*_differences("switch", ours.switches, published.switches)]
    if published.links is not None:
        differences += _differences("link", ours.links or (), published.links)
    why = f"{'; '.join(differences)}." if differences else ""
    return ReproducedRow(
        id=design.id, source=design.source, published=published, counted=ours, ok=not differences, why=why
    )


def _differences(noun: str, ours: tuple[int, ...], theirs: tuple[int, ...]) -> Iterator[str]:
    """Tiers that are off, in words; a tier that one of both lacks has none."""
    for tier, (one, other) in enumerate(zip_longest(ours, theirs, fillvalue=0), start=1):
        if one != other:
            found = listings.counted(one, noun) if one else f"no {noun}"
            published = f"{other:,}" if other else "none"
            yield f"tier {tier} has {found} as counted and {published} as published"
