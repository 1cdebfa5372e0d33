"""Reference pages are what their generators write, and leave nothing out."""

import re
import runpy
import tomllib
from typing import Any

import pytest
from packaging.requirements import Requirement

from coopt.cli.main import main
from coopt.instance.catalog import entries
from coopt.instance.schema import Instance
from coopt.plan.json_schema import CATALOG_NAMES, instance_schema
from tests.conftest import question
from tests.docs.shown import ROOT

DOCS = ROOT / "docs"
KEYS = (DOCS / "reference" / "instance.md").read_text("utf-8")
COMMANDS = (DOCS / "reference" / "cli.md").read_text("utf-8")
SCHEMA = instance_schema()
TABLES = [SCHEMA, *SCHEMA["$defs"].values()]
DESIGN_TABLES = ("ByHbDomain", "Hall", "Published", "TierForm", "WorkRates")
DESIGN_KEYS = (DOCS / "designs.md").read_text("utf-8").partition("\n## Keys\n")[2].partition("\n## ")[0]
WITH_UNITS = r"(?:_s|_days|_ms|_m|_w|_mw|_usd|_gb|^usd|^w|^usd_per_\w+|^w_per_\w+)$"


@pytest.mark.parametrize(("maker", "text"), [("keys", KEYS), ("commands", COMMANDS)])
def test_a_page_is_up_to_date(maker: str, text: str) -> None:
    assert runpy.run_path(str(DOCS / f"{maker}.py"))["page"]() == text, "`make docs` writes it"


def test_editors_are_offered_the_names_of_the_catalog() -> None:
    options = SCHEMA["$defs"]["Cluster"]["properties"]["gpu"]["anyOf"]
    assert {"title": CATALOG_NAMES, "enum": list(entries("gpu"))} in options
    assert {"type": "string"} in options  # names of one's own catalog files


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table["title"])
def test_every_key_has_a_meaning(table: dict[str, Any]) -> None:
    for key, part in table["properties"].items():
        assert part["description"]
        if table["title"] in DESIGN_TABLES:
            assert re.search(rf"`{key}`|\b{key} = ", DESIGN_KEYS), key
            continue
        rows = re.findall(rf"^- (?:\*\*)?`{key}`(?:\*\*)? \((.+?)\): (.+)$", KEYS, re.MULTILINE)
        assert rows, key
        assert all(cell.strip() for row in rows for cell in row)


def test_a_range_is_named_where_a_key_takes_one() -> None:
    taking = {key for table in TABLES for key, part in table["properties"].items() if "$defs/Range" in str(part)}
    assert {"gpus", "global_batch"} <= taking
    assert set(re.findall(r"^- (?:\*\*)?`(\w+)`(?:\*\*)? \([^;)]*\brange[;)]", KEYS, re.MULTILINE)) == taking
    shown, listed = re.findall(r"`(\{ least = [^`]*)`[a-z\s]+`(\[.*?\])`", KEYS)[0]
    table = question()
    table["cluster"]["gpus"] = tomllib.loads(f"x = {shown}")["x"]
    assert Instance.model_validate(table).cluster.gpus == tuple(tomllib.loads(f"x = {listed}")["x"])


def test_numbers_with_a_unit_in_their_name_have_one() -> None:
    rows = re.findall(r"^- (?:\*\*)?`(\w+)`(?:\*\*)? \((.+?)\): ", KEYS, re.MULTILINE)
    asked = [(key, about) for key, about in rows if re.search(WITH_UNITS, key)]
    assert len(asked) > 20
    assert all(re.search("; (?!default)", about) for _, about in asked), asked


def test_every_command_and_option_is_there() -> None:
    for name in main.list_commands(None):  # type: ignore[arg-type]
        command = main.get_command(None, name)  # type: ignore[arg-type]
        assert command is not None
        for inner, one in getattr(command, "commands", {"": command}).items():
            assert f"## {f'coopt {name} {inner}'.rstrip()}\n" in COMMANDS
            for option in one.params:
                assert option.param_type_name == "argument" or option.opts[-1] in COMMANDS


def test_the_lock_holds_a_version_of_every_dependency_within_its_bounds() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    asked = [Requirement(text) for group in groups for text in group]
    lines = [Requirement(line) for line in (ROOT / "requirements.lock").read_text("utf-8").splitlines()]
    for one in (one for one in asked if one.name != "coopt"):
        locked = [str(line.specifier).removeprefix("==") for line in lines if line.name == one.name]
        assert locked, one.name
        assert all(one.specifier.contains(version) for version in locked), (one, locked)
