"""The rooms of the house import in one direction only; CONTRIBUTING.md shows the map."""

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import networkx as nx
import pytest

ROOT = Path(__file__).parents[1]
STAIRS = ("instance", "plan", "perf", "network", "traffic", "columns", "solving")
MAY_IMPORT: dict[str, set[str]] = {
    "instance": set(), "plan": {"instance"}, "perf": {"instance"}, "network": {"instance", "plan"},
    "traffic": {"instance", "plan", "perf", "network"}, "columns": {"instance", "plan", "perf", "network"},
    "solving": {"instance", "plan", "perf", "network", "traffic", "columns", "formulations"},
    "explain": {"instance", "plan", "perf", "network", "columns", "solving"}, "formulations": set(),
    "verifier": {"instance", "plan"}, "validation": {"instance", "plan", "perf", "columns"},
    "suite": {"instance", "plan", "network", "solving", "verifier"},
    "report": {"instance", "plan", "network", "traffic", "verifier", "perf", "validation", "suite"},
    "serve": {"instance", "plan", "network", "columns", "solving", "explain", "report", "verifier"},
    "cli": {*STAIRS, "explain", "formulations", "verifier", "validation", "report", "suite", "serve", "coopt"},
    "coopt": {*STAIRS, "explain", "formulations", "verifier", "report"},  # coopt/__init__.py, the public names
}  # fmt: skip
ONLY_THESE_PACKAGES = {"formulations": {"numpy", "pyomo"}, "verifier": {"networkx", "pydantic"}}
ONLY_IN_ROOMS = {
    "pyomo": {"formulations", "solving", "cli"}, "highspy": {"solving", "cli"}, "matplotlib": {"report", "plan"},
    "jinja2": {"report"}, "pyarrow": {"suite"}, "starlette": {"serve"}, "tomlkit": {"serve"}, "uvicorn": {"serve"},
}  # fmt: skip
FREE_FOR_ALL = {"_interpreter", "_version"}
DOORS = {"__main__": "cli"}  # a file outside the rooms that belongs to one


class Source(NamedTuple):
    """What a file of code says of itself."""

    imports: list[tuple[int, str]]
    """Line and dotted name of everything imported, in functions and under TYPE_CHECKING as well."""
    names: list[str]
    """Dotted name of whatever is taken out of a module, which may be one too."""
    classes: list[str]
    outer: list[str]
    """Functions and classes that stand in no other."""


@cache
def sources(root: Path) -> dict[Path, Source]:
    """Every file of code below `root`, by its path there."""
    files = sorted([*root.glob("coopt/**/*.py"), *root.glob("formulations/**/*.py")])
    return {(path := file.relative_to(root)): _read(file, path.parent.parts) for file in files}


def _read(file: Path, package: tuple[str, ...]) -> Source:
    text = file.read_text("utf-8")
    tree = ast.parse(text)
    source = Source([], [], [], [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)])
    for node in ast.walk(tree) if "import_module" in text or "__import__" in text else _statements(tree):
        source.imports.extend(_imports(node, package))
        if isinstance(node, ast.ClassDef):
            source.classes.append(node.name)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            source.names.extend(f"{node.module}.{alias.name}" for alias in node.names)
    return source


def _statements(block: ast.AST) -> Iterator[ast.AST]:
    """Every statement below, without a look into expressions, where most nodes are."""
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        for inner in getattr(block, name, ()):
            yield inner
            yield from _statements(inner)


def complaints(root: Path) -> list[str]:
    """Every import below `root` that goes where its room may not go."""
    found = []
    for path, source in sources(root).items():
        room = _room(".".join(path.with_suffix("").parts))
        room = DOORS.get(room, room)
        if room in FREE_FOR_ALL:
            continue
        if room not in MAY_IMPORT:
            found.append(f"{path}: room {room!r} is not on the list")
            continue
        for line, target in source.imports:
            why = _refusal(room, target, root)
            if why:
                found.append(f"{path}:{line}: {why}")
    return found


def _refusal(room: str, target: str, root: Path) -> str | None:
    top = target.split(".")[0]
    if top in ("coopt", "formulations"):
        other = _room(target if _is_room(target, root) else top)
        if other == room or other in FREE_FOR_ALL or other in MAY_IMPORT[room]:
            return None
        return f"{room} may not import {other}"
    if top in sys.stdlib_module_names:
        return None
    if room in ONLY_THESE_PACKAGES and top not in ONLY_THESE_PACKAGES[room]:
        return f"{room} may not import {top}"
    if top in ONLY_IN_ROOMS and room not in ONLY_IN_ROOMS[top]:
        return f"{room} may not import {top}"
    return None


def _room(module: str) -> str:
    """`coopt.perf.layer` lies in perf, `formulations.ring` in formulations, `coopt` itself in coopt."""
    parts = module.removesuffix(".__init__").split(".")
    return parts[1] if parts[0] == "coopt" and len(parts) > 1 else parts[0]


def _is_room(target: str, root: Path) -> bool:
    """Whether `coopt.x` is a module; `from coopt import solve` takes a public name instead."""
    parts = target.split(".")
    if len(parts) < 2 or parts[1] in MAY_IMPORT or parts[1] in FREE_FOR_ALL:
        return True
    place = root.joinpath(*parts[:2])
    return len(parts) > 2 or place.is_dir() or place.with_suffix(".py").is_file()


