"""The rank file says what schedulers need, and agrees with the network that is exported beside it."""

import csv
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

import coopt
from coopt.instance.texts import InstanceError
from coopt.network.graph_files import network_graph
from coopt.report.csv_files import RANK_COLUMNS, ranks_csv
from tests.conftest import ask, small_model


def rows_of(text: str) -> list[dict[str, Any]]:
    found = list(csv.DictReader(text.splitlines()))
    return [{key: int(value) if value.isdigit() else value for key, value in row.items()} for row in found]


def solved(**changes: Any) -> tuple[Any, Any, list[dict[str, Any]]]:
    instance = ask(**changes)
    plan = coopt.solve(instance)
    return instance, plan, rows_of(ranks_csv(instance, plan))


TWO = [
    {"name": name, "model": small_model(), "global_batch": batch, "max_iteration_time_s": 2.0}
    for name, batch in (("a, first", 64), ("b", 128))
]


@pytest.mark.parametrize("changes", [{}, {"workload": TWO}, {"network__nics_per_gpu": 2}, {"cluster__gpus": 48}])
def test_every_rank_of_every_workload_has_a_line_and_a_gpu_of_its_own(changes: dict[str, Any]) -> None:
    instance, plan, rows = solved(**changes)
    assert tuple(rows[0]) == RANK_COLUMNS
    for workload in instance.workload:
        mine = [row for row in rows if row["workload"] == workload.name]
        assert [row["rank"] for row in mine] == list(range(plan.design.gpus))
        places = {(row["domain"], row["local_gpu"]) for row in mine}
        active = plan.design.hb_domain.active
        assert places == {(d, g) for d in range(plan.design.hb_domain.count) for g in range(active)}


def test_a_tp_group_shares_a_domain_as_far_as_the_placement_says() -> None:
    _, plan, rows = solved(workload__0__mapping={"tp": 4})
    (one,) = plan.workloads
    domains = defaultdict(list)
    for row in rows:
        domains[row["cp"], row["dp"], row["pp"]].append(row["domain"])
    inside, across = one.placement["tp"]
    for found in domains.values():
        assert len(found) == one.mapping.tp == inside * across
        assert len(set(found)) == across


@pytest.mark.parametrize("changes", [{"network__nics_per_gpu": 2}, {"network__fabrics": "clos"}])
def test_gpus_and_rails_are_those_of_the_network(changes: dict[str, Any]) -> None:
    instance, plan, rows = solved(**changes)
    graph, per_gpu = network_graph(instance, plan), plan.design.fabric.nic.per_gpu
    for row in rows:
        gpu = f"gpu/{row['domain']}/{row['local_gpu']}"
        assert not graph.nodes[gpu]["idle"]
        nics = [node for node in graph.neighbors(gpu) if node.startswith("nic/")]
        rails = [int(rail) for rail in str(row["rails"]).split()]
        assert rails == [row["local_gpu"] * per_gpu + int(nic.rsplit("/", 1)[1]) for nic in sorted(nics)]


def test_a_host_file_for_slurm_takes_one_line_of_awk(tmp_path: Path) -> None:
    """docs/exports.md shows it: line i is the host of rank i."""
    page = (Path(__file__).parents[2] / "docs" / "exports.md").read_text("utf-8")
    (command,) = [line[2:] for line in page.splitlines() if line.startswith("$ awk")]
    instance, plan, rows = solved()
    (tmp_path / "ranks.csv").write_text(ranks_csv(instance, plan), "utf-8")
    names = [f"node-{domain:03}" for domain in range(plan.design.hb_domain.count)]
    (tmp_path / "nodes.txt").write_text("".join(f"{name}\n" for name in names), "utf-8")
    subprocess.run(["bash", "-c", command], cwd=tmp_path, check=True)
    hosts = (tmp_path / "hosts.txt").read_text("utf-8").split()
    assert hosts == [names[row["domain"]] for row in rows]


def test_one_workload_is_taken_by_name() -> None:
    instance, plan, rows = solved(workload=TWO)
    assert rows_of(ranks_csv(instance, plan, workload="b")) == [row for row in rows if row["workload"] == "b"]
    with pytest.raises(InstanceError, match="--workload c: "):
        ranks_csv(instance, plan, workload="c")
