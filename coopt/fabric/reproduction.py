"""Published designs counted again."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from coopt.fabric.bills import design_bill
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
    published = Counts(**design.published.model_dump())
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
    if published.optics is not None:
        counts = _optics(design, file)
        ours = ours.model_copy(update={"optics": {name: counts.get(name, 0) for name in published.optics | counts}})
        differences += _other_optics(counts, published.optics)
    why = f"{'; '.join(differences)}." if differences else ""
    return ReproducedRow(
        id=design.id, source=design.source, published=published, counted=ours, ok=not differences, why=why
    )


def _optics(design: PublishedDesign, file: str) -> dict[str, int]:
    """Modules of each product in use, as the bill counts them."""
    items = design_bill(design, file).items
    return {item.item: item.count for item in items if item.kind == "optics" and not item.spare}


def _other_optics(ours: dict[str, int], theirs: dict[str, int]) -> Iterator[str]:
    """Products of which others are counted, in words."""
    for name in dict.fromkeys((*theirs, *ours)):
        one, other = ours.get(name, 0), theirs.get(name, 0)
        if one != other:
            yield f"{listings.counted(one, 'module')} of {name} as counted and {other:,} as published"


def _differences(noun: str, ours: tuple[int, ...], theirs: tuple[int, ...]) -> Iterator[str]:
    """Tiers that are off, in words; a tier that one of both lacks has none."""
    for tier, (one, other) in enumerate(zip_longest(ours, theirs, fillvalue=0), start=1):
        if one != other:
            found = listings.counted(one, noun) if one else f"no {noun}"
            published = f"{other:,}" if other else "none"
            yield f"tier {tier} has {found} as counted and {published} as published"
