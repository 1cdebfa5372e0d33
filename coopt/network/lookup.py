"""From a written-out design back to the family it belongs to."""

from __future__ import annotations

from collections.abc import Iterator

from coopt.instance.errors import InstanceError
from coopt.instance.kinds import require_one_network
from coopt.instance.schema import Instance
from coopt.network.blueprint import design as written_out
from coopt.network.family import Family
from coopt.network.space import families
from coopt.plan.schema import Design, Plan


def matching(instance: Instance, design: Design) -> Iterator[tuple[Family, int]]:
    """Families and uplinks of the instance that are written out as this design."""
    for family in families(instance):
        if family.gpus == design.gpus:
            for uplinks in family.uplink_choices:
                if written_out(family, uplinks) == design:
                    yield family, uplinks


def built(instance: Instance, plan: Plan, asked: str = "a plan of one network") -> tuple[Family, int]:
    """The family and the uplinks of a plan.

    Parameters
    ----------
    asked
        What they are wanted for, as a refusal calls it.

    Raises
    ------
    InstanceError
        When the instance is not of one network, and when the plan has no design or one that it does not allow.
    """
    require_one_network(instance, asked)
    if plan.together is not None:
        raise InstanceError(f"{instance.name}: the plan is of several sites, needs the plan of this instance")
    if plan.design is None:
        raise InstanceError(
            f"{instance.name}: the plan is {plan.status} and has no design, needs a plan that builds one"
        )
    found = next(matching(instance, plan.design), None)
    if found is None:
        raise InstanceError(
            f"{instance.name}: the plan's network is not one this instance allows, needs the plan of this instance "
            "(`coopt verify` lists what differs)"
        )
    return found
