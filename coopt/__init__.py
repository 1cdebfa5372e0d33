"""Plan a GPU training cluster: HB domains, the network between them and the split of each workload,
with proof.

>>> import coopt
>>> instance = coopt.load("instances/tiny-64.toml")
>>> plan = coopt.solve(instance)
>>> coopt.verify(instance, plan).accepted
True

Instances and plans round-trip through JSON, and everything can be pickled; docs/embedding.md says
what else a program that embeds coopt may rely on.

>>> coopt.Plan.model_validate_json(plan.model_dump_json(by_alias=True)) == plan
True
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from coopt._version import __version__

if TYPE_CHECKING:
    from coopt.explain.answer import explain
    from coopt.explain.models import best_model
    from coopt.instance.catalog import listed as catalog
    from coopt.instance.schema import Instance, load
    from coopt.instance.texts import InstanceError
    from coopt.plan.difference import Difference
    from coopt.plan.difference import difference_of as diff
    from coopt.plan.explanation import Explanation
    from coopt.plan.front import Front
    from coopt.plan.json_schema import schema_table as schema
    from coopt.plan.networks import NetworksBill, Reproduction
    from coopt.plan.schema import Plan, Progress, Proof
    from coopt.plan.store import Evaluation, MappingRanking
    from coopt.plan.traffic import Faults, Routing, Simulation, TrafficReport
    from coopt.report.page.whole import draw, report
    from coopt.solving.answer import solve
    from coopt.solving.assumptions import assess
    from coopt.solving.bills import bom
    from coopt.solving.evaluate import evaluate_instance as evaluate
    from coopt.solving.evaluate import mappings
    from coopt.solving.fronts.sweep import pareto
    from coopt.solving.plan_routes import route_plan as route
    from coopt.solving.plan_traffic import traffic
    from coopt.solving.proofs.search import prove
    from coopt.solving.reproduction import reproduce
    from coopt.solving.without_parts import plan_faults as faults
    from coopt.verifier.audit import evaluate_plan, verify
    from coopt.verifier.certificates import Certificate, certify
    from coopt.verifier.checks.verdict import Verdict
    from coopt.verifier.simulation.plans import simulate

__all__ = [
    "Certificate",
    "Difference",
    "Evaluation",
    "Explanation",
    "Faults",
    "Front",
    "Instance",
    "InstanceError",
    "MappingRanking",
    "NetworksBill",
    "Plan",
    "Progress",
    "Proof",
    "Reproduction",
    "Routing",
    "Simulation",
    "TrafficReport",
    "Verdict",
    "__version__",
    "assess",
    "best_model",
    "bom",
    "catalog",
    "certify",
    "diff",
    "draw",
    "evaluate",
    "evaluate_plan",
    "explain",
    "faults",
    "load",
    "mappings",
    "pareto",
    "prove",
    "report",
    "reproduce",
    "route",
    "schema",
    "simulate",
    "solve",
    "traffic",
    "verify",
]

# a name is imported when it is first used, so that `import coopt` costs nothing
_HOMES = {
    "Certificate": ("coopt.verifier.certificates", "Certificate"),
    "certify": ("coopt.verifier.certificates", "certify"),
    "Evaluation": ("coopt.plan.store", "Evaluation"),
    "Explanation": ("coopt.plan.explanation", "Explanation"),
    "Faults": ("coopt.plan.traffic", "Faults"),
    "Front": ("coopt.plan.front", "Front"),
    "Instance": ("coopt.instance.schema", "Instance"),
    "InstanceError": ("coopt.instance.texts", "InstanceError"),
    "MappingRanking": ("coopt.plan.store", "MappingRanking"),
    "NetworksBill": ("coopt.plan.networks", "NetworksBill"),
    "Plan": ("coopt.plan.schema", "Plan"),
    "Progress": ("coopt.plan.schema", "Progress"),
    "Proof": ("coopt.plan.schema", "Proof"),
    "Reproduction": ("coopt.plan.networks", "Reproduction"),
    "Routing": ("coopt.plan.traffic", "Routing"),
    "Simulation": ("coopt.plan.traffic", "Simulation"),
    "Verdict": ("coopt.verifier.checks.verdict", "Verdict"),
    "Difference": ("coopt.plan.difference", "Difference"),
    "TrafficReport": ("coopt.plan.traffic", "TrafficReport"),
    "catalog": ("coopt.instance.catalog", "listed"),
    "diff": ("coopt.plan.difference", "difference_of"),
    "draw": ("coopt.report.page.whole", "draw"),
    "report": ("coopt.report.page.whole", "report"),
    "schema": ("coopt.plan.json_schema", "schema_table"),
    "traffic": ("coopt.solving.plan_traffic", "traffic"),
    "assess": ("coopt.solving.assumptions", "assess"),
    "best_model": ("coopt.explain.models", "best_model"),
    "bom": ("coopt.solving.bills", "bom"),
    "evaluate": ("coopt.solving.evaluate", "evaluate_instance"),
    "evaluate_plan": ("coopt.verifier.audit", "evaluate_plan"),
    "explain": ("coopt.explain.answer", "explain"),
    "faults": ("coopt.solving.without_parts", "plan_faults"),
    "load": ("coopt.instance.schema", "load"),
    "mappings": ("coopt.solving.evaluate", "mappings"),
    "pareto": ("coopt.solving.fronts.sweep", "pareto"),
    "prove": ("coopt.solving.proofs.search", "prove"),
    "reproduce": ("coopt.solving.reproduction", "reproduce"),
    "route": ("coopt.solving.plan_routes", "route_plan"),
    "simulate": ("coopt.verifier.simulation.plans", "simulate"),
    "solve": ("coopt.solving.answer", "solve"),
    "verify": ("coopt.verifier.audit", "verify"),
}


def public(name: str) -> Any:
    """The public object of that name, whatever package of `coopt` has it too
    (`coopt._interpreter`).
    """
    if name not in _HOMES:
        raise AttributeError(f"module 'coopt' has no attribute {name!r}")
    module, attribute = _HOMES[name]
    return getattr(import_module(module), attribute)


__getattr__ = public


def __dir__() -> list[str]:
    return __all__
