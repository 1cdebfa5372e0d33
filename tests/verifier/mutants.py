"""Plans with one field changed.

Informative fields are left alone: they tell how an answer was found, and nothing about a cluster changes with them.
"""

import copy
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from hypothesis import settings
from pydantic import ValidationError

from coopt.instance.schema import Instance
from coopt.plan.schema import Plan
from coopt.verifier.audit import verify
from tests.changes import REPEATED

Path = tuple[str | int, ...]

ONE_OF = 3 if settings().derandomize else 1
"""One of so many mutants is tried; campaigns try all."""

INFORMATIVE: tuple[Path, ...] = (
    ("stop_reason",), ("explanation",), ("timing_s",), ("solver", "name"), ("solver", "version"),
    ("solver", "formulation"), ("solver", "nodes"), ("solver", "columns_enumerated"), ("solver", "columns_gated"),
    ("solver", "columns_kept"), ("solver", "families"), ("solver", "cuts"), ("solver", "witness"),
)  # fmt: skip
"""Fields (with all below them) that claim nothing about the design; of `solver.options` only `gap` claims something."""

NO_NETWORK: tuple[Path, ...] = (
    ("design", "fabric", "kind"),
    ("design", "fabric", "nic", "name"),
    ("design", "fabric", "switch", "name"),
)
"""Names that a plan of one domain has to fill in and that buy nothing there: any listed name is as true as another."""

OPTIONAL = ("mfu_causal",)
"""Fields that older plans do not have, which claim nothing where they are left out."""


def _buys_nothing(plan: dict[str, Any], path: Path) -> bool:
    """Whether a path leads to a name of a network that is not there."""
    within, place = (path[2:], plan["parts"][path[1]]) if path[0] == "parts" and len(path) > 2 else (path, plan)
    return within in NO_NETWORK and place["design"]["fabric"]["tiers"] == 0


