"""A front reads well at every width, and its files hold what it says."""

import csv
import io
import json
import re
from pathlib import Path

import pytest
from rich.text import Text

import coopt
from coopt.instance.schema import Instance
from coopt.instance.texts import InstanceError
from coopt.plan.front import Front
from coopt.report.csv_files import front_csv
from coopt.report.fronts.files import (
    CHART,
    NAMES,
    band_of,
    browser_script,
    check_packages,
    draw_front,
    front_chart,
    write_front,
)
from coopt.report.fronts.text import answer_to, columns, front_headline, front_notes, front_report, time_label
from coopt.report.words import rendered
from coopt.suite.table import COLUMNS
from tests.conftest import ask
from tests.report.test_report_layout import Terminal

INSTANCES = Path(__file__).parents[2] / "instances"
HOSTILE = "</script><img src=x onerror=alert(1)>"


def rail_only_study() -> Instance:
    """The question of the rail-only study, of whose HB domains those are left that are soon traced."""
    study = coopt.load(INSTANCES / "rail-only-gpt-1t.toml")
    some = ("hgx-h100-8", "h100-hb16", "gh200-256")
    domains = tuple(domain for domain in study.network.hb_domains if domain.name in some)
    return study.model_copy(update={"network": study.network.model_copy(update={"hb_domains": domains})})


@pytest.fixture(scope="module")
def study() -> Instance:
    """The question of the rail-only study."""
    return rail_only_study()


@pytest.fixture(scope="module")
def shorter(study: Instance) -> Instance:
    """The same with two of its HB domains, whose front is soon found."""
    two = tuple(domain for domain in study.network.hb_domains if domain.name in ("h100-hb16", "gh200-256"))
    assert len(two) == 2
    return study.model_copy(update={"network": study.network.model_copy(update={"hb_domains": two})})


@pytest.fixture(scope="module")
def front(study: Instance) -> Front:
    """All points of its front."""
    return coopt.pareto(study, 12)


