"""A plan as one drawing: switches by tier, an HB domain, a model replica by stage and shard, and
the hall.

Colours are pipeline stages, shades the shards of TP and CP. What repeats is drawn once and counted,
so that 131,072 GPUs are as readable as 64. Places are in pixels, y downwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from colorsys import hls_to_rgb
from dataclasses import dataclass
from html import escape
from itertools import groupby

import numpy as np

from coopt.instance.hardware import HbDomain
from coopt.instance.schema import Instance
from coopt.instance.texts import grouped
from coopt.network.halls import HallBlock, SiteHall, site_halls
from coopt.network.plan_networks import question_of
from coopt.perf.mapping import Ints
from coopt.plan.couplings import Part, network_of
from coopt.plan.parts import Design, WorkloadPlan
from coopt.plan.schema import Plan
from coopt.report import words
from coopt.traffic.of_plan import workload_splits
from coopt.traffic.ranks import RankGrid, rank_table

WIDTH, LEFT = 1000, 190
ROOM = WIDTH - LEFT - 10  # for what stands beside the names of rows
GAP = 10  # between panels
MOST_BOXES = 12  # switches of a row, of more the first ones and the last
MOST_PARTS = 4  # networks that are drawn; the others are counted
MOST_SHARDS = 16  # rows of a replica, of more the first ones and the last
MOST_CELLS = 96  # GPUs of the HB domain in detail
LETTER = 6.4  # the width of one
MIN_SPLIT, MOST_OF_RACK = 8.0, 4  # width of a rack that shows several stages, and how many
SEVERAL, EMPTY = "several", "hb"  # racks of more stages, and without any
TIERS = {1: ("switch",), 2: ("leaf", "spine"), 3: ("leaf", "aggregation switch", "core")}


@dataclass(frozen=True, kw_only=True)
class DrawnPanel:
    """A piece of the drawing, as high as it says, with its marks from y = 0 down."""

    height: float
    marks: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Held:
    """Which shard of a model each GPU of a network holds.

    `stage`, `shard` (CP rank · TP + TP rank), `replica` and `gpu` (domain · K + GPU in the domain)
    have one entry a rank.
    """

    run: WorkloadPlan
    active: int
    stage: Ints
    shard: Ints
    replica: Ints
    gpu: Ints

    @property
    def shards(self) -> int:
        """Shards of a stage."""
        return self.run.mapping.tp * self.run.mapping.cp

    def colour(self, stage: int, shard: int | None = None) -> str:
        """The hue of a stage, darker for later shards; pale enough for dark text."""
        hue = (215 - 200 * stage / max(1, self.run.mapping.pp - 1)) / 360
        shade = 0.5 if shard is None else shard / max(1, self.shards - 1)
        return "#" + "".join(
            f"{round(255 * c):02x}" for c in hls_to_rgb(hue, 0.84 - 0.2 * shade, 0.72)
        )

    def stages_of_domains(self) -> list[tuple[int, int]]:
        """The first and the last stage of which each domain holds a shard."""
        domain = self.gpu // self.active
        first = np.full(int(domain.max()) + 1, self.run.mapping.pp)
        last = np.zeros_like(first)
        np.minimum.at(first, domain, self.stage)
        np.maximum.at(last, domain, self.stage)
        return list(zip(first.tolist(), last.tolist(), strict=True))


def held_by(split: RankGrid, run: WorkloadPlan) -> Held:
    """Where the shards of a workload are."""
    ranks = rank_table(split)
    return Held(
        run=run,
        active=split.active,
        stage=ranks.pp,
        shard=ranks.cp * run.mapping.tp + ranks.tp,
        replica=ranks.dp,
        gpu=ranks.gpu,
    )


def plan_svg(instance: Instance, plan: Plan, description: str) -> str:
    """The drawing as one SVG element, named by a description."""
    last = list({part.slot: part for part in plan.parts}.values())  # as it stands in the end
    held = {part.slot: _held_in(instance, plan, part) for part in last}
    panels = list[DrawnPanel]()
    for part in last[:MOST_PARTS]:
        panels += _part_panels(instance, part, held[part.slot], alone=len(last) == 1)
    if (more := len(last) - MOST_PARTS) > 0:
        panels.append(_title(f"and {words.counted(more, 'more network')}"))
    domains = {part.slot: _domain_of(instance, part) for part in last}
    panels += [_hall(hall, domains, held) for hall in site_halls(instance, plan)]
    y, marks = float(GAP), list[str]()
    for panel in panels:
        marks.append(f'<g transform="translate(0 {y:g})">{"".join(panel.marks)}</g>')
        y += panel.height + GAP
    return (
        f'<svg class="plan" role="img" aria-labelledby="plan-says" viewBox="0 0 {WIDTH} {y:g}"'
        f' xmlns="http://www.w3.org/2000/svg"><title id="plan-says">{escape(description)}</title>'
        f"{''.join(marks)}</svg>"
    )


def _held_in(instance: Instance, plan: Plan, part: Part) -> list[Held]:
    """Where the shards of a part's workloads are."""
    _, splits = workload_splits(instance, plan, part=part.name)
    return [held_by(split, run) for split, run in splits]


