"""Named instances over all kinds of problems: sizes from 64 to 1,048,576 GPUs, one to 64 workloads.

Bounds follow from the instance: so many times the least iteration time that any design of it has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import coopt
from coopt.instance.schema import Instance
from coopt.instance.texts import read_toml
from coopt.solving.fastest import fastest_design

INSTANCES = Path(__file__).parents[1] / "instances"
MODELS = [(512, "llama3-8b"), (4096, "llama3-70b"), (16_384, "gpt-175b"), (2**20, "gpt-1t")]
SIZES = [2**k for k in range(6, 21)]
SHIPPED = (
    "tiny-64",
    "megatron-530b",
    "llama3-405b-16k",
    "rail-only-gpt-1t",
    "infeasible-deadline",
    "fleet-131k-w8",
    "fleet-131k-w8-core",
    "fleet-131k-w16",
    "phased-128",
    "phased-131k-p3",
    "direct-32",
    "direct-64",
)
SLACK = 1.1  # bound over the least iteration time


@dataclass(frozen=True, kw_only=True)
class Case:
    """A named question; `size` is what grows along its series: GPUs, workloads, shares, ways prices
    may turn out.
    """

    name: str
    kind: str
    size: int
    question: Callable[[], Instance]


def cases() -> Iterator[Case]:
    """All of them, kind by kind."""
    for gpus in SIZES:
        yield Case(
            name=f"shared-n{gpus}",
            kind="one workload",
            size=gpus,
            question=partial(one_workload, gpus),
        )
    for count in range(1, 9):
        question = partial(_first, "shared-131k-w8", "workload", count)
        yield Case(
            name=f"shared-131k-w{count}", kind="workloads in turn", size=count, question=question
        )
    for aim in ("tco", "power"):
        for gpus in (256, 2048, 16_384, 131_072):
            question = partial(one_workload, gpus, objective={"minimize": aim})
            yield Case(
                name=f"shared-n{gpus}-{aim}",
                kind=f"one workload, {aim}",
                size=gpus,
                question=question,
            )
    for name in SHIPPED:
        yield Case(
            name=name,
            kind="shipped",
            size=0,
            question=partial(coopt.load, INSTANCES / f"{name}.toml"),
        )
    yield from _sites()
    yield from _robust()
    yield from _series("fleet-131k-w64", "partition", "workload", (2, 4, 8, 16, 32, 64))
    yield from _series("phased-131k-p4", "phased", "phase", (2, 3, 4, 5))


def one_workload(gpus: int, **changes: Any) -> Instance:
    """One model on as many H100; the larger the cluster, the larger the model."""
    model = next(name for most, name in MODELS if gpus <= most)
    table = read_toml(INSTANCES / "rail-only-gpt-1t.toml") | changes
    table["cluster"] = {"gpu": "h100-sxm", "gpus": gpus}
    table["network"] |= {"hb_domains": ["hgx-h100-8", "h100-hb32", "h100-hb64", "gh200-256"]}
    table["workload"] = [
        {
            "name": model,
            "model": model,
            "global_batch": max(gpus // 8, 64),
            "max_iteration_time_s": 1e6,
        }
    ]
    return _bounded(table)


def _bounded(table: dict[str, Any]) -> Instance:
    """The question with every bound `SLACK` times the least time of that workload alone."""
    for workload in table["workload"]:
        alone = Instance.model_validate(
            {**table, "workload": [workload | {"max_iteration_time_s": 1e6}]}
        )
        fastest = fastest_design(alone.model_copy(update={"robust": None}))
        assert not isinstance(fastest, tuple), fastest
        workload["max_iteration_time_s"] = SLACK * fastest.workloads[0].iteration_time_s
    return Instance.model_validate(table)


def _first(file: str, tables: str, count: int) -> Instance:
    """An instance cut down to its first workloads or phases, or with more phases like the last."""
    table = read_toml(INSTANCES / f"{file}.toml")
    found = table[tables][:count]
    while len(found) < count:  # the last phase goes on for two more years
        found.append(found[-1] | {"year": found[-1]["year"] + 2})
    if tables == "phase":
        table["cluster"]["gpus"] = found[-1]["gpus"]
        asked = str([phase.get("workloads", table["workload"]) for phase in found])
        table["workload"] = [
            workload for workload in table["workload"] if repr(workload["name"]) in asked
        ]
    return Instance.model_validate(table | {tables: found})


def _sites() -> Iterator[Case]:
    for shares in (6, 10, 15, 20, 30):
        question = partial(coopt.load, INSTANCES / "nextgen-100b.toml", {"cluster.shares": shares})
        yield Case(name=f"nextgen-100b-s{shares}", kind="sites", size=shares, question=question)


def _robust() -> Iterator[Case]:
    ends = {"hb": [0.8, 1.2], "switch": [0.7, 1.4], "optics": [0.6, 1.2], "nic": [0.8, 1.3]}
    for count in range(1, 5):
        robust = {"aim": "regret", "prices": dict(list(ends.items())[:count])}
        question = partial(one_workload, 4096, robust=robust)
        yield Case(name=f"regret-n4096-k{count}", kind="regret", size=count, question=question)
    for gpus in (1024, 4096, 16_384):
        question = partial(one_workload, gpus, robust={"survive": ["nic", "plane"], "slower": 1.5})
        yield Case(name=f"survive-n{gpus}", kind="survival", size=gpus, question=question)
    for gpus in (1024, 4096, 16_384):
        robust = {"survive": ["nic", "domain"], "slower": {"nic": 1.5, "domain": 2.5}}
        question = partial(one_workload, gpus, robust=robust)
        yield Case(
            name=f"survive-domain-n{gpus}",
            kind="survival of a domain",
            size=gpus,
            question=question,
        )


def _series(file: str, kind: str, tables: str, counts: tuple[int, ...]) -> Iterator[Case]:
    for count in counts:
        yield Case(
            name=f"{file}-first-{count}",
            kind=kind,
            size=count,
            question=partial(_first, file, tables, count),
        )
