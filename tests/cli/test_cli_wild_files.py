"""Files that no editor writes are refused in a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

import coopt as planner
from coopt.instance.errors import InstanceError

TINY = Path("instances/tiny-64.toml")
LONG = "0x" + "f" * 5000
DIGITS = "9" * 5000
EDGE = (
    '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
    '<key id="r" for="edge" attr.name="gbit_s" attr.type="long"/>'
    '<key id="n" for="edge" attr.name="links" attr.type="long"/><graph edgedefault="undirected"><node id="a"/>'
    '<node id="b"/><edge source="a" target="b"><data key="r">{}</data><data key="n">{}</data></edge></graph></graphml>'
)
SUITE = 'schema = 1\nname = "s"\n[[grid]]\nname = "g"\ninstances = ["a\\u0000b.toml"]\n'
CASES = {"shared by all": 'set = {{ "cluster.gpus" = {} }}', "listed": 'vary = {{ "cluster.gpus" = [64, {}] }}'}


@pytest.mark.parametrize("value", [LONG, f"[{LONG}]"])
def test_whole_numbers_without_end_are_refused(coopt, tmp_path, value):
    (tmp_path / "long.toml").write_text(TINY.read_text("utf-8").replace("gpus = 64", f"gpus = {value}"), "utf-8")
    for words in (["solve", tmp_path / "long.toml"], ["evaluate", TINY, "--set", f"cluster.gpus={value}"]):
        done = coopt(*map(str, words))
        assert done.exit_code == 1
        assert "gpus" in done.stderr
        assert "of 20,000 bits" in done.stderr


@pytest.mark.parametrize("value", [DIGITS, f"[{DIGITS}]", f"[64, {DIGITS[:2500]}_{DIGITS[:2500]}]"])
def test_numbers_of_more_digits_than_python_reads_are_refused(coopt, tmp_path, value):
    """Python's own words are of `sys.set_int_max_str_digits`."""
    (tmp_path / "long.toml").write_text(TINY.read_text("utf-8").replace("gpus = 64", f"gpus = {value}"), "utf-8")
    (tmp_path / "plan.json").write_text(f'{{"schema":\n{DIGITS}}}', "utf-8")
    cases = [
        (["solve", tmp_path / "long.toml"], "long.toml: line 8:"),
        (["evaluate", TINY, "--set", f"cluster.gpus={value}"], "--set cluster.gpus: line 1:"),
        (["verify", TINY, tmp_path / "plan.json"], "plan.json: line 2:"),
    ]
    for words, where in cases:
        done = coopt(*map(str, words))
        assert done.exit_code == 1
        assert where in done.stderr
        assert "of 5,000 digits" in done.stderr


@pytest.mark.parametrize("number", [LONG, DIGITS])
@pytest.mark.parametrize("given", CASES.values(), ids=CASES)
def test_suites_refuse_whole_numbers_without_end(coopt, tmp_path, given, number):
    text = SUITE.replace("a\\u0000b.toml", str(TINY.resolve())) + given.format(number)
    (tmp_path / "suite.toml").write_text(text, "utf-8")
    done = coopt("suite", "run", str(tmp_path / "suite.toml"), "-o", str(tmp_path / "out"))
    assert done.exit_code == 1
    assert done.stderr.startswith("coopt: suite.toml: ")
    assert "at most" in done.stderr


@pytest.mark.parametrize(
    ("value", "where"),
    [
        ("global_batch=[{}, 8]", "global_batch = a table"),
        ("options.dp_mode=[['sync'], 'overlap']", "options.dp_mode"),
        ("options.transport=[{a=1}]", "options.transport = a table"),
    ],
)
def test_lists_of_tables_where_values_are_listed_are_refused(coopt, value, where):
    done = coopt("bom", str(TINY), "--set", f"workload.0.{value}")
    assert done.exit_code == 1
    assert f"workload[0].{where}" in done.stderr


def test_a_path_that_cannot_be_is_refused(coopt, tmp_path):
    (tmp_path / "suite.toml").write_text(SUITE, "utf-8")
    done = coopt("suite", "run", str(tmp_path / "suite.toml"), "-o", str(tmp_path / "out"))
    assert done.exit_code == 1
    assert "a NUL byte" in done.stderr


@pytest.mark.parametrize(("rate", "links"), [("1" + "0" * 400, "1"), ("400", "1" + "0" * 400)])
def test_rates_and_links_beyond_all_measure_are_refused(coopt, tmp_path, rate, links):
    (tmp_path / "pair.graphml").write_text(EDGE.format(rate, links), "utf-8")
    done = coopt("collective", str(tmp_path / "pair.graphml"))
    assert done.exit_code == 1
    assert "edge 'a' -- 'b':" in done.stderr


@pytest.mark.parametrize("character", ["\u202e", "\u2066", "\u200f", "\ufeff", "\u0007"])
def test_names_do_not_turn_what_is_read(coopt, tmp_path, character):
    text = TINY.read_text("utf-8").replace('name = "tiny-64"', f'name = "tiny\\u{ord(character):04x}evil"')
    (tmp_path / "turned.toml").write_text(text, "utf-8")
    done = coopt("solve", str(tmp_path / "turned.toml"))
    assert done.exit_code == 1
    assert "control characters" in done.stderr
    assert character not in done.stderr


def test_what_is_told_of_a_file_does_not_turn_either(coopt):
    done = coopt("solve", "no\u202eevil.toml")
    assert done.exit_code == 1
    assert "no\\u202eevil.toml" in done.stderr


def test_questions_may_be_given_as_files(tmp_path):
    plan = planner.solve(str(TINY))
    assert plan.objective.value == planner.solve(TINY).objective.value
    (tmp_path / "plan.json").write_text(plan.model_dump_json(by_alias=True), "utf-8")
    assert planner.verify(TINY, tmp_path / "plan.json").accepted
    assert planner.explain(str(TINY), plan).status == "optimal"
    assert planner.pareto(str(TINY), points=3).complete
    with pytest.raises(InstanceError, match="no such file"):
        planner.evaluate("nothing.toml")


def test_a_script_may_have_any_name(coopt, tmp_path):
    assert coopt("solve", str(TINY), "-o", str(tmp_path / "plan.json")).exit_code == 0
    words = ("export", str(TINY), str(tmp_path / "plan.json"), "--format", "megatron", "-o", str(tmp_path / "a.txt"))
    assert coopt(*words).exit_code == 0
    assert (tmp_path / "a.txt").read_text("utf-8").startswith("#!")
