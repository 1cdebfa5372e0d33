"""`coopt schema`, `coopt new` and `coopt catalog`."""

import errno
import json
import os
import re
import resource
import shlex
import signal
import tomllib

import jsonschema
import pytest

from coopt.instance.schema import load
from tests.cli.test_cli_refusals import CHANGES
from tests.conftest import SHIPPED, validator

CORRUPTIONS = ("unknown-key", "text-for-number", "empty-list", "zero-count", "negative-time", "fabric", "schema", "gap")


def schema_of(coopt, *which):
    return json.loads(coopt("schema", *which).stdout)


def assert_fits(coopt, table, *which):
    validator(coopt("schema", *which).stdout).validate(table)


@pytest.mark.parametrize("which", [["instance"], ["plan"], ["front"], ["designs"]])
def test_a_schema_is_valid_and_uses_no_word_that_json_schema_ignores(coopt, which):
    """Nor one on lengths beside a type that has none, which strict readers refuse."""

    def tables(part):
        if isinstance(part, dict):
            yield part
        for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
            yield from tables(inner)

    schema = json.loads(coopt("schema", *which).stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    for table in tables(schema):
        assert not {"gt", "ge", "lt", "le"} & set(table), table
        if {"minLength", "maxLength"} & set(table):
            assert (table.get("type", "string"), "anyOf" in table) == ("string", False), table


def test_every_shipped_instance_fits_the_schema(coopt):
    for shipped in SHIPPED:
        assert_fits(coopt, tomllib.loads(shipped.read_text("utf-8")))


@pytest.mark.parametrize("case", CORRUPTIONS)
def test_what_the_loader_refuses_the_schema_refuses(coopt, written, case):
    """tests/cli/test_cli_refusals.py has the loader refuse them."""
    file = written(CHANGES[case][:2])
    with pytest.raises(jsonschema.ValidationError):
        assert_fits(coopt, tomllib.loads(file.read_text("utf-8")))


def test_a_ratio_fits_as_a_number_and_as_a_list(coopt, written):
    for ratio in ("2.0", "2", "[1.0, 2]", "[2]"):
        file = written(("[network]", f"[network]\noversubscription = {ratio}"))
        assert_fits(coopt, tomllib.loads(file.read_text("utf-8")))


def test_new_writes_an_instance_that_loads_fits_and_solves(coopt, tmp_path):
    """Its first line leads editors to the schema, which takes the place of that of another version."""
    file, former = tmp_path / "mine.toml", tmp_path / "instance.schema.json"
    former.write_text('{"$id": "urn:coopt:instance:0.9.0"}', "utf-8")
    done = coopt("new", file)
    assert (done.exit_code, done.stdout, str(file) in done.stderr) == (0, "", True)
    assert load(file).name == "my-cluster"
    assert_fits(coopt, tomllib.loads(file.read_text("utf-8")))
    mark, address = file.read_text("utf-8").splitlines()[0].split()
    assert mark == "#:schema"
    assert (
        json.loads((tmp_path / address).read_text("utf-8")) == json.loads(former.read_text("utf-8")) == schema_of(coopt)
    )
    assert coopt("solve", file).exit_code == 0


@pytest.mark.parametrize("content", ["precious", "[]", '{"$id": "https://example.org/instance"}'])
def test_new_leaves_a_file_in_the_place_of_the_schema_as_it_is(coopt, tmp_path, content):
    file, schema = tmp_path / "mine.toml", tmp_path / "instance.schema.json"
    schema.write_text(content, "utf-8")
    done = coopt("new", file)
    assert done.exit_code == 0
    assert str(schema) in done.stderr
    assert schema.read_text("utf-8") == content
    assert "#:schema" not in file.read_text("utf-8")
    assert load(file).name == "my-cluster"


def test_a_missing_instance_can_be_written_where_it_was_sought(coopt, tmp_path):
    file = tmp_path / "my plans" / "mine.toml"
    assert f"({file.parent} is none)" in coopt("solve", file).stderr
    file.parent.mkdir()
    hint = re.search("`coopt (.*)`", coopt("solve", file).stderr)[1]
    done = coopt(*shlex.split(hint))
    assert (done.exit_code, file.exists()) == (0, True)
    assert shlex.split(done.stderr)[-3:] == ["coopt", "solve", str(file)]


def test_new_overwrites_nothing(coopt, tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text("precious", "utf-8")
    done = coopt("new", file)
    assert done.exit_code == 1
    assert done.stderr == f"coopt: {file}: already exists, needs the name of a new file\n"
    assert file.read_text("utf-8") == "precious"
    assert list(tmp_path.iterdir()) == [file]


def test_new_takes_a_name_where_files_have_no_second_ones(coopt, tmp_path, monkeypatch):
    def refused(*_):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    file = tmp_path / "mine.toml"
    assert coopt("new", file).exit_code == 0
    text = file.read_text("utf-8")
    assert coopt("new", file).exit_code == 1
    assert file.read_text("utf-8") == text
    assert sorted(place.name for place in tmp_path.iterdir()) == ["instance.schema.json", "mine.toml"]


@pytest.mark.parametrize(("most_bytes", "name"), [(100, "instance.schema.json"), (9_000, "instance.schema.json")])
def test_new_leaves_nothing_behind_where_the_disk_is_full(coopt, tmp_path, most_bytes, name):
    room = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, room[1]))
    try:
        done = coopt("new", tmp_path / "mine.toml")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, room)
        signal.signal(signal.SIGXFSZ, ignored)
    assert (done.exit_code, done.stdout) == (1, "")
    assert f"{name}: cannot be written (File too large)" in done.stderr
    assert not list(tmp_path.iterdir())


def test_the_catalog_lists_kinds_and_shows_figures_with_units_and_sources(coopt):
    text = coopt("catalog", "list").stdout
    assert all(name in text for name in ("h100-sxm", "hgx-h100-8", "cx7-400g", "64x400g", "400g-199", "gpt-1t"))
    text = coopt("catalog", "list", "nic").stdout
    assert ("cx7-400g" in text, "h100-sxm" in text) == (True, False)
    text = coopt("catalog", "show", "64x400g").stdout
    assert all(part in text for part in ("port_gbit_s", "(Gbit/s, not GB/s)", "[2nd] usd: Rail-only (arXiv 2307.12169"))
