"""The shipped catalog: every figure valid, covered by a source, and honest about how it was obtained."""

import tomllib
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import pytest

from coopt.instance.catalog import KINDS, entries, find

WORDS_OF = {
    "D": ("derived", "assumed", "judgement", "judged", "fitted"),
    "M": ("recalled", "estimate", "assumed", "carried over"),
}


def _rows() -> Iterator[Any]:
    for kind in KINDS:
        table = tomllib.loads(files("coopt").joinpath("catalog", f"{kind}.toml").read_text("utf-8"))
        for row in table[kind]:
            yield pytest.param(kind, row, id=f"{kind}-{row['name']}")


ROWS = list(_rows())


def figures(row: dict[str, Any], prefix: str = "") -> set[str]:
    """Dotted names of all numbers of an entry."""
    found: set[str] = set()
    for key, value in row.items():
        if isinstance(value, dict):
            found |= figures(value, f"{prefix}{key}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            found.add(prefix + key)
    return found


def uncovered(row: dict[str, Any]) -> set[str]:
    """Figures that no source names; naming a table covers all it holds."""
    named = {field for source in row["sources"] for field in _listed(source["fields"])}
    return {figure for figure in figures(row) if not named & _tables_of(figure)}


def _tables_of(figure: str) -> set[str]:
    """`a.b.c` itself and the tables it lies in."""
    parts = figure.split(".")
    return {".".join(parts[: depth + 1]) for depth in range(len(parts))}


def _listed(fields: str | list[str]) -> list[str]:
    return [fields] if isinstance(fields, str) else fields


def _leaves(row: dict[str, Any]) -> set[str]:
    """Dotted names of all there is, tables among them."""
    inner = {f"{key}.{name}" for key, value in row.items() if isinstance(value, dict) for name in _leaves(value)}
    return set(row) | inner


@pytest.mark.parametrize(("kind", "row"), ROWS)
def test_an_entry_is_valid_and_its_sources_name_each_figure_once_and_say_how_it_was_obtained(kind, row) -> None:
    assert entries(kind)[row["name"]] == KINDS[kind].model_validate(row)
    assert uncovered(row) == set()
    named = [field for source in row["sources"] for field in _listed(source["fields"])]
    assert set(named) <= _leaves(row)
    assert len(named) == len(set(named))
    for source in row["sources"]:
        words, tag = WORDS_OF.get(source["tag"], WORDS_OF["M"]), source["tag"]
        assert any(word in source["source"] for word in words) == (tag in WORDS_OF), source


def test_a_figure_without_source_is_noticed() -> None:
    row: dict[str, Any] = {"name": "x", "usd": 1, "gated": True, "efficiency": {"hb": 0.8, "hbm": 0.9}}
    assert uncovered(row | {"sources": [{"fields": "efficiency.hb"}]}) == {"usd", "efficiency.hbm"}
    assert uncovered(row | {"sources": [{"fields": ["usd", "efficiency"]}]}) == set()


def test_unknown_name_is_answered_with_the_closest_or_with_all() -> None:
    for kind, wrong, closest in (
        ("gpu", "h100-sxn", "closest: .*h100-sxm"),
        ("switch", "64x400", "closest: .*64x400g"),
        ("hb_domain", "hgx-h100", "closest: .*hgx-h100-8"),
        ("model", "gpt-1tb", "closest: .*gpt-1t"),
        ("nic", "zzz", "one of: cx6-200g, cx7-400g, cx8-800g"),
    ):
        with pytest.raises(ValueError, match=closest):
            find(kind, wrong)


def test_names_of_a_box_at_one_rate_have_its_price_and_its_ports_of_that_rate() -> None:
    rows = tomllib.loads(files("coopt").joinpath("catalog", "switch.toml").read_text("utf-8"))["at_one_rate"]
    assert {row["name"] for row in rows} == {"64x800g", "128x400g"}
    for row in rows:
        box, named = find("switch", row["box"]), find("switch", row["name"])
        assert (named.usd, named.w, named.modes) == (box.usd, box.w, ())
        assert (named.radix, named.port_gbit_s) in {(way.radix, way.port_gbit_s) for way in box.in_each_mode}
        assert named.port_gbit_s == row["port_gbit_s"]
