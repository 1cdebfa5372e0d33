"""The hall in which islands and the core that joins them stand: drawn, in words, and which ends do not reach in it."""

from __future__ import annotations

from coopt.network.island_halls import CoreHall
from coopt.report import words
from coopt.report.network_drawings import Drawing, Shape, excerpt, rack_row, row_names


def core_hall_drawing(hall: CoreHall) -> Drawing:
    """The first row of each island and of the core, of many islands the first ones and the last."""
    shown = {*excerpt(len(hall.blocks)), hall.blocks.index(hall.core)}
    blocks = [block for number, block in enumerate(hall.blocks) if number in shown]
    parts, per_row = list[Shape](), hall.rows.racks_per_row
    longest = min(per_row, max(block.racks for block in blocks))
    for line, block in enumerate(blocks):
        first = block.first_row * per_row
        racks, amid = range(first, first + min(per_row, block.racks)), {first + spot for spot in block.amid}
        parts += rack_row(line, racks, amid, longest)
    names = row_names("core" if block is hall.core else f"row {block.first_row:,}" for block in blocks)
    return Drawing(title="hall", parts=tuple(parts), frames=(), lines=(), legend={}, rows=names)


def core_hall_caption(hall: CoreHall) -> str:
    """Who stands in which rows, what the racks of the core hold, and its longest cables."""
    place, core = hall.shared.site, hall.shared.core
    where = "" if place is None else f" at {place}"
    standing = words.both(f"{block.name} from row {block.first_row:,}" for block in hall.blocks)
    racks = sum(block.racks for block in hall.blocks)
    boxes = words.times(core.switches, core.switch.name)
    own = "stand in racks that nobody has counted"
    if hall.switch_racks is not None:
        counted = words.counted(hall.switch_racks, "rack")
        own = f"fill {counted}, of which the fullest draws {words.power(hall.switch_rack_w)}"
    longest = words.both(f"{max(one.cables):,} m from {one.part.slot}" for one in hall.links)
    return (
        f"The hall{where} in the end: {words.counted(racks, 'rack')}, {standing}, of which the first rows are drawn. "
        f"{boxes} of the core {own}. Cables into it take up to {longest}."
    )
