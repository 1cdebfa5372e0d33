"""What a page shows besides the plan: the network drawn, the traffic on it, the network it is compared with."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass

from coopt.instance.schema import Instance
from coopt.network.family import Family
from coopt.network.plan_networks import any_to_any, built
from coopt.plan.schema import Cost, Design, Plan
from coopt.report.fabrics.excerpts import domain_drawing, plane_drawing, pod_drawing
from coopt.report.fabrics.painting import svg
from coopt.report.heat_map import bytes_figure, classes_figure
from coopt.report.page.captions import domain_caption, plane_caption, pod_caption
from coopt.report.pictures import picture
from coopt.report.tables import Figures
from coopt.report.traffic import classes_table, gpus_table, traffic_headline
from coopt.traffic.of_plan import demands
from coopt.traffic.summary import cells_of, summarised

MOST_CELLS = 128  # of a side, so that each is seen on half a page


@dataclass(frozen=True, kw_only=True)
class Picture:
    """An SVG element with its caption."""

    svg: str
    caption: str


@dataclass(frozen=True, kw_only=True)
class Map:
    """The traffic of a workload: a sentence, tables, and pictures (PNG in base64) of bytes and of classes."""

    name: str
    headline: str
    tables: tuple[Figures, ...]
    bytes_png: str
    classes_png: str


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Empty where one HB domain needs no network; no `baseline` where the catalog has none."""

    baseline: tuple[Design, Cost] | None
    pictures: tuple[Picture, ...]
    maps: tuple[Map, ...]


def evidence_of(instance: Instance, plan: Plan) -> Evidence:
    """What a plan that the verifier accepts builds and sends."""
    family, uplinks = built(instance, plan)
    return Evidence(
        baseline=any_to_any(instance, plan),
        pictures=tuple(_pictures(family, uplinks)) if family.tiers else (),
        maps=tuple(_maps(instance, plan)),
    )


def _pictures(family: Family, uplinks: int) -> Iterator[Picture]:
    drawn = [
        ("plane", plane_drawing(family, uplinks), plane_caption(family, uplinks)),
        ("domain", domain_drawing(family, uplinks), domain_caption(family)),
    ]
    if family.pods is not None:
        drawn.append(("pod", pod_drawing(family, uplinks), pod_caption(family, uplinks)))
    for name, drawing, caption in drawn:
        yield Picture(svg=svg(drawing, name, caption), caption=caption)


def _maps(instance: Instance, plan: Plan) -> Iterator[Map]:
    family, sent = demands(instance, plan)
    for demand, found in zip(sent, summarised(instance, family, sent).workloads, strict=True):
        if found.classes:
            cells = cells_of(demand, most_gpus=MOST_CELLS, most_cells=MOST_CELLS)
            yield Map(
                name=found.name,
                headline=traffic_headline(found),
                tables=(classes_table(found), gpus_table(found)),
                bytes_png=_encoded(picture(bytes_figure(cells), ".png")),
                classes_png=_encoded(picture(classes_figure(cells), ".png")),
            )


def _encoded(png: bytes) -> str:
    return b64encode(png).decode("ascii")
