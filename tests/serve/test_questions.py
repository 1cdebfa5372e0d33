"""Texts of questions: edited in place, and never a way to a file of the machine."""

import time
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coopt.instance.catalog import KINDS
from coopt.instance.schema import load
from coopt.instance.texts import InstanceError, names_in, toml_of
from coopt.serve.questions import OwnCatalog, edited, json_value, place_of, question_of
from tests.conftest import example_count

INSTANCES = Path(__file__).parents[2] / "instances"
TINY = (INSTANCES / "tiny-64.toml").read_text("utf-8")
OWN = OwnCatalog()


@pytest.mark.parametrize("file", sorted(INSTANCES.glob("*.toml")), ids=lambda file: file.stem)
def test_a_text_asks_what_its_file_asks_and_an_edit_changes_one_value_and_no_comment(file):
    text = file.read_text("utf-8")
    assert question_of(text, OWN) == load(file)
    before = tomllib.loads(text)
    place = len(before["workload"]) - 1
    after = edited(text, [(("workload", place, "global_batch"), 77)])
    before["workload"][place]["global_batch"] = 77
    assert tomllib.loads(after) == before
    assert [line for line in text.splitlines() if "#" in line] == [line for line in after.splitlines() if "#" in line]


def test_tables_and_rows_that_are_not_there_are_made_and_taken_away():
    """The value none takes a key away; a range in place of a number stays on its line with its comment."""
    before = tomllib.loads(TINY)
    after = edited(TINY, [(("limits", "power_mw"), 2.5), (("sharing", "most_products", "hb"), 2)])
    assert tomllib.loads(after) == before | {"limits": {"power_mw": 2.5}, "sharing": {"most_products": {"hb": 2}}}
    more = edited(TINY, [(("workload", 1), {"name": "second"}), (("workload", 1, "global_batch"), 8)])
    assert tomllib.loads(more)["workload"][1] == {"name": "second", "global_batch": 8}
    assert tomllib.loads(edited(more, [(("workload", 1), None)])) == before
    bare = tomllib.loads(edited(TINY, [(("description",), None), (("limits", "racks"), None)]))
    assert bare == {key: value for key, value in before.items() if key != "description"}
    text = "[cluster]\ngpus = 64 # ours\ngpu = 'h100-sxm'\n"
    written = edited(text, [(("cluster", "gpus"), {"least": 32, "most": 96, "step": 32})])
    assert written == "[cluster]\ngpus = {least = 32, most = 96, step = 32} # ours\ngpu = 'h100-sxm'\n"
    assert edited(written, [(("cluster", "gpus"), 64)]) == text


def test_a_list_of_one_that_is_written_as_a_table_can_be_edited_and_grows():
    text = TINY.replace("[[workload]]", "[workload]")
    assert text != TINY
    once = edited(text, [(("workload", 0, "global_batch"), 5)])
    assert tomllib.loads(once)["workload"]["global_batch"] == 5
    grown = tomllib.loads(edited(text, [(("workload", 1), {"name": "second"})]))["workload"]
    assert grown == [tomllib.loads(text)["workload"], {"name": "second"}]


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        *((path, 1, "no (key|place)") for path in ((), ("workload", 7, "name"), ("name", "deeper"), ("phase", 0))),
        (("workload", "name", "x"), 1, "no (key|place)"),
        *((("cluster", "gpus"), value, "contains null") for value in ([1, None], {"tp": {"dp": None}})),
    ],
)
def test_a_place_that_is_not_there_and_a_value_that_toml_cannot_hold_are_refused(path, value, says):
    with pytest.raises(InstanceError, match=says):
        edited(TINY, [(path, value)])


NUMBERS = st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False)
TEXT = st.text("aZ0 _-.,:#=\"'\\[]{}\t\n\r\0\x1f\x7f\x85\u00e9\u2028\ufeff\U0001f600")  # what TOML gives a meaning
VALUES = NUMBERS | st.booleans() | TEXT | st.lists(st.integers(0, 9)) | st.dictionaries(TEXT, NUMBERS)


@settings(max_examples=example_count(400, 100))
@given(value=VALUES)
def test_any_value_arrives_as_it_is(value):
    text = "[cluster]\ngpus = 64 # ours\ngpu = 'h100-sxm'\n"
    assert tomllib.loads(edited(text, [(("cluster", "gpus"), value)]))["cluster"] == {"gpus": value, "gpu": "h100-sxm"}