@pytest.mark.parametrize("width", [80, 200])
def test_no_number_is_cut_and_no_line_is_too_long(front, study, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm")
    text = Text.from_ansi(rendered(front_report(front, study), Terminal())).plain
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    for point in front.points:
        assert f"{point.best.cost.capex_usd:,.0f}" in text


def test_the_first_sentence_says_what_patience_saves(front: Front, study: Instance) -> None:
    said = front_headline(front, study)
    assert re.findall(r"[\d.]+ s |\$\d+ M|[\d.]+%", said)[:5] == ["4.402 s ", "3.299 s ", "$266 M", "$375 M", "70.8%"]
    assert said.count(" s ($") == sum(point.knee for point in front.points)
    bent = tuple(point.model_copy(update={"knee": True}) for point in front.points[1:3])
    assert "; knees at " in front_headline(front.model_copy(update={"points": (*front.points, *bent)}), study)


def test_the_cost_of_the_bound_is_what_solve_finds(front: Front, study: Instance) -> None:
    answer = next(iter(front_notes(front, study)))
    assert all(part in answer for part in ("3.450 s", "$375 M", "gh200-256, 1-tier rail-only"))
    deadline = coopt.load(INSTANCES / "infeasible-deadline.toml")
    notes = list(front_notes(coopt.pareto(deadline), deadline))
    assert "0.1000 s" in notes[0]
    assert notes[0].endswith(" 0.6623 s.")


@pytest.mark.parametrize(
    ("points", "change", "said"),
    [
        (0, {"stop_reason": "infeasible", "size": 0}, "proven infeasible."),
        (0, {"stop_reason": "time limit", "complete": False}, "(time limit) before"),
        (6, {"stop_reason": "interrupted", "complete": False}, "(interrupted), 6 points"),
        (1, {"stop_reason": "interrupted", "complete": False}, "(interrupted), 1 point"),
    ],
)
def test_an_end_without_all_points_says_so(front, study, points, change, said):
    changed = front.model_copy(update={**change, "points": front.points[:points]})
    assert said in front_headline(changed, study)
    assert points > 1 or "Going" not in front_headline(changed, study)
    assert points == 1 or "Within the bound" not in rendered(front_report(changed, study), io.StringIO())


def test_a_point_alone_is_the_cheapest_up_to_its_gap(front: Front, study: Instance) -> None:
    point = front.points[0]
    assert point.best is not None
    claim = point.claim.model_copy(update={"gap": 0.02})
    wide = point.model_copy(update={"best": point.best.model_copy(update={"objective": claim})})
    for points, within in (((point,), False), ((wide,), True)):
        alone = front.model_copy(update={"points": points})
        assert ("2.0%" in front_headline(alone, study)) == within


def test_several_workloads_are_told_as_shares_of_their_bounds(shorter: Instance) -> None:
    second = shorter.workload[0].model_copy(update={"name": "second", "max_iteration_time_s": 4.0})
    two = shorter.model_copy(update={"workload": (*shorter.workload, second)})
    front = coopt.pareto(two, 3)
    text = rendered(front_report(front, two), io.StringIO())
    assert " in place of 0.9563 " in text
    assert " of the bounds" not in text
    assert "cheapest design costs $375 M" in text
    row = next(csv.DictReader(io.StringIO(front_csv(front))))
    assert float(row["second.iteration_time_s"]) == pytest.approx(float(row["pre-training.iteration_time_s"]))


@pytest.mark.parametrize(("kind", "unit"), [("power", "MW"), ("tco", "$")])
def test_other_objectives_have_their_own_units(shorter: Instance, kind: str, unit: str) -> None:
    front = coopt.pareto(shorter, 3, objective=kind)  # type: ignore[arg-type]
    said = front_headline(front, shorter)
    assert unit in said
    assert (unit == "MW") == ("$" not in said)


def test_the_csv_holds_every_point_to_the_last_digit(front: Front) -> None:
    rows = list(csv.DictReader(io.StringIO(front_csv(front))))
    assert len(rows) == len(front.points)
    for row, point in zip(rows, front.points, strict=True):
        assert float(row["pace"]) == point.pace
        assert float(row["value"]) == point.best.objective.value == point.best.cost.capex_usd
        assert float(row["iteration_time_s"]) == point.best.workloads[0].iteration_time_s
        assert row["knee"] == str(point.knee)
        assert int(row["tp"]) == point.best.workloads[0].mapping.tp
        design = point.best.design
        assert (row["hb_name"], int(row["hb_count"])) == (design.hb_domain.name, design.hb_domain.count)
        assert int(row["transceivers"]) == design.fabric.transceiver_count
    names, theirs = list(rows[0]), list(COLUMNS)  # designs have the columns of suites
    ours = names[names.index("gpus") : names.index("iteration_time_s")]
    assert ours == theirs[theirs.index("gpus") : theirs.index("network_usd")]


def test_every_file_is_written_and_the_same_each_time(front: Front, study: Instance, tmp_path: Path) -> None:
    write_front(front, study, tmp_path / "a" / "b")
    write_front(front, study, tmp_path / "c")
    assert sorted(file.name for file in (tmp_path / "c").iterdir()) == sorted(NAMES)
    for name in NAMES:
        assert (tmp_path / "a" / "b" / name).read_bytes() == (tmp_path / "c" / name).read_bytes()
    assert Front.model_validate_json((tmp_path / "c" / "front.json").read_text("utf-8")) == front


def test_a_front_without_points_has_files_too(front: Front, study: Instance, tmp_path: Path) -> None:
    empty = front.model_copy(update={"points": (), "size": 0, "stop_reason": "infeasible", "explanation": ("Why.",)})
    write_front(empty, study, tmp_path)
    page = (tmp_path / "front.html").read_text("utf-8")
    assert "<p>Why.</p>" in page
    assert "<script" not in page


def test_a_chart_brings_all_it_needs_and_hostile_names_stay_text(front: Front, study: Instance) -> None:
    named = study.model_copy(update={"name": HOSTILE})
    best = front.points[0].best
    domain = best.design.hb_domain.model_copy(update={"name": HOSTILE})
    bad = best.model_copy(update={"design": best.design.model_copy(update={"hb_domain": domain})})
    changed = front.model_copy(update={"points": (front.points[0].model_copy(update={"best": bad}),)})
    chart = front_chart(changed, named)
    assert HOSTILE not in chart
    assert not re.search(r"""(?:src|href)=["']?(?:https?:)?//""", chart)
    (data,) = re.findall(r'<script type="application/json">(.*?)</script>', chart, re.DOTALL)
    assert HOSTILE in json.loads(data)["points"][0]["details"][0][1]
    assert not re.search("import |export ", browser_script(*CHART))


def test_dollars_and_names_in_a_picture_are_no_mathematics(front: Front, study: Instance, tmp_path: Path) -> None:
    point = next(point for point in front.points if point.knee)
    domain = point.best.design.hb_domain.model_copy(update={"name": r"$\frac{$"})
    best = point.best.model_copy(update={"design": point.best.design.model_copy(update={"hb_domain": domain})})
    named = front.model_copy(update={"points": (*front.points[:1], point.model_copy(update={"best": best}))})
    assert front_headline(named, study).count("$") % 2 == 1
    draw_front(named, study, str(tmp_path / "a.png"))
    assert (tmp_path / "a.png").stat().st_size > 10_000


def test_a_package_or_a_folder_that_is_missing_is_named(front, study, tmp_path, monkeypatch):
    check_packages("-o")
    monkeypatch.setattr("coopt.report.fronts.files.find_spec", lambda name: None if name == "jinja2" else object())
    with pytest.raises(InstanceError, match=r"^-o: jinja2 .*`pip install 'coopt\[report\]'`$"):
        check_packages("-o")
    (tmp_path / "file").write_text("x", "utf-8")
    with pytest.raises(InstanceError, match="cannot be created"):
        write_front(front, study, tmp_path / "file")


@pytest.mark.parametrize("margin", ["none", {"time": 0.25}])
def test_days_that_count_the_margin_say_so(margin: dict[str, float] | str) -> None:
    bound = {"max_iteration_time_s": None, "train_days": 30.0, "train_tokens": 1e11}
    instance = ask(**{f"workload__0__{key}": value for key, value in bound.items()}, margin=margin)
    found, plan = coopt.pareto(instance, 5), coopt.solve(instance)
    answer = answer_to(found, instance)
    assert answer is not None
    assert answer.days is not None
    (workload,) = instance.workload
    trained_days = plan.workloads[0].iteration_time_s * 1e11 / workload.tokens_per_iteration / 86_400
    assert answer.days == pytest.approx(trained_days * (1.0 if margin == "none" else 1.25))
    rows = list(csv.DictReader(io.StringIO(front_csv(found))))
    assert [float(row["days"]) for row in rows] == [point.days for point in found.points]
    assert (band_of(instance)["from"], band_of(instance)["to"]) == (1.0 if margin == "none" else 0.8, 1.0)
    said = "\n".join((front_headline(found, instance), *front_notes(found, instance)))
    assert (" with the margin in place" in said) == (margin != "none")
    assert ("margin of 25.0%" in said) == (margin != "none")
    assert columns(found, instance)[2] == ("days" if margin == "none" else "days with margin")
    assert time_label(instance) == f"time of training{'' if margin == 'none' else ' with the margin'} (days)"
