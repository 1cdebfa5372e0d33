"""What the same HB domains cost when any GPU can reach any other at full bandwidth."""

from __future__ import annotations

from coopt.instance.robust import as_billed
from coopt.instance.schema import Instance
from coopt.network.blueprint import design
from coopt.network.parts import cost_of
from coopt.network.space import families
from coopt.plan.schema import Cost, Design, Plan


def any_to_any(instance: Instance, plan: Plan) -> tuple[Design, Cost] | None:
    """The cheapest full-bisection flat Clos with the plan's HB domain and NICs, at the prices of the plan's bill.

    It has the same GPUs, so its iteration time is at most the plan's. None where the catalog has no such network, and
    for a plan of phases: what is bought over years has no one list of prices.
    """
    chosen, instance = plan.design, as_billed(instance)
    if chosen is None or plan.phases:
        return None
    objective = instance.objective.model_copy(update={"minimize": plan.objective.kind})
    full = instance.network.model_copy(update={"fabrics": ("clos",), "oversubscription": 1.0, "max_tiers": 3})
    fitting = [
        (family, uplinks)
        for family in families(
            instance.model_copy(update={"network": full, "objective": objective}), (plan.objective.kind,)
        )
        if (family.gpus, family.hb.name, family.active) == (chosen.gpus, chosen.hb_domain.name, chosen.hb_domain.active)
        and (family.nic.name, family.nics_per_gpu) == (chosen.fabric.nic.name, chosen.fabric.nic.per_gpu)
        for uplinks in family.uplink_choices
        if family.slowdown(uplinks) * family.pod_ratio == 1.0
    ]
    priced = [(design(family, uplinks), cost_of(instance, family, uplinks)) for family, uplinks in fitting]
    return min(priced, key=lambda pair: pair[1].of(plan.objective.kind), default=None)
