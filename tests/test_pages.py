"""What README.md, docs/days.md, docs/network.md and docs/measurements.md show is there and is so today."""

import re
import runpy
import tomllib
from pathlib import Path
from xml.etree.ElementTree import parse

import pytest

import coopt
from coopt.cli.main import main
from coopt.instance.schema import Instance
from coopt.validation.comparison import comparison_of
from coopt.validation.published import COLUMNS, COUNTS, read_measurements
from tests.conftest import question

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
TEXT = (ROOT / "README.md").read_text("utf-8")


def test_links_lead_to_files_commands_are_listed_and_the_citation_is_of_this_version() -> None:
    for path in re.findall(r"\]\((?!https?:)([^)#]+)\)", TEXT):
        assert (ROOT / path).exists(), path
    listed = set(re.findall(r"`(?:coopt )?([a-z-]+)`", TEXT[TEXT.index("## Commands") :]))
    assert listed >= set(main.list_commands(None))  # type: ignore[arg-type]
    assert f"\nversion: {coopt.__version__}\n" in (ROOT / "CITATION.cff").read_text("utf-8")


def test_the_readme_is_short_and_leads_with_an_answer() -> None:
    assert len(TEXT.split()) <= 700
    assert TEXT.index("$ coopt solve") < TEXT.index("![")
    start = TEXT[: TEXT.index("## What it answers")]
    for target in ("demo", "test"):
        assert f"make {target}" in start
        assert f"\n{target}: " in (ROOT / "Makefile").read_text("utf-8")


def test_the_picture_shows_the_fleet_that_is_solved() -> None:
    drawn = (ROOT / "docs" / "fleet.svg").read_text("utf-8")
    for workload in coopt.load(ROOT / "instances" / "fleet-3-phases-2-sites.toml").workload:
        assert f">{workload.name}" in drawn


ROOT = Path(__file__).parents[1]
DAYS = (DOCS / "days.md").read_text("utf-8")
DAYS_ASKED = runpy.run_path(str(ROOT / "benchmarks" / "days.py"))


def test_the_cheapest_domains_for_65_days_and_their_spares_are_those_of_the_page() -> None:
    assert DAYS_ASKED["of_domain"]("hgx-h100-8") in DAYS.splitlines()


def test_the_days_at_three_to_one_are_those_of_the_page() -> None:
    assert DAYS_ASKED["of_ratio"](3.0) in DAYS


DRAW = runpy.run_path(str(DOCS / "draw.py"))
DRAWINGS = dict(DRAW["drawings"]())


@pytest.mark.parametrize("name", DRAWINGS)
def test_a_picture_shows_its_graph(name: str) -> None:
    assert DRAW["current"](name, DRAWINGS[name]), "`make docs` draws it"
    assert parse(DOCS / "pictures" / f"{name}.svg").getroot().tag.endswith("svg")


def test_the_page_shows_every_picture_and_no_other() -> None:
    """They say nothing of when or where they were drawn."""
    shown = re.findall(r"!\[[^]]+\]\(pictures/([\w-]+)\.svg\)", (DOCS / "network.md").read_text("utf-8"))
    files = {file.stem: file.read_text("utf-8") for file in (DOCS / "pictures").iterdir()}
    assert sorted(shown) == sorted(DRAWINGS) == sorted(files)
    assert not [name for name, text in files.items() if "<dc:date>" in text or "Matplotlib v" in text]


@pytest.mark.parametrize("name", ["clos-3", "dragonfly"])
def test_a_picture_is_drawn_the_same_each_time(name: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from docs.paint import fingerprint, paint

    files = [tmp_path / "one.svg", tmp_path / "two.svg"]
    for file in files:
        paint(DRAWINGS[name], file)
    assert files[0].read_bytes() == files[1].read_bytes()
    assert fingerprint(DRAWINGS[name]) in files[0].read_text("utf-8")


MEASUREMENTS = (DOCS / "measurements.md").read_text("utf-8")
BLOCKS = [
    re.sub(r"^    ", "", block, flags=re.MULTILINE) for block in re.findall(r"\n\n((?:    .*\n|\n)+)", MEASUREMENTS)
]


def block(start: str) -> str:
    (found,) = [text for text in BLOCKS if text.strip().startswith(start)]
    return found


def test_every_column_and_count_is_described() -> None:
    assert all(f"`{name}`" in MEASUREMENTS for name in (*COLUMNS, *COUNTS))


def test_the_small_file_is_read_and_predicted(tmp_path: Path) -> None:
    file = tmp_path / "runs.csv"
    file.write_text(block("id,"), "utf-8")
    found = comparison_of(read_measurements(file))
    assert found.evaluated == 1
    assert any("llama3-70b" in text for text in found.rows[0].assumptions)


def test_fitted_values_go_into_an_instance() -> None:
    shown = tomllib.loads(block("[cluster]"))
    table = question(cluster=shown["cluster"] | {"gpus": 64})
    table["workload"][0]["options"] = {"software": tomllib.loads(block("[workload"))["workload"]["options"]["software"]}
    instance = Instance.model_validate(table)
    assert instance.cluster.gpu.error("bf16") == 0.05
    assert instance.workload[0].options.software.overhead == 1.07
    assert coopt.solve(instance).design is not None