def mutants(plan: dict[str, Any], names: dict[str, list[str]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """All plans that differ from `plan` in one leaf, one missing entry or one entry too many; with a label.

    What the top of a plan repeats of its only part is changed in both places, so that more than their difference is
    looked at; `one_sided` changes the part alone.

    Parameters
    ----------
    names
        For the last key of a path, other words that would pass there at first sight.
    """
    for path, value in nodes(plan):
        if is_informative(path) or (path[:2] == ("parts", 0) and _top(plan, path) is not None):
            continue
        for other in alternatives(path, value, {} if _buys_nothing(plan, path) else names):
            changed = replaced(plan, path, other)
            if path[0] in REPEATED and _top(plan, ("parts", 0, *path)) is not None:
                changed = replaced(changed, ("parts", 0, *path), other)
            yield f"{'.'.join(map(str, path))} = {other!r}", changed


def one_sided(plan: dict[str, Any], names: dict[str, list[str]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """All plans that differ from `plan` in one leaf of its only part, which the top of the plan repeats otherwise."""
    for path, value in nodes(plan["parts"][0], ("parts", 0)):
        if _top(plan, path) is not None:
            for other in alternatives(path, value, names):
                yield f"{'.'.join(map(str, path))} = {other!r}", replaced(plan, path, other)


def _top(plan: dict[str, Any], path: Path) -> Any:
    """What the top of a plan repeats of its only part; None where it does not repeat that."""
    parts = plan.get("parts", [])
    if len(parts) != 1 or len(path) < 3 or path[2] not in REPEATED:
        return None
    return parts[0][path[2]] if plan[path[2]] == parts[0][path[2]] else None


def is_informative(path: Path) -> bool:
    """Whether a path leads to or below an informative field."""
    if path[:2] == ("solver", "options"):
        return path != ("solver", "options", "gap")
    return path == ("solver",) or any(path[: len(known)] == known for known in INFORMATIVE)


def nodes(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """All leaves, lists and tables below a value."""
    if path:
        yield path, value
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from nodes(inner, (*path, key))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from nodes(inner, (*path, i))


def alternatives(path: Path, value: Any, names: dict[str, list[str]]) -> Iterator[Any]:
    """Other values for a field, none equal to its own."""
    found: list[Any] = []
    if isinstance(value, bool):
        found = [not value]
    elif isinstance(value, int):
        found = [value + 1, value - 1, -value, 2 * value, 0, 10**12, 10**400, value * 1.01]
    elif isinstance(value, float):
        found = [value + 1, value * 1.01, value * 0.99, value * (1 + 1e-6), -value, 0.0, 1e308]
    elif isinstance(value, str):
        key = "kind" if path[-1] == "kind" and "items" in path else ".".join(map(str, path[-2:]))
        found = [f"{value}?", "", *names.get(key, []), *names.get(str(path[-1]), [])]
    elif value is None:
        found = [1, 0.5, "one"]
    elif isinstance(value, list):
        found = [value[:i] + value[i + 1 :] for i in range(len(value))] + [[*value, item] for item in value[:1]] + [[]]
    elif isinstance(value, dict):
        needed = [key for key in value if key not in OPTIONAL]
        found = [{k: v for k, v in value.items() if k != key} for key in needed] + [{**value, "another": 1}]
    if value is not None and path[-1] not in OPTIONAL:
        found.append(None)
    yield from (other for other in found if not _same(other, value))


def _same(other: Any, value: Any) -> bool:
    """Whether two values are equal, numbers up to rounding."""
    if isinstance(value, float) and isinstance(other, float):
        return abs(other - value) <= 1e-9 * max(1.0, abs(value))
    return type(other) is type(value) and bool(other == value)


def replaced(plan: dict[str, Any], path: Path, value: Any) -> dict[str, Any]:
    """The plan with another value at a path; all beside the path is shared with the plan."""
    changed = copy.copy(plan)
    here: Any = changed
    for key in path[:-1]:
        here[key] = copy.copy(here[key])
        here = here[key]
    here[path[-1]] = value
    return changed


ONE_OF_MANY = re.compile(
    r"(?<![-\d.,])1 (switches|links|planes|tiers|GPUs|NICs|ports|uplinks|domains|racks|transceivers|years)\b"
    r"|\b([a-z]+) \2\b"
)


def names_of(instance: Instance) -> dict[str, list[str]]:
    """Words of the instance that could stand in a field, by the field's name."""
    network = instance.network
    optics = [optic.name for optic in network.optics]
    return {
        "status": ["optimal", "feasible", "infeasible", "unknown"],
        "objective.kind": ["capex", "power", "tco"],
        "kind": ["hb", "nic", "switch", "optics", "gpu"],
        "fabric.kind": ["rail-only", "rail-optimized", "clos"],
        "hb_domain.name": [domain.name for domain in network.hb_domains],
        "nic.name": [nic.name for nic in network.nics],
        "switch.name": [part.name for part in network.switches],
        "optic": optics,
        "optic_below": optics,
        "item": optics,
        "name": [workload.name for workload in instance.workload],
        "recompute": ["none", "selective", "full"],
    }


FEWEST = 20 // ONE_OF
"""Mutants of the emptiest answer that are plans at all: with fewer, a survivor may just not have been tried."""


def survivors(
    instance: Instance,
    plan: dict[str, Any],
    words: dict[str, list[str]] | None = None,
    every: int = 1,
    spared: tuple[str, ...] = (),
) -> list[str]:
    """Mutants that pass, or fail without a sentence or with one on `1 links` or `of of`; enough have to be tried.

    Parameters
    ----------
    words
        What could stand in a field, by its name; as the instance has it where left out.
    every
        One of so many mutants of those that a run tries is looked at.
    spared
        Mutants whose label begins so are not looked at.
    """
    found, tried, whole = [], 0, Plan.model_validate(plan)
    for label, table in islice(mutants(plan, words or names_of(instance)), 0, None, every * ONE_OF):
        if label.startswith(spared):
            continue
        try:
            changed = Plan.model_validate(table)
        except ValidationError:
            continue
        if changed == whole:
            continue
        tried += 1
        verdict = verify(instance, changed)
        told = verdict.failures and all(
            check.why.endswith(".") and not ONE_OF_MANY.search(check.why) for check in verdict.failures
        )
        if verdict.accepted or not told:
            found.append(label)
    assert tried >= FEWEST, tried
    return found
