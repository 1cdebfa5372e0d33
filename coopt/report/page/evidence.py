"""What a page shows besides the plan: bars, the network drawn, the traffic on it, the network it is
compared with.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from itertools import accumulate
from typing import NamedTuple

from coopt.instance.schema import Instance
from coopt.instance.texts import that_hold
from coopt.network.cabling import place_name, row_name
from coopt.network.family import Family, levels
from coopt.network.halls import CoreHall, HallBlock, SiteHall, site_halls
from coopt.network.plan_networks import family_of_plan
from coopt.plan.parts import WorkloadPlan
from coopt.plan.schema import Plan
from coopt.report import words
from coopt.report.facts import COMPONENTS, side_by_side
from coopt.report.fronts.files import browser_style
from coopt.report.network_drawings import (
    Drawing,
    Shape,
    domain_drawing,
    excerpt,
    plane_drawing,
    pod_drawing,
    rack_row,
    row_names,
)
from coopt.report.network_pictures import svg
from coopt.report.pictures import narrow_pngs
from coopt.report.plan import decision
from coopt.report.plan_drawing import plan_svg
from coopt.report.timeline import COLOURS, OTHER, timeline_svg
from coopt.report.traffic import classes_table, gpus_table, traffic_headline
from coopt.report.words import FigureTable
from coopt.traffic.of_plan import demands
from coopt.traffic.summary import cells_of, traffic_figures

FABRICS = {
    "rail-only": (
        "The NICs in the same place of all HB domains make a rail. Rails are separate networks,"
        " even where they share a switch: traffic to another rail first moves, inside its HB"
        " domain, to a GPU on that rail."
    ),
    "rail-optimized": (
        "The NICs in the same place of all HB domains make a rail. A leaf serves one rail or"
        " several (two switches on top of a rack, for example, take half of the rails each, then"
        " also called a Clos); if there are several leaves, switches above join them, so that any"
        " GPU reaches any other."
    ),
    "clos": (
        "A leaf with enough ports serves all NICs of one HB domain or more; if there are several"
        " leaves, switches above join them, so that any GPU reaches any other."
    ),
}
ABOVE = {1: ("switch",), 2: ("leaf", "spine"), 3: ("leaf", "aggregation switch", "core")}
AMID = (
    "Switches stand in or beside the racks with dark edges, midway between the racks that they"
    " connect."
)
UNCOUNTED = "an unknown number of racks"
OWN_RACKS = (
    "Switches stand in the racks with dark edges, midway between the racks that they connect."
)
WHOLE = (
    "Each colour is a pipeline stage, each shade a shard of it. Equal parts are drawn once, with"
    " their number."
)
MOST_DRAWINGS = 12  # networks that are drawn; the others are told in tables
MOST_CELLS = 128  # of a side, so that each is seen on half a page


class Segment(NamedTuple):
    """A piece of a bar: where it starts and how long it is, in percent."""

    name: str
    colour: str
    start: float
    share: float


class Bar(NamedTuple):
    """A bar, and the same in words."""

    says: str
    segments: tuple[Segment, ...]


def time_bar(workload: WorkloadPlan) -> Bar:
    """One iteration by components, in the order of the table."""
    spent = {name: spent_s for name, spent_s in workload.breakdown_s.items() if spent_s}
    shares = [100.0 * spent_s / workload.iteration_time_s for spent_s in spent.values()]
    segments = [
        Segment(COMPONENTS.get(name, name), COLOURS.get(name, OTHER), start, share)
        for name, share, start in zip(spent, shares, accumulate(shares, initial=0.0), strict=False)
    ]
    # Who cannot see the bar hears the three largest parts: all of them would be no sentence.
    text = ", ".join(
        f"{segment.name} {words.percent(segment.share / 100)}"
        for segment in sorted(segments, key=lambda segment: -segment.share)[:3]
    )
    took = words.seconds(workload.iteration_time_s)
    return Bar(f"An iteration takes {took}; its largest parts: {text}.", tuple(segments))


def memory_bar(workload: WorkloadPlan) -> Bar:
    """What the fullest GPU holds of what it may hold."""
    held_gib, limit_gib = workload.memory_gib, workload.memory_limit_gib
    free = f"{limit_gib - held_gib:.1f} GiB ({words.percent(1.0 - held_gib / limit_gib)}) are free"
    return Bar(
        f"The fullest GPU holds {held_gib:.1f} of {limit_gib:.1f} usable GiB; {free}.",
        (Segment("in use", COLOURS["compute"], 0.0, 100.0 * held_gib / limit_gib),),
    )


def plane_caption(family: Family, uplinks: int) -> str:
    """The HB domains and the switches of one plane, level by level."""
    level = "Rail" if family.rails_apart else "Plane" if family.nic_planes > 1 else "Network"
    several = side_by_side(family.fabric, family.all_planes, family.nic_planes).removeprefix(", ")
    start = f"one of {several}, all equal" if several else "the whole network"
    nics = words.counted(
        family.nics_of_domain // family.planes,
        "NIC" if family.nic_planes == family.ports_in_plane == 1 else "port",
    )
    tiers, slices = levels(family, uplinks), family.slices(uplinks)
    *lower_texts, top_text = (
        words.counted(max(1, tier.switches // family.all_planes), name)
        for tier, name in zip(tiers, ABOVE[family.tiers], strict=True)
    )
    parts = ", ".join(
        [f"{words.counted(family.domains, 'HB domain')} of {nics} each", *lower_texts]
    )
    shared = family.tiers == 1 and family.chassis < family.all_planes
    sentences = {
        f"{level} level: {start}, with {parts} and {top_text}.": True,
        f"Up to {family.planes_together} {level.lower()}s share one switch, each on ports of its"
        " own.": shared,
        f"A leaf has {tiers[0].down_ports} ports down and {uplinks} up.": family.tiers > 1,
        f"The switches above the leaves form {slices} equal slices; one is drawn.": slices > 1,
    }
    return " ".join(that_hold(sentences))


def domain_caption(family: Family) -> str:
    """One HB domain with its GPUs and the NICs of each."""
    size = words.counted(family.hb.size, "GPU")
    training = family.training_in(0)
    idle = f" ({family.hb.size - training} idle)" if family.hb.size > training else ""
    nics = words.counted(family.bought_per_gpu, "NIC")
    shared = family.gpus_per_nic > 1
    gbit_s = family.nic.gbit_s * family.ports_in_plane
    nic_text = f"{words.count(family.gpus_per_nic)} share a NIC" if shared else f"each has {nics}"
    return (
        f"HB domain level: the first of {words.counted(family.domains, 'HB domain')}. Its"
        f" {size}{idle} reach each other at {family.hb.gbyte_s:g} GB/s; {nic_text} of"
        f" {gbit_s:g} Gbit/s. GPUs of one colour have the same place"
        " in their HB domains."
    )


def pod_caption(family: Family, uplinks: int) -> str:
    """One pod of three tiers."""
    assert family.pods is not None
    return (
        f"Pod level: the first of {words.counted(family.pods.count, 'pod')}, with"
        f" {words.counted(family.pods.leaves, 'leaf')} and"
        f" {words.counted(family.slices(uplinks), 'aggregation switch')}, one in each slice."
        f" Every leaf has {words.counted(family.pods.each, 'link')} to each aggregation switch."
    )


PAPER = (
    ":root{--ink:#1b2430;--soft:#4c5866;--line:#d9dee5;--wash:#f4f6f9;--card:#fff;--accent:#174f93}"
)
"""Light colours, for a picture that is on no page."""


@dataclass(frozen=True, kw_only=True)
class Picture:
    """An SVG element with its caption, and what it shows; a notebook displays it by itself."""

    name: str
    svg: str
    caption: str

    @property
    def image(self) -> str:
        """The element with its own colours, as a file holds it."""
        return self.svg.replace("><title", f"><style>{PAPER}{browser_style()}</style><title", 1)

    def _repr_html_(self) -> str:
        content = b64encode(self.image.encode()).decode("ascii")
        return (
            f'<figure style="margin:0"><img alt="{escape(self.caption, quote=True)}"'
            f' style="width:100%;background:#fff" src="data:image/svg+xml;base64,{content}">'
            f"<figcaption>{escape(self.caption)}</figcaption></figure>"
        )


class TrafficMap(NamedTuple):
    """The traffic of a workload: a sentence, tables, and pictures (PNG in base64) of bytes and of
    classes.
    """

    name: str
    headline: str
    tables: tuple[FigureTable, ...]
    bytes_png: str
    classes_png: str


def whole_plan(instance: Instance, plan: Plan) -> Picture:
    """The plan as one drawing."""
    says = decision(instance, plan) or plan.status
    return Picture(name="plan", svg=plan_svg(instance, plan, says), caption=WHOLE)


def timelines(instance: Instance, plan: Plan) -> list[str]:
    """An iteration of each workload, stage by stage."""
    batches = {workload.name: workload.global_batch for workload in instance.workload}
    return [
        timeline_svg(
            run,
            int(batches[run.name]) // (run.mapping.dp * run.mapping.micro_batch),
            f"timeline-{number}",
            time_bar(run).says,
        )
        for number, run in enumerate(plan.runs)
    ]


def planes(instance: Instance, plan: Plan) -> Iterator[Picture]:
    """A plane of each network that has switches."""
    for number, part in enumerate(plan.parts[:MOST_DRAWINGS]):
        if part.design is not None and part.design.fabric.tiers:
            family, uplinks = family_of_plan(instance, plan, "a drawing", part.name)
            whose = f"{part.name}. " * (len(plan.parts) > 1)
            drawing, caption = plane_drawing(family, uplinks), plane_caption(family, uplinks)
            yield _picture(part.name, drawing, f"{whose}{caption}", f"plane-{number}")


def details(instance: Instance, plan: Plan) -> Iterator[Picture]:
    """A domain and a pod of the only network, and the halls of all sites."""
    if plan.design is not None and plan.design.fabric.tiers:
        family, uplinks = family_of_plan(instance, plan, "a drawing")
        yield _picture("domain", domain_drawing(family, uplinks), domain_caption(family))
        if family.pods is not None:
            yield _picture("pod", pod_drawing(family, uplinks), pod_caption(family, uplinks))
    for number, hall in enumerate(site_halls(instance, plan)):
        yield _picture(f"hall-{number}", site_hall_drawing(hall), site_hall_caption(hall))


def _picture(name: str, drawing: Drawing, caption: str, place: str | None = None) -> Picture:
    """A drawing with its caption; `place` is its id on the page, where that is not its name."""
    return Picture(name=name, svg=svg(drawing, place or name, caption), caption=caption)


def traffic_maps(instance: Instance, plan: Plan) -> Iterator[TrafficMap]:
    """Who talks to whom in the only network, workload by workload."""
    family, demands_of_kinds = demands(instance, plan)
    for demand, traffic in zip(
        demands_of_kinds, traffic_figures(instance, family, demands_of_kinds).workloads, strict=True
    ):
        if traffic.classes:
            cells = cells_of(demand, most_gpus=MOST_CELLS, most_cells=MOST_CELLS)
            yield TrafficMap(
                traffic.name,
                traffic_headline(traffic),
                (classes_table(traffic), gpus_table(traffic)),
                *narrow_pngs(cells),
            )


def site_hall_drawing(hall: SiteHall) -> Drawing:
    """The first row of each island and of the core, of many islands the first ones and the last."""
    rows_shown = excerpt(len(hall.blocks))
    blocks = [
        block for number, block in enumerate(hall.blocks) if number in rows_shown or block.is_core
    ]
    parts = list[Shape]()
    longest = max(min(block.per_row, block.racks) for block in blocks)
    for line, block in enumerate(blocks):
        first_rack = block.first_row * hall.width + block.first_place
        racks = range(first_rack, first_rack + min(block.per_row, block.racks))
        parts += rack_row(
            line, racks, {first_rack + spot for spot in block.amid}, longest, block.first_place
        )
    return Drawing(
        title="hall",
        parts=tuple(parts),
        frames=(),
        lines=(),
        legend={},
        rows=row_names("core" if block.is_core else _first_row(block) for block in blocks),
    )


def _first_row(block: HallBlock) -> str:
    """`R02`, or `R02-05`: the row where a block begins, with its place where that is not the
    first.
    """
    place = f"-{place_name(block.first_place)}" if block.first_place else ""
    return f"{row_name(block.first_row)}{place}"


def site_hall_caption(hall: SiteHall) -> str:
    """Who stands in which rows, and what racks draw; of a core its switches and its longest
    cables.
    """
    site = "" if hall.site is None else f" at {hall.site}"
    when_text = " in the last phase" if hall.grows else ""
    blocks = words.both(f"{block.name} from {_first_row(block)}" for block in hall.blocks)
    racks = words.counted(sum(block.racks for block in hall.blocks), "rack")
    domains_w = max(block.rack_w for block in hall.blocks)
    switches_w = max(block.switch_rack_w for block in hall.blocks)
    of_switches = f", a rack of switches up to {words.power(switches_w)}" if switches_w else ""
    own = [block for block in hall.blocks if not block.is_core]
    sentences = [
        f"The hall{site}{when_text} has {racks}: {blocks}. The drawing shows first rows only. A"
        f" rack of HB domains draws up to {words.power(domains_w)}{of_switches}."
    ]
    if len(own) > 1:
        sentences.append("Cabling lists count the rows of each network from its own R01.")
    if isinstance(hall, CoreHall):
        core = hall.coupling.core
        boxes, longest = words.times(core.switches, core.switch.name), max(hall.cables)
        filled = words.counted(hall.switch_racks, "rack") if hall.switch_racks else UNCOUNTED
        sentences.append(
            f"The core's {boxes} fill {filled}, and cables into it are up to {longest:,} m long."
        )
    return " ".join(
        [*sentences, OWN_RACKS if all(block.counted for block in hall.blocks) else AMID]
    )
