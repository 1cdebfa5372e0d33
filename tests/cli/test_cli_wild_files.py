"""Files that no editor writes are refused in a sentence."""

from pathlib import Path

import pytest

import coopt as planner
from coopt.instance.texts import InstanceError

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


@pytest.mark.parametrize(
    ("value", "size"),
    [
        *((value, "of 20,000 bits") for value in (LONG, f"[{LONG}]")),
        *((value, "of 5,000 digits") for value in (DIGITS, f"[{DIGITS}]", f"[64, {DIGITS[:2500]}_{DIGITS[:2500]}]")),
    ],
    ids=range(5),
)
def test_whole_numbers_without_end_are_refused(coopt, tmp_path, value, size):
    """Python's own words are of `sys.set_int_max_str_digits`."""
    long, plan = tmp_path / "long.toml", tmp_path / "plan.json"
    long.write_text(TINY.read_text("utf-8").replace("gpus = 64", f"gpus = {value}"), "utf-8")
    plan.write_text(f'{{"schema":\n{DIGITS}}}', "utf-8")
    cases = [(["solve", long], "long.toml: line 9:"), (["evaluate", TINY, "--set", f"cluster.gpus={value}"], "line 1:")]
    for words, where in cases if "digits" in size else [(words, "gpus") for words, _ in cases]:
        done = coopt(*words)
        assert (done.exit_code, where in done.stderr, size in done.stderr) == (1, True, True), done.stderr
    assert "plan.json: line 2:" in coopt("verify", TINY, plan).stderr


@pytest.mark.parametrize("number", [LONG, DIGITS], ids=["bits", "digits"])
@pytest.mark.parametrize("given", CASES.values(), ids=CASES)
def test_suites_refuse_whole_numbers_without_end(coopt, tmp_path, given, number):
    text = SUITE.replace("a\\u0000b.toml", str(TINY.resolve())) + given.format(number)
    (tmp_path / "suite.toml").write_text(text, "utf-8")
    done = coopt("suite", "run", tmp_path / "suite.toml", "-o", tmp_path / "out")
    assert (done.exit_code, done.stderr[:19], "at most" in done.stderr) == (1, "coopt: suite.toml: ", True)


def test_lists_of_tables_where_values_are_listed_are_refused(coopt):
    for value, where in (
        ("global_batch=[{}, 8]", "global_batch"),
        ("options.dp_mode=[['sync'], 'overlap']", "options.dp_mode"),
        ("options.transport=[{a=1}]", "options.transport = a table"),
    ):
        done = coopt("bom", TINY, "--set", f"workload.0.{value}")
        assert (done.exit_code, f"workload[0].{where}" in done.stderr) == (1, True)


def test_a_path_that_cannot_be_is_refused(coopt, tmp_path):
    (tmp_path / "suite.toml").write_text(SUITE, "utf-8")
    done = coopt("suite", "run", tmp_path / "suite.toml", "-o", tmp_path / "out")
    assert (done.exit_code, "a NUL byte" in done.stderr) == (1, True)


def test_rates_and_links_beyond_all_measure_are_refused(coopt, tmp_path):
    for rate, links in (("1" + "0" * 400, "1"), ("400", "1" + "0" * 400)):
        (tmp_path / "pair.graphml").write_text(EDGE.format(rate, links), "utf-8")
        done = coopt("collective", tmp_path / "pair.graphml")
        assert (done.exit_code, "edge 'a' -- 'b':" in done.stderr) == (1, True)


def test_names_and_what_is_told_of_files_do_not_turn_what_is_read(coopt, tmp_path):
    file = tmp_path / "turned.toml"
    for character in ("\u202e", "\u2066", "\u200f", "\ufeff", "\u0007"):
        turned = f'name = "tiny\\u{ord(character):04x}evil"'
        file.write_text(TINY.read_text("utf-8").replace('name = "tiny-64"', turned), "utf-8")
        done = coopt("solve", file)
        assert (done.exit_code, "control characters" in done.stderr, character in done.stderr) == (1, True, False)
    done = coopt("solve", "no\u202eevil.toml")
    assert (done.exit_code, "no\\u202eevil.toml" in done.stderr) == (1, True)


def test_questions_may_be_given_as_files(tmp_path):
    plan = planner.solve(str(TINY))
    assert plan.objective.value == planner.solve(TINY).objective.value
    (tmp_path / "plan.json").write_text(plan.model_dump_json(by_alias=True), "utf-8")
    assert planner.verify(TINY, tmp_path / "plan.json").accepted
    assert planner.explain(str(TINY), plan).status == "optimal"
    assert planner.pareto(str(TINY), points=3).complete
    with pytest.raises(InstanceError, match="no such file"):
        planner.evaluate("nothing.toml")


def test_a_script_may_have_any_name(coopt, planned, tmp_path):
    file = tmp_path / "a.txt"
    assert coopt("export", *planned, "--format", "megatron", "-o", file).exit_code == 0
    assert file.read_text("utf-8").startswith("#!")
