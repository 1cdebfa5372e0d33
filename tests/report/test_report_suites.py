"""Tables and pictures of suites show what the rows say, with what was published beside it."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coopt.instance.texts import InstanceError
from coopt.report.suites import draw_figures, knee, lines, published_marks, suite_report
from coopt.report.words import rendered
from coopt.suite.form import FigureView, Study, Suite
from coopt.suite.table import COLUMNS

Row = dict[str, Any]
FIGURE = {"name": "f", "title": "Time by size", "grid": "g", "x": "size", "y": "iteration_time_s", "group": "kind"}
TABLE = {"name": "t", "title": "Savings", "grid": "g", "columns": ["size", "saving", "capex_usd"]}


def rows() -> list[Row]:
    """Times that fall with size, to that of size 64, for two kinds."""
    return [
        row(size=size, kind=kind, iteration_time_s=time_s * slow, saving=0.5, capex_usd=1e6 * size)
        for kind, slow in (("a", 1.0), ("b", 2.0))
        for size, time_s in ((4, 1.5), (1, 4.0), (2, 2.0), (64, 1.0))
    ]


def row(**own: Any) -> Row:
    common = {"grid": "g", "status": "optimal", "workloads": [], "overrides": "{}"}
    return dict.fromkeys(COLUMNS) | common | own


def study(published: dict[str, Any] | None = None, **views: Any) -> Study:
    grid = {"name": "g", "instances": "x.toml", "vary": {"size": [1, 2, 4, 64], "kind": ["a", "b"]}}
    suite = Suite.model_validate({"schema": 1, "name": "s", "grid": grid} | views)
    return Study(suite=suite, published=published or {})


def view(**changes: Any) -> FigureView:
    return study(figure=FIGURE | changes).suite.figure[0]


def shown(of: Study, some: list[Row]) -> str:
    return rendered(suite_report(of, some))


def test_a_line_for_each_group_by_rising_x() -> None:
    """Of the rows that it keeps; points without a number are left out."""
    a, b = lines([*rows(), row(size=8, kind="a", status="infeasible")], view())
    assert (a.name, a.x, a.y) == ("a", (1, 2, 4, 64), (4.0, 2.0, 1.5, 1.0))
    assert b.y == (8.0, 4.0, 3.0, 2.0)
    (only,) = lines(rows(), view(where={"kind": "b"}))
    assert only.name == "b"


def test_a_share_is_that_of_the_reference_with_all_else_equal() -> None:
    shares = view(share_of={"size": 64})
    for line in lines(rows(), shares):
        assert (line.x, line.y) == ((1, 2, 4), (0.25, 0.5, 1 / 1.5))
    (line,) = lines([r for r in rows() if (r["size"], r["kind"]) != (64, "b")], shares)
    assert line.name == "a"  # a point has no share without its reference


@given(st.integers(1, 8), st.floats(0.05, 0.9), st.floats(0.1, 1e6), st.floats(-100, 100))
def test_the_knee_is_where_two_straight_lines_meet(place: int, flat: float, unit: float, shift: float) -> None:
    x = list(range(10))
    y = [unit * (min(k, place) + flat * (1 - place / 9) * max(k - place, 0)) + shift * unit for k in x]
    assert knee(x, y) == place


@given(st.floats(0.1, 100), st.floats(-10, 10))
def test_a_straight_line_has_no_knee(slope: float, start: float) -> None:
    assert knee([0, 1, 2, 3], [start + slope * k for k in range(4)]) is None


def test_a_flat_or_short_line_has_no_knee_and_others_on_the_axes_that_are_drawn() -> None:
    assert knee([0, 1, 2], [1.0, 1.0, 1.0]) is knee([0, 1], [1.0, 2.0]) is None
    doubling = [row(size=2**k, kind="a", iteration_time_s=min(k, 5) + 1.0) for k in range(11)]
    (line,) = lines(doubling, view(knee=True, log_x=True))
    assert line.knee is not None
    assert line.x[line.knee] == 32


def test_published_points_are_told_apart_by_series() -> None:
    told = [{"size": 2.0, "kind": "a", "share": s, "series": n, "source": "x"} for s, n in ((0.4, "one"), (0.5, "two"))]
    figure = FIGURE | {"share_of": {"size": 64}}
    some = study({"f": told}, figure=figure)
    marks = list(published_marks(some, some.suite.figure[0]))
    assert [(series, line.name, line.y) for series, line in marks] == [("one", "a", (0.4,)), ("two", "a", (0.5,))]


def test_a_published_figure_stands_beside_the_row_it_belongs_to() -> None:
    told = [{"size": 2.0, "kind": "a", "saving": 0.38, "source": "x"}]
    text = shown(study({"t": told}, table=TABLE), rows())
    beside = [line.split() for line in text.splitlines() if "50.0%" in line]
    assert beside[0] == ["4", "50.0%", "-", "4,000,000"]
    assert beside[2] == ["2", "50.0%", "38%", "2,000,000"]
    assert beside[6] == ["2", "50.0%", "-", "2,000,000"]


def test_a_suite_without_tables_is_shown_with_its_axes() -> None:
    """Instances are named where a grid has several; long tables end with the number of further rows."""
    text = shown(study(), rows())
    assert text.splitlines()[0] == "s: 8 cases (8 optimal)."
    assert "1.500" in text
    assert "4,000,000" in text
    two = [row(instance="x.toml"), row(instance="y.toml")]
    several = shown(study(grid={"name": "g", "instances": ["x.toml", "y.toml"]}), two)
    assert ["x.toml" in several, "y.toml" in several, "x.toml" in shown(study(), two[:1])] == [True, True, False]
    assert "15 further rows" in shown(study(), [row(size=k, kind="a") for k in range(75)])


def test_a_figure_is_told_in_numbers_with_its_knee() -> None:
    text = shown(study(figure=FIGURE | {"knee": True}), rows())
    assert ["4", "[knee]", "1.500", "[knee]", "3"] in [line.split() for line in text.splitlines()]


def test_cases_without_an_answer_are_told_with_their_sentence() -> None:
    bad = [row(size=1, kind="a", status=status, why="too slow") for status in ("infeasible", "infeasible", "failed")]
    told = [line.split()[:2] for line in shown(study(), [*rows(), *bad]).splitlines() if "too slow" in line]
    assert told == [["infeasible", "2"], ["failed", "1"]]


def test_numbers_are_never_cut_and_what_finds_no_room_is_named() -> None:
    wide = TABLE | {"columns": list(COLUMNS)[9:35]}
    text = shown(study(table=wide), [row(size=1, kind="a") | dict.fromkeys(list(COLUMNS)[9:15], 123456.789)])
    assert max(map(len, text.splitlines())) <= 100
    assert "lack of space" in text
    assert "any usd" in text.replace("\n", " ")
    assert "…" not in text


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_pictures_are_the_same_each_time(tmp_path: Path, ending: str) -> None:
    some = study(figure=FIGURE | {"knee": True, "log_x": True, "share_of": {"size": 64}})
    drawn = [next(draw_figures(some, rows(), tmp_path / name, ending)).read_bytes() for name in "ab"]
    assert drawn[0] == drawn[1]
    assert len(drawn[0]) > 1000


def test_nothing_to_draw_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InstanceError, match="has no \\[\\[figure\\]\\]"):
        list(draw_figures(study(), rows(), tmp_path, "png"))
    for figure, some in ((FIGURE, [row(size=1, kind="a")]), (FIGURE | {"x": "kind"}, rows())):
        with pytest.raises(InstanceError, match="grid 'g'"):
            list(draw_figures(study(figure=figure), some, tmp_path, "png"))


def test_what_is_minimised_is_shown_where_it_is_not_the_price() -> None:
    """The same purchase draws more power in one case."""
    some = [row(size=size, kind="a", objective="tco", value=2e6 + size, capex_usd=1e6) for size in (1, 2)]
    text = shown(study(), some)
    assert all(word in text for word in ("objective", "tco", "2,000,001", "2,000,002"))
    alike = [one | {"objective": "capex", "value": one["capex_usd"]} for one in some]
    assert "objective" not in shown(study(), alike)
