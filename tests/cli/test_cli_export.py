"""`coopt export`: the network of a plan in the formats of other programs."""

import networkx as nx
import pytest

from coopt.cli.files import FORMATS, writers


@pytest.mark.parametrize("words", [[], ["--compressed"]])
def test_a_graph_is_written_and_opens(coopt, planned, tmp_path, words):
    file = tmp_path / "network.graphml"
    done = coopt("export", *planned, "--format", "graphml", "-o", file, *words)
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", f"coopt: graphml written to {file}\n")
    graph = nx.read_graphml(file)
    kinds = {kind for _, kind in graph.nodes(data="kind")}
    assert kinds == ({"leaf"} if words else {"hb", "gpu", "nic", "leaf"})
    assert graph.graph["name"] == "tiny"
    dot = coopt("export", *planned, "--format", "dot", *words).stdout
    assert dot.startswith('graph "tiny" {\n  graph [planes="8"')


@pytest.mark.parametrize("name", [name for name in FORMATS if name not in ("nemo", "torchtitan")])
def test_every_format_is_written_to_a_file_and_to_stdout(coopt, planned, tmp_path, name):
    assert list(writers()) == list(FORMATS)
    file = tmp_path / f"it{FORMATS[name].endings[0]}"
    done = coopt("export", *planned, "--format", name, "-o", file)
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", f"coopt: {name} written to {file}\n")
    again = coopt("export", *planned, "--format", name)
    if FORMATS[name].binary:
        assert (again.exit_code, again.stdout, "needs -o FILE" in again.stderr) == (2, "", True)
    else:
        assert (again.stdout, again.stderr) == (file.read_text("utf-8"), "")
        assert coopt("export", *planned, "--format", name, "-o", "-").stdout == again.stdout


def test_one_hb_domain_is_refused(coopt, solved, tmp_path):
    file = tmp_path / "x.dot"
    alone = solved(("gpus = 64", "gpus = 8"), ("time_s = 1.0", "time_s = 100.0"))
    done = coopt("export", *alone, "--format", "dot", "-o", file)
    assert (done.exit_code, "no switches" in done.stderr, file.exists()) == (1, True, False)
