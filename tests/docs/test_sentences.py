"""Sentences that people read, all of them: without slips of the keyboard, and each asks for one thing."""

import re
from functools import cache

import pytest

from coopt.instance.texts import alternatives, both
from docs import sentences
from tests.docs.shown import ROOT

SLIPS = {
    "blanks": r"\S {2,}\S|\s[,.;:](\s|$)|\(\s|\s\)",
    "a word twice": r"\b([a-z]+) \1\b",
    "a before a vowel": r"\ba [aeio]\w",
    "an before a consonant": r"\ban [bcdfgjklmnpqrstvwxyz]",
    "two needs": r"\bneeds\b.*\bneeds\b",
    "a chain of or": r"\bor [^,.;:()]{1,40} or\b",
}
SCRIPTS = ("coopt/report/megatron.py", "coopt/report/torchtitan.py")
"""Write shell and Python, where comments stand two blanks apart."""


@cache
def every_sentence() -> tuple[sentences.Sentence, ...]:
    return tuple(sentences.sentences())


@pytest.mark.parametrize("slip", SLIPS)
def test_no_sentence_has_this_slip(slip: str) -> None:
    found = {
        f"{one.file}:{one.line}: {one.text}"
        for one in every_sentence()
        if one.file not in SCRIPTS and re.search(SLIPS[slip], sentences.VALUE.sub("X", one.text.strip()))
    }
    assert not found


def test_sentences_of_every_room_and_help_are_found_without_docstrings_and_checks() -> None:
    files = {one.file for one in every_sentence()}
    assert files >= {"coopt/cli/main.py", "coopt/verifier/audit.py", "coopt/serve/page/app.js"}
    assert files >= {"coopt/serve/page/index.html", "coopt/report/page/evidence.html.j2"}
    texts = {one.text for one in every_sentence()}
    assert "{domains} without a network" in texts
    assert {"Find the best design for INSTANCE and prove it.", "Stop the search after S seconds."} <= texts
    assert not any("\n    " in text and "Parameters" in text for text in texts)
    assert not any(text.startswith("a part has") for text in texts)


def test_an_example_is_the_sentence_with_values() -> None:
    (one,) = (one for one in every_sentence() if "nobody sells" in one.text)
    shown = f"x {sentences.VALUE.sub('h100-hb16', one.text)} y"
    assert "h100-hb16" in shown
    assert sentences.example(one, shown) == shown[2:-2]
    assert sentences.example(one, "a plan") is None


def test_help_is_shown_and_no_file_is_named_like_an_option(monkeypatch, tmp_path, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["sentences.py", "--help"])
    with pytest.raises(SystemExit, match="0"):
        sentences.main()
    assert "Markdown file" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


def test_names_are_joined_in_one_place_by_commas_and_one_word() -> None:
    joins = re.compile(r"""["'] (?:or|and) ["']\.join""")
    found = [file for file in sorted((ROOT / "coopt").rglob("*.py")) if joins.search(file.read_text("utf-8"))]
    assert not found, "coopt.instance.texts has `alternatives` and `both`"
    for names, one, all_of_them in (
        ("", "", ""), ("a", "a", "a"), ("ab", "a or b", "a and b"), ("123", "1, 2 or 3", "1, 2 and 3")
    ):  # fmt: skip
        assert (alternatives(iter(names)), both(iter(names))) == (one, all_of_them)