def _domain_of(instance: Instance, part: Part) -> HbDomain:
    """The product that a part's HB domains are."""
    name = network_of(part).hb_domain.name
    return next(hb for hb in question_of(instance, part).network.hb_domains if hb.name == name)


def _part_panels(
    instance: Instance, part: Part, runs: Sequence[Held], *, alone: bool
) -> Iterator[DrawnPanel]:
    """A network from its highest tier down, one of its domains, and a replica of each workload."""
    network = network_of(part)
    if not alone:
        yield _title(f"{part.name}: {words.counted(network.gpus, 'GPU')}")
    if isinstance(network, Design):
        yield from _tiers(network)
    else:
        yield _title(words.counted(network.links, "direct link"))
    if runs:
        yield _domain(runs[0], network.hb_domain.count, _domain_of(instance, part))
    yield from map(_replica, runs[:MOST_PARTS])


def _title(text: str) -> DrawnPanel:
    return DrawnPanel(height=18, marks=(_text(0, 12, text, "title"),))


def _tiers(design: Design) -> Iterator[DrawnPanel]:
    """The switches of each tier and the links below them."""
    fabric = design.fabric
    planes = f" in {words.count(fabric.planes)} equal networks" if fabric.planes > 1 else ""
    for tier, kind in reversed(list(zip(fabric.tier, TIERS.get(fabric.tiers, ()), strict=True))):
        switch = tier.switch or fabric.switch.name
        boxes = min(tier.switches, MOST_BOXES)
        pitch = ROOM / boxes
        path = "".join(
            f"M{LEFT + n * pitch + pitch * 0.08:.0f} 4h{pitch * 0.84:.0f}v22h-{pitch * 0.84:.0f}z"
            for n in range(boxes)
            if boxes == tier.switches or n != boxes - 2
        )
        gap = LEFT + (boxes - 1.5) * pitch
        dots = "" if boxes == tier.switches else _text(gap, 15, "…", "gap", "middle")
        links = f"{words.counted(tier.links, 'link')}{planes}"
        yield DrawnPanel(
            height=44,
            marks=(
                _text(0, 12, words.counted(tier.switches, kind), "row"),
                _text(0, 27, switch, "note"),
                f'<path class="box" d="{path}"/>',
                dots,
                f'<path class="ribbon" d="M{LEFT + 20} 28H{WIDTH - 30}L{WIDTH - 12} 50H{LEFT}z"/>',
                _text(LEFT + ROOM / 2, 43, links, "note", "middle"),
            ),
        )


