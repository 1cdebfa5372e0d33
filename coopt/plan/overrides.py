"""Whether the values that a plan says were set in its instance (`--set`) stand in another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from coopt.instance.catalog import UnknownNameError
from coopt.instance.schema import Instance, overridden
from coopt.instance.texts import InstanceError
from coopt.plan.schema import Plan


def may_differ_as_set(instance: Instance, plan: Plan) -> bool:
    """Whether an instance may differ from that of a plan in the values that were set for it."""
    values = plan.overrides.values
    if values.get("name", instance.name) != plan.instance.name:
        return False
    unsure = (
        key
        for key, value in values.items()
        if not _is_kept(instance, key) or _sets_another(instance, {key: value}) is None
    )
    return bool(keys_set_apart(instance, values)) or any(unsure)


def keys_set_apart(instance: Instance, values: Mapping[str, Any]) -> list[str]:
    """Return the keys of values that make another instance where they are set once more, as far as
    that can be said.
    """
    # put in together, as one may lie below another
    if _sets_another(instance, values) is False:
        return []
    settable = {key: value for key, value in values.items() if _is_kept(instance, key)}
    settable = {
        key: value
        for key, value in settable.items()
        if _sets_another(instance, {key: value}) is not None
    }
    if not _sets_another(instance, settable):
        return []
    apart = [key for key, value in settable.items() if _sets_another(instance, {key: value})]
    return apart or [*settable]


def _is_kept(instance: Instance, key: str) -> bool:
    """Whether an instance keeps what stands at a key: not which files its names are from, nor
    prices without hosts.
    """
    hosted = "host" in instance.objective.include and key.startswith("network.hb_domains")
    return not (key.startswith("catalog") or (hosted and key.endswith("per_gpu")))


def _sets_another(instance: Instance, values: Mapping[str, Any]) -> bool | None:
    """Whether values, put into an instance once more, make another of it.

    None where they cannot be put in: a place in a range, of which the numbers are kept, a name of
    one's own catalog.
    """
    try:
        table = overridden(instance.model_dump(mode="json", by_alias=True), values, instance.name)
    except InstanceError:
        return None
    try:
        return type(instance).model_validate(table) != instance
    except ValidationError as error:
        causes = [cause.get("ctx", {}).get("error") for cause in error.errors()]
        return None if any(isinstance(cause, UnknownNameError) for cause in causes) else True
