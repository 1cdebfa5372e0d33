"""Write the symbols, equations and tables of docs/mathematics.md from the docstrings of
`formulations/`.

`--check` writes nothing and exits 1 when the page is not what it would be.
"""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyomo.environ as pyo

from docs.regions import filled, write_or_check
from formulations import choice, links, network, ring, routing
from formulations.choice_data import (
    ChoiceData,
    CoreLayer,
    Kind,
    LimitedUse,
    Product,
    ScenarioCosts,
)
from formulations.links_data import LinksData, on_orbits
from formulations.network import NetworkData
from formulations.ring import RingData, SiteLimit
from formulations.routing import RoutingData

PLACE = Path(__file__).parent / "mathematics.md"
ROUTES = {"routes": routing.ROUTES}
Formulations = dict[str, tuple[Callable[[pyo.ConcreteModel], None], ...]]
SUBJECTS: dict[str, tuple[Any, Formulations]] = {
    "SHARED": (network, {**network.FORMULATIONS, "front": network.FRONT}),
    "ROUTING": (routing, ROUTES),
    "PARTITION": (choice, {**choice.FORMULATIONS, "regret": choice.REGRET}),
    "SITES": (ring, ring.FORMULATIONS),
    "DIRECT": (links, links.FORMULATIONS),
}