def _domain(held: Held, count: int, hb: HbDomain) -> DrawnPanel:
    """One HB domain GPU by GPU, and how many there are."""
    inside = held.gpu < held.active
    order = np.argsort(held.gpu[inside])
    stage, shard = held.stage[inside][order].tolist(), held.shard[inside][order].tolist()
    shown = min(len(stage), MOST_CELLS)
    across = min(shown, 24)
    side = min(44.0, ROOM / across)
    rows = -(-shown // across)
    height = min(side, 26.0)
    cells = [
        (LEFT + n % across * side, 4 + n // across * height, held.colour(stage[n], shard[n]))
        for n in range(shown)
    ]
    tag = [
        _text(x + side / 2, y + height / 2, str(shard[n]), "cell", "middle")
        for n, (x, y, _) in enumerate(cells)
        if side > 24
    ]
    more = f", {words.count(shown)} of them drawn" if shown < len(stage) else ""
    idle = hb.size - len(stage)
    resting = f", {words.count(idle)} idle" if idle else ""
    return DrawnPanel(
        height=max(30.0, rows * height + 6),
        marks=(
            _text(0, 12, words.counted(count, "HB domain"), "row"),
            _text(0, 27, f"{hb.name}: {words.counted(hb.size, 'GPU')}{more}{resting}", "note"),
            f'<rect class="hb" x="{LEFT - 3}" y="1" width="{across * side + 6:.1f}"'
            f' height="{rows * height + 6:.1f}" rx="5"/>',
            *_cells(cells, side - 2, height - 2),
            *tag,
        ),
    )


def _replica(held: Held) -> DrawnPanel:
    """One model replica: a column is a stage, a cell a shard; below, the domains that hold it."""
    mapping, first = held.run.mapping, held.replica == 0
    stage, domain = held.stage[first], held.gpu[first] // held.active
    count, every = mapping.pp, held.shards
    pitch = ROOM / count
    drawn = list(range(every)) if every <= MOST_SHARDS else [*range(MOST_SHARDS - 1), every - 1]
    cell = 17 if len(drawn) <= 8 else 13
    places = list(enumerate(drawn))
    cells = [
        (LEFT + s * pitch, 18 + place * cell, held.colour(s, shard))
        for s in range(count)
        for place, shard in places
    ]
    bottom = 18 + len(drawn) * cell
    holders = [_domains_text(domain[stage == s]) for s in range(count)]
    texts = list[str]()
    for name, group in groupby(range(count), holders.__getitem__):
        run = list(group)
        for text in (f"HB {name}", name):
            if len(text) * LETTER < len(run) * pitch:
                x = LEFT + (run[0] + len(run) / 2) * pitch
                texts.append(_text(x, bottom + 9, text, "note", "middle"))
                break
    texts += [
        _text(LEFT + (s + 0.5) * pitch, 9, f"stage {s}" if pitch > 52 else str(s), "note", "middle")
        for s in range(count)
        if pitch > 18 or s % 8 == 0
    ]
    if pitch > 2 * LETTER:
        texts += [
            _text(LEFT + 0.5 * pitch, 18 + (place + 0.5) * cell, str(shard), "cell", "middle")
            for place, shard in places
        ]
    titles = (
        f'<rect x="{LEFT + s * pitch:.1f}" y="18" width="{pitch:.1f}" height="{bottom - 18}"'
        f' fill="none" pointer-events="all"><title>stage {s} of {count}: HB {holders[s]}</title>'
        "</rect>"
        for s in range(count)
    )
    replica = f"one of {mapping.dp:,} replicas" if mapping.dp > 1 else "the only replica"
    degrees = (("CP", mapping.cp), ("TP", mapping.tp), ("EP", mapping.ep))
    split = ", ".join(f"{kind} {degree}" for kind, degree in degrees if degree > 1)
    notes = [held.run.name, words.counted(count, "stage") + (f", {split}" if split else "")]
    notes.append(words.counted(count * every, "GPU"))
    return DrawnPanel(
        height=max(bottom + 18.0, 76.0),
        marks=(
            _text(0, 24, replica, "row"),
            *(_text(0, 39 + 15 * line, text, "note") for line, text in enumerate(notes)),
            *_cells(cells, pitch - min(2, pitch / 8), cell - 2),
            *texts,
            *titles,
        ),
    )


def _domains_text(domains: Ints) -> str:
    first, last = int(domains.min()), int(domains.max())
    return f"{first:,}" if first == last else f"{first:,} to {last:,}"


def _hall(
    hall: SiteHall, domains: Mapping[str, HbDomain], held: Mapping[str, Sequence[Held]]
) -> DrawnPanel:
    """The floor of a site, rack by rack, coloured by the stages that each holds."""
    rows = max(block.first_row + block.rows for block in hall.blocks)
    longest = max(block.first_place + min(block.per_row, block.racks) for block in hall.blocks)
    lying = rows <= 3 or rows * 2 < longest  # a few rows lie one above the other
    along, across = (min(ROOM / longest, 34.0), 18.0) if lying else (9.0, min(ROOM / rows, 18.0))
    spans: dict[str, list[str]] = {}
    for block in hall.blocks:
        looks = _racks(block, domains.get(block.name), held.get(block.name, ()))
        for spot, colours in enumerate(looks):
            row, place = divmod(spot, block.per_row)
            row, place = row + block.first_row, place + block.first_place
            x, y = (place * along, row * across) if lying else (row * across, place * along)
            wide, high = (along - 2, across * 0.7) if lying else (across * 0.72, along - 1)
            if wide < MIN_SPLIT and len(colours) > 1:
                colours = (SEVERAL,)
            part = wide / len(colours)
            for number, colour in enumerate(colours):
                left = LEFT + x + number * part
                spans.setdefault(colour, []).append(
                    f"M{left:.1f} {4 + y:g}h{part:.1f}v{high:.3g}h-{part:.1f}z"
                )
    deep = rows * across if lying else longest * along
    racks = sum(block.racks for block in hall.blocks)
    site = "hall" if hall.site is None else f"hall of {hall.site}"
    size = f"{words.counted(racks, 'rack')} in {words.counted(rows, 'row')}"
    greys = {"box": "grey: switches", SEVERAL: "grey-blue: several stages"}
    notes = [size, *(text for look, text in greys.items() if look in spans)]
    return DrawnPanel(
        height=max(62.0, deep + 8),
        marks=(
            _text(0, 12, site, "row"),
            *(_text(0, 27 + 15 * line, text, "note") for line, text in enumerate(notes)),
            *_paths(spans),
        ),
    )


def _racks(
    block: HallBlock, hb: HbDomain | None, runs: Sequence[Held]
) -> Iterator[tuple[str, ...]]:
    """The colours or the class of each rack of a block, spot by spot."""
    looks = list[tuple[str, ...]]()
    if hb is not None and hb.racks is not None and runs:
        run = runs[0]
        stages = run.stages_of_domains()
        for rack in range(block.racks):
            start, end = int(rack / hb.racks), int((rack + 1) / hb.racks)
            here = {stage for pair in stages[start : max(start + 1, end)] for stage in pair}
            parts = sorted(here) if len(here) <= MOST_OF_RACK else []
            looks.append(tuple(map(run.colour, parts)) or (SEVERAL if here else EMPTY,))
    rest = iter(looks)
    for spot in range(block.racks):
        is_switches = block.is_core or (block.counted and spot in block.amid)
        yield ("box",) if is_switches else next(rest, (EMPTY,))


def _cells(cells: Iterable[tuple[float, float, str]], width: float, height: float) -> Iterator[str]:
    """Boxes of one size, those of one colour as one path."""
    box = f"h{width:.1f}v{height:.1f}h-{width:.1f}z"
    return _paths(grouped((colour, f"M{x:.1f} {y:.1f}{box}") for x, y, colour in cells))


def _paths(spans: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for look, span in spans.items():
        paint = f'fill="{look}"' if look.startswith("#") else f'class="{look}"'
        yield f'<path {paint} d="{"".join(span)}"/>'


def _text(x: float, y: float, text: str, look: str, anchor: str = "start") -> str:
    place = "" if anchor == "start" else f' text-anchor="{anchor}"'
    start = f'<text class="{look}" x="{x:.0f}" y="{y:.0f}"{place} dominant-baseline="central">'
    return f"{start}{escape(text)}</text>"