def _imports(node: ast.AST, package: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    """Line and dotted name of what a statement or call imports."""
    if isinstance(node, ast.Import):
        yield from ((node.lineno, alias.name) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = list(package[: len(package) - node.level + 1]) if node.level else []
        origin = ".".join([*base, node.module] if node.module else base)
        if origin == "coopt":
            yield from ((node.lineno, f"coopt.{alias.name}") for alias in node.names)
        else:
            yield node.lineno, origin
    elif isinstance(node, ast.Call) and _called(node) in ("import_module", "__import__"):
        name = node.args[0] if node.args else None
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            yield node.lineno, name.value


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def circles(root: Path) -> list[list[str]]:
    """Modules that import each other in a loop, in functions and under TYPE_CHECKING as well."""
    files = {".".join(path.with_suffix("").parts): source for path, source in sources(root).items()}
    arrows = nx.DiGraph()
    for module, source in files.items():
        taken = {target for _, target in source.imports} | {*source.names}
        arrows.add_edges_from((module, target) for target in taken & {*files})
    return [sorted(found) for found in nx.strongly_connected_components(arrows) if len(found) > 1]


def test_rooms_import_downwards_only_and_no_modules_in_a_circle() -> None:
    assert complaints(ROOT) == []
    assert circles(ROOT) == []


def test_a_circle_is_noticed(tmp_path: Path) -> None:
    asked = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from coopt.plan.front import Front"
    plan = {"front": "def shown():\n    from coopt.plan import plots", "plots": asked}
    plan["schema"] = "from coopt.plan.front import Front"
    house = _house(tmp_path, **{f"coopt__plan__{name}": text for name, text in plan.items()})
    assert circles(house) == [["coopt.plan.front", "coopt.plan.plots"]]


def test_the_stairs_go_one_way() -> None:
    for step, room in enumerate(STAIRS):
        assert not MAY_IMPORT[room] & set(STAIRS[step:])
    assert all("cli" not in allowed for allowed in MAY_IMPORT.values())


def test_folders_of_the_verifier_go_one_way() -> None:
    stairs = ("training", "checks", "parts", "couplings", "simulation", "bounds", "proofs", "verifier")
    upwards = [
        f"{path}: {target}"
        for path, source in sources(ROOT).items()
        if path.is_relative_to("coopt/verifier")
        for _, target in source.imports
        if target.startswith("coopt.verifier.") and stairs.index(target.split(".")[-2]) > stairs.index(path.parent.name)
    ]
    assert upwards == []


def _house(root: Path, **files: str) -> Path:
    for room in MAY_IMPORT:
        place = root if room == "coopt" else root / room if room == "formulations" else root / "coopt" / room
        place.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        file = root.joinpath(*name.split("__")).with_suffix(".py")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    return root


@pytest.mark.parametrize(
    ("file", "text", "why"),
    [
        ("coopt__instance__x", "from coopt.perf.layer import gemm", "instance may not import perf"),
        ("coopt__perf__x", "from coopt.plan.schema import Plan", "perf may not import plan"),
        ("coopt__perf__x", "from coopt import network", "perf may not import network"),
        ("coopt__perf__x", "from ..network import tiers", "perf may not import network"),
        ("coopt__perf__deep__x", "from ...network import tiers", "perf may not import network"),
        ("coopt__columns__x", "def f():\n    import coopt.solving.answer", "columns may not import solving"),
        ("coopt__columns__x", "import pyomo.environ as pyo", "columns may not import pyomo"),
        ("coopt__verifier__x", "from coopt.perf import model", "verifier may not import perf"),
        ("coopt__verifier__x", "import numpy", "verifier may not import numpy"),
        ("coopt__report__x", "__import__('coopt.cli.main')", "report may not import cli"),
        ("coopt__report__y", "import importlib\nimportlib.import_module('coopt.cli.main')", "may not import cli"),
        ("coopt__solving__x", "from coopt import solve", "solving may not import coopt"),
        ("formulations__x", "from coopt.instance.schema import Instance", "formulations may not import instance"),
        ("formulations__x", "import pydantic", "formulations may not import pydantic"),
        ("coopt__attic__x", "", "room 'attic' is not on the list"),
    ],
)
def test_an_import_upstairs_is_noticed(tmp_path: Path, file: str, text: str, why: str) -> None:
    found = complaints(_house(tmp_path, **{file: text}))
    assert len(found) == 1
    assert found[0].endswith(why)


def test_imports_downstairs_pass(tmp_path: Path) -> None:
    house = _house(
        tmp_path,
        coopt__cli__main="import click\nfrom coopt import solve\nfrom coopt.solving.answer import solve\nimport coopt",
        coopt__solving__solve="import formulations.uplinks\nfrom coopt.columns.table import T\nimport pyomo",
        coopt__columns__table="from . import gate\nfrom .gate import fits\nfrom ..perf import model\nimport numpy",
        coopt__verifier__check="import networkx\nfrom coopt.plan.schema import Plan\nfrom coopt._version import v",
        formulations__uplinks="from __future__ import annotations\nimport math\nimport numpy\nfrom . import sites",
    )
    assert complaints(house) == []


def test_no_module_shares_its_name_with_a_function_or_class_in_it() -> None:
    shared = [str(path) for path, source in sources(ROOT).items() for name in source.outer if name == path.stem]
    assert shared == ["coopt/cli/main.py"]  # the entry point of a click program goes by this name


def test_a_class_has_a_name_of_its_own() -> None:
    """One meaning for a word; those of a module alone begin with an underscore."""
    homes: dict[str, list[str]] = {}
    for path, source in sources(ROOT).items():
        for name in source.classes:
            if not name.startswith("_"):
                homes.setdefault(name, []).append(str(path))
    assert not {name: files for name, files in homes.items() if len(files) > 1}
