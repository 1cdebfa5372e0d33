"""The instances whose LP bounds are on file: those of `instances/`, and small ones where a kind of
problem has none.

An LP bound is the optimum of a formulation with fractions in place of whole numbers, before any
cut.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from pyomo.core.plugins.transform.discrete_vars import RelaxIntegerVars

import coopt
from coopt.instance.schema import Instance
from coopt.plan.schema import ObjectiveClaim, Plan
from coopt.solving.export_files import formulations_of, programs_of
from coopt.solving.highs import options, solve
from coopt.solving.runs import Program

INSTANCES = Path(__file__).parents[1] / "instances"
CHANGED: dict[str, tuple[str, dict[str, Any]]] = {
    "direct-8": (
        "direct-32",
        {"cluster.gpus": 512, "workload.0.global_batch": 128, "workload.0.mapping.dp": [8]},
    ),
    "fleet-131k-w8-core-hb32": (
        "fleet-131k-w8-core",
        {"network.hb_domains": ["h100-hb32"], "network.fabrics": ["rail-only"]},
    ),
    "nextgen-100b-s4": (
        "nextgen-100b",
        {
            "cluster.gpus": 165_888,
            "cluster.shares": 4,
            "workload.0.global_batch": 9216,
            "workload.1.global_batch": 9216,
        },
    ),
    "phased-131k-p3-rail-only": (
        "phased-131k-p3",
        {
            "network.hb_domains": ["h100-hb64", "gh200-256"],
            "network.fabrics": ["rail-only"],
            "network.switches": ["128x400g"],
        },
    ),
    "rail-only-gpt-1t-regret": (
        "rail-only-gpt-1t",
        {
            "workload.0.max_iteration_time_s": 3.8,
            "network.hb_domains": ["h100-hb32", "gh200-256"],
            "network.switches": ["64x400g", "128x400g"],
            "robust": {"aim": "regret", "prices": {"hb": [0.1, 3.0], "optics": [0.3, 3.0]}},
        },
    ),
    "tiny-64-survive": ("tiny-64", {"robust": {"survive": ["nic", "plane"], "slower": 1.5}}),
}
"""By name the instance and what is changed in it."""

LARGE = frozenset(
    {
        "direct-32",
        "direct-64",
        "fleet-131k-w16",
        "fleet-131k-w64",
        "fleet-131k-w8",
        "fleet-131k-w8-core",
        "fleet-3-phases-2-sites",
        "fleet-core-growth",
        "llama3-405b-16k",
        "nextgen-100b",
        "phased-131k-p3",
        "phased-131k-p4",
        "shared-131k-w8",
    }
)
"""Those that take seconds, of formulations that smaller ones have too; the benchmark alone solves
them again.
"""


def names() -> list[str]:
    """All of them."""
    return [*sorted(file.stem for file in INSTANCES.glob("*.toml")), *CHANGED]


def instance_of(name: str) -> Instance:
    """The instance of that name."""
    file, changes = CHANGED.get(name, (name, {}))
    return coopt.load(INSTANCES / f"{file}.toml", changes)


def claim_of(plan: Plan) -> ObjectiveClaim:
    """What a plan claims of its kind; where direct links and switches are rivals, of direct
    links.
    """
    return plan.objective if plan.rivals is None else plan.rivals.direct


def lp_bounds(instance: Instance) -> dict[str, float | None]:
    """By the name of each formulation the optimum of its linear relaxation, before any cut.

    In USD or W, as the objective. None where nothing can serve every workload, or where even
    fractions exceed a limit.
    """
    programs = programs_of(instance)
    relaxed = {
        name: [_relaxed(program) for program in programs(name)]
        for name in formulations_of(instance)
    }
    return {
        name: min((bound for bound in bounds if bound is not None), default=None)
        for name, bounds in relaxed.items()
    }


def _relaxed(program: Program) -> float | None:
    RelaxIntegerVars().apply_to(program.model)
    answer = solve(program.model, time_limit_s=math.inf, settings=options(gap=0.0, threads=1))
    assert answer.outcome in ("optimal", "infeasible"), answer.detail
    return None if answer.value is None else program.base + program.unit * answer.value
