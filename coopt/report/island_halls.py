"""The hall of a site, with its islands and the core that may join them, drawn and in words."""

from __future__ import annotations

from collections.abc import Iterator

from coopt.network.island_halls import CoreHall, SiteHall
from coopt.report import words
from coopt.report.network_drawings import Drawing, Shape, excerpt, rack_row, row_names

AMID = "Switches stand in or beside the racks with dark edges, amid what hangs below them."
OWN_RACKS = "Racks with dark edges hold the switches, amid what hangs below them."


def site_hall_drawing(hall: SiteHall) -> Drawing:
    """The first row of each island and of the core, of many islands the first ones and the last."""
    kept = excerpt(len(hall.blocks))
    blocks = [block for number, block in enumerate(hall.blocks) if number in kept or block.is_core]
    parts, per_row = list[Shape](), hall.rows.racks_per_row
    longest = min(per_row, max(block.racks for block in blocks))
    for line, block in enumerate(blocks):
        first = block.first_row * per_row
        racks, amid = range(first, first + min(per_row, block.racks)), {first + spot for spot in block.amid}
        parts += rack_row(line, racks, amid, longest)
    names = row_names("core" if block.is_core else f"row {block.first_row:,}" for block in blocks)
    return Drawing(title="hall", parts=tuple(parts), frames=(), lines=(), legend={}, rows=names)


def site_hall_caption(hall: SiteHall) -> str:
    """Who stands in which rows, and what racks draw; of a core its switches and its longest cables."""
    return " ".join((*_sentences(hall), OWN_RACKS if all(block.counted for block in hall.blocks) else AMID))


def _sentences(hall: SiteHall) -> Iterator[str]:
    where, when = "" if hall.site is None else f" at {hall.site}", " in the end" if hall.grows else ""
    standing = words.both(f"{block.name} from row {block.first_row:,}" for block in hall.blocks)
    racks = words.counted(sum(block.racks for block in hall.blocks), "rack")
    domains_w = max(block.rack_w for block in hall.blocks)
    switches_w = max(block.switch_rack_w for block in hall.blocks)
    of_switches = f", one of switches up to {words.power(switches_w)}" if switches_w else ""
    yield (
        f"The hall{where}{when}: {racks}, {standing}, of which the first rows are drawn. A rack of HB domains draws up "
        f"to {words.power(domains_w)}{of_switches}."
    )
    if isinstance(hall, CoreHall):
        core = hall.shared.core
        boxes, longest = words.times(core.switches, core.switch.name), max(hall.cables)
        fill = words.counted(hall.switch_racks, "rack") if hall.switch_racks else "racks that nobody has counted"
        yield f"{boxes} of the core fill {fill}, and cables into it take up to {longest:,} m."