def main() -> None:
    """Write or check the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="write nothing, exit 1 when the page is out of date"
    )
    write_or_check(PLACE, page(), check=parser.parse_args().check)


def page() -> str:
    """The whole page."""
    unit = units()
    values = {subject: region(module, named, unit) for subject, (module, named) in SUBJECTS.items()}
    values["FORMULATIONS"] = "\n".join(
        f"- `{name}`: {', '.join(label(function) for function in chosen)}"
        for name, chosen in network.FORMULATIONS.items()
    )
    return filled(PLACE.read_text("utf-8"), values)


def region(module: ModuleType, named: Formulations, unit: dict[str, str]) -> str:
    """One subject: what its module says of itself, its symbols and its equations."""
    sections = (section(function, named, unit) for function in equations(module))
    about, symbols = (inspect.getdoc(module) or "").split("\n\nSymbols:\n\n")
    introduction = markdown(about.partition("\n\n")[2])
    listed = inline(symbols.replace("\n  ", " "))
    return "\n\n".join([introduction, "### Symbols", listed, "### Equations", *sections])


def equations(module: ModuleType) -> list[Callable[..., None]]:
    """The functions that add an equation, in the order of their labels."""
    found = [
        f for name, f in vars(module).items() if name.startswith("add_") and inspect.isfunction(f)
    ]
    return sorted(
        found,
        key=lambda function: [(part[0], int(part[1:])) for part in label(function).split(", ")],
    )


def label(function: Callable[..., None]) -> str:
    """`N1`, or `M5, N5`: what a docstring begins with, in brackets."""
    found = re.match(r"\(([A-Z]\d+(?:, [A-Z]\d+)*)\) ", inspect.getdoc(function) or "")
    assert found, f"{function.__name__}: the docstring begins with no label"
    return found[1]


def section(function: Callable[..., None], named: Formulations, unit: dict[str, str]) -> str:
    """One equation: label, unit, formulations that use it, sentence, mathematics, and what its
    docstring adds.
    """
    text = (inspect.getdoc(function) or "").partition(") ")[2]
    users = (
        ", ".join(f"`{name}`" for name, chosen in named.items() if function in chosen)
        or "cuts, between solves"
    )
    first = label(function)
    return (
        f"**{first}** `{function.__name__}` [{unit[first.split(', ')[0]]}; {users}]."
        f" {markdown(text)}"
    )


def units() -> dict[str, str]:
    """The unit of every labelled equation, as its rows say."""
    examples = {
        "SHARED": _network(),
        "ROUTING": _flows(),
        "PARTITION": _islands(),
        "SITES": _sites(),
        "DIRECT": _links(),
    }
    models = [
        module.build(examples[subject], chosen)
        for subject, (module, named) in SUBJECTS.items()
        for chosen in named.values()
    ]
    found: dict[str, str] = {}
    for model in models:
        for part in model.component_objects((pyo.Objective, pyo.Constraint)):
            said = re.fullmatch(r"(.+?) \[(.+)\]", part.doc or "")
            assert said, f"{part.name}: needs a doc with label and unit"
            found |= dict.fromkeys(said[1].split(", "), said[2])
    return found


def markdown(text: str) -> str:
    """Text of a docstring as Markdown: displayed and inline mathematics, code, paragraphs on one
    line.
    """
    parts = []
    for block in re.split(r"\n\n+(?! )|\n(?=\.\. math::)", text):
        if block.startswith(".. math::"):
            parts.append("```math\n" + " ".join(block.removeprefix(".. math::").split()) + "\n```")
        else:
            parts.append(inline(" ".join(block.split())))
    return "\n\n".join(parts)


def inline(text: str) -> str:
    """Inline mathematics and code."""
    return re.sub(r"``([^`]+)``", r"`\1`", re.sub(r":math:`([^`]+)`", r"$`\1`$", text))


def _network() -> NetworkData:
    """A family with uplinks and one without, a column on each."""
    numbers: dict[str, Any] = {name: np.array([1.0, 1.0]) for name in ("fixed", "uplink", "spine")}
    whole = {
        "min_uplinks": (1, 0),
        "max_uplinks": (2, 0),
        "leaves": (2, 0),
        "radix": (4, 4),
        "context": (0, 1),
    }
    whole |= {"column_workload": (0, 0), "column_context": (0, 1), "need": (1, 0)}
    return NetworkData(
        workloads=1, contexts=2, **numbers, **{name: np.array(row) for name, row in whole.items()}
    )


def _flows() -> RoutingData:
    """One flow between two leaves with a core."""
    one = np.array([1])
    return RoutingData(
        src=one - 1, dst=one, flows=one, step=np.array([[1], [1]]), min_load=0, max_load=1
    )


def _islands() -> ChoiceData:
    """Two workloads with an option each, one product with a discount, and every coupling."""
    both = np.array([1.0, 1.0])
    discounted = Product(name="a", start=np.array([0.0, 2.0]), usd=np.array([2.0, 1.0]))
    return ChoiceData(
        workloads=2,
        workload=np.array([0, 1]),
        usd=both,
        opex=both,
        quantity=np.array([[1.0], [1.0]]),
        products=(discounted,),
        kinds=(Kind(name="hb", products=np.array([0]), max_products=1),),
        limits=(LimitedUse(name="gpus", key="gpus", use=both, cap=2.0, core=(1.0, 1.0)),),
        budget=10.0,
        cores=(
            CoreLayer(product=0, ports=4, up=both, opex=1.0),
            CoreLayer(product=0, ports=4, up=both, predecessor=0),
        ),
        scenarios=(
            ScenarioCosts(
                usd=both, opex=both, prices=(np.array([3.0, 1.0]),), core=(1.0, 1.0), min_value=0.0
            ),
        ),
    )


def _sites() -> RingData:
    """Two sites with an option each, one link and one limit."""
    one, both = np.array([1.0]), np.array([1.0, 1.0])
    return RingData(
        sites=2,
        shares=2,
        site=np.array([0, 1]),
        share=np.array([1, 1]),
        cost=both,
        need=np.array([[1], [1]]),
        channel=one,
        max_channels=np.array([2]),
        limits=(SiteLimit(name="power", use=both, channel=one, cap=9.0),),
    )


def _links() -> LinksData:
    """Two domains that send to each other."""
    demand = np.array([[[0.0, 1.0], [1.0, 0.0]]])
    return on_orbits(np.array([[0, 1]]), np.array([2, 2]), demand, np.array([[1.0]]))


if __name__ == "__main__":
    main()