@pytest.mark.parametrize(
    ("added", "why"),
    [
        ('[catalog]\nfiles = "/etc/passwd"', "catalog.files = .'/etc/passwd'."),
        ('[catalog]\nfiles = ["a.csv", "b.toml"]', "cannot read these"),
        ("[catalog]\nfile = 1", "catalog: file: unknown key"),
        ("catalog = 3", "catalog: .* needs a table"),
        ('[solver]\nname = "asl:/bin/sh"', "needs 'built-in'"),
    ],
)
def test_no_text_names_a_file_or_a_program(added, why):
    text = f"{added}\n{TINY}" if added.startswith("catalog =") else f"{TINY}\n{added}\n"
    with pytest.raises(InstanceError, match=why):
        question_of(text, OWN)


def test_a_name_of_a_file_is_no_catalog_name(tmp_path):
    secret = tmp_path / "secret.toml"
    secret.write_text('[[gpu]]\nname = "hidden"\n', "utf-8")
    for value in (str(secret), {"extends": str(secret)}, {"extends": "../../etc/passwd"}):
        with pytest.raises(InstanceError, match=r"cluster\.gpu") as refused:
            question_of(edited(TINY, [(("cluster", "gpu"), value)]), OWN)
        assert "hidden" not in str(refused.value)


def test_files_that_were_named_at_the_start_may_be_named():
    book = {kind: {} for kind in KINDS} | {"gpu": {"mine": load(INSTANCES / "tiny-64.toml").cluster.gpu}}
    text = edited(TINY, [(("cluster", "gpu"), "mine"), (("catalog", "files"), ["mine.toml"])])
    assert question_of(text, OwnCatalog(files=("mine.toml",), book=book)).cluster.gpu.name == "h100-sxm"
    with pytest.raises(InstanceError, match="cannot read these"):
        question_of(text, OwnCatalog(files=("other.toml",), book=book))


@pytest.mark.parametrize(
    ("path", "value", "inside"),
    [
        (["workload", 0, "global_batch"], 0, []),
        (["workload", 0, "mapping", "tp"], [0], [0]),
        (["workload", 0, "wrong"], 1, []),
        (["network", "hb_domains"], None, []),
        (["cluster", "gpu"], "no-such-gpu", []),
    ],
)
def test_a_complaint_says_where(path, value, inside):
    with pytest.raises(InstanceError) as refused:
        question_of(edited(TINY, [(tuple(path), value)]), OWN)
    assert [place_of(sentence, {}) for sentence in refused.value.complaints] == [path + inside]


def test_a_complaint_that_names_a_row_says_which_it_is():
    text = (INSTANCES / "questions" / "two-sites.toml").read_text("utf-8")
    path = ["site", 1, "power_mw"]
    with pytest.raises(InstanceError, match=r"site\['south'\]\.power_mw = -1") as refused:
        question_of(edited(text, [(tuple(path), -1)]), OWN)
    (sentence,) = refused.value.complaints
    assert place_of(sentence, names_in(toml_of(text, "question"))) == path
    assert place_of(sentence, {}) is None
    years = "question: phase['2028'].workloads['chat'].train_days = 0: needs more"
    names = {"phase": ("2026", "2028"), "phase[1].workloads": ("code", "chat")}
    assert place_of(years, names) == ["phase", 1, "workloads", 1, "train_days"]


def test_what_json_cannot_hold_becomes_text_and_a_complaint_about_the_text_has_no_place():
    read = json_value(tomllib.loads("a = nan\nb = 2026-01-02\nc = [inf, 1]"))
    assert read == {"a": "nan", "b": "2026-01-02", "c": ["inf", 1]}
    with pytest.raises(InstanceError) as refused:
        question_of("schema = ", OWN)
    assert [place_of(sentence, {}) for sentence in refused.value.complaints] == [None]


MANY = [f"worklod{number} = 1" for number in range(28_000)]
FLOODED = {  # very many keys, or one of very many parts, or long texts
    "top switches": "\n".join(MANY) + "\n" + TINY,
    "in a table": TINY.replace("[cluster]", "[cluster]\n" + "\n".join(MANY)),
    "workloads": TINY + "".join(f"\n[[workload]]\nx{number} = 1" for number in range(len(MANY) // 2)),
    "dots": TINY + "\n" + ".".join("a" * len(MANY)) + " = 1",
    "long key": "k" * 10 * len(MANY) + " = 1\n" + TINY,
    "long name": TINY.replace('"64x400g"', f'"{"x y" * len(MANY)}"'),
}


@pytest.mark.parametrize("name", FLOODED)
def test_very_many_keys_and_long_texts_are_refused_at_once_and_in_short(name: str) -> None:
    started = time.process_time()
    with pytest.raises(InstanceError) as refused:
        question_of(FLOODED[name], OwnCatalog())
    assert time.process_time() - started < 2
    assert 1 <= len(refused.value.complaints) <= 101
    assert max(map(len, refused.value.complaints)) < 500
