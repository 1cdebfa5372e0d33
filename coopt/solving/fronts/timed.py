r"""The best design by an objective that weighs its bill by the time of training: all designs are gone through.

The time of training, dollars for each token and the carbon of a training are no sums of a bill, and no linear ones of
decisions: they are a sum of the bill times the time that training takes. Both are known of every design, as for the
front of cost against time, so that the least product is read off the list. With t the seconds of an iteration on the
calendar, interruptions included, and T tokens in each, of which a large batch takes more for the same training,

.. math:: t, \qquad \frac{\mathrm{TCO} \cdot t}{T \cdot \mathrm{years}}, \qquad
    P \cdot \mathrm{PUE} \cdot t \cdot \mathrm{iterations} \cdot \mathrm{kg/kWh}
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from coopt.availability.uptime import HOUR_S
from coopt.columns.pace import unbounded
from coopt.instance.schema import Instance
from coopt.network.parts import HOURS_PER_YEAR
from coopt.network.space import families
from coopt.plan.couplings import one_network
from coopt.plan.schema import Plan
from coopt.solving.candidates import recomputed
from coopt.solving.days import ROUNDED, allowed_s
from coopt.solving.fronts.designs import PacedDesigns, all_designs
from coopt.solving.outcome import answered, claim_of, infeasible, written_out
from coopt.solving.runs import Run
from coopt.solving.shared import shared_plan

J_PER_KWH = 3.6e6
TIES = 5e-10  # of the least worth: designs this close are worth the same


def weight_of(instance: Instance) -> float:
    """What the objective is of a bill of 1 (USD or W) and an iteration of 1 s on the calendar."""
    objective, (workload,) = instance.objective, instance.workload
    if objective.minimize == "time":
        return 1.0
    if objective.minimize == "usd_per_token":
        return workload.tokens_for_one / (workload.tokens_per_iteration * objective.years * HOURS_PER_YEAR * HOUR_S)
    assert objective.kg_co2_per_kwh is not None, "the instance refuses carbon without it"
    return objective.pue * workload.iterations * objective.kg_co2_per_kwh / J_PER_KWH


def timed_plan(run: Run) -> Plan:
    """One network for one workload, the best by an objective that counts time."""
    instance, run.formulation = run.instance, "front"
    objective = instance.objective.model_copy(update={"minimize": instance.objective.billed})
    billed = instance.model_copy(update={"objective": objective})
    every = tuple(run.in_time(families(billed)))
    run.tell("columns", f"{len(every):,} network families")
    run.log.families = len(every)
    run.log.table = table = unbounded(billed, every, lambda site: run.check_clock())
    designs = all_designs(billed, every, table, run.check_clock)
    best = None if designs is None else _best(instance, designs)
    if designs is None or best is None:
        return infeasible(run, shared_plan(replace(run, instance=billed)).explanation)
    run.tell("build", f"{len(designs.pace):,} designs gone through")
    family, uplinks = designs.families[designs.family[best]], int(designs.uplinks[best])
    found = written_out(billed, recomputed(billed, table, family, uplinks), float(designs.value[best]), table)
    (workload,) = instance.workload
    runs = tuple(
        one.model_copy(update={"bound_s": allowed_s(instance, family, uplinks, workload, one)})
        for one in found.workloads
    )
    seconds = float(designs.pace[best]) * workload.bound_s
    counted = 1.0 if instance.objective.minimize == "time" else found.cost.of(instance.objective.billed)
    value = weight_of(instance) * seconds * counted
    claim = claim_of(instance.objective.minimize, value, value)
    parts = (one_network(found.cost, runs, design=found.design),)
    return answered(run, "optimal", claim, cost=found.cost, parts=parts)


def _best(instance: Instance, designs: PacedDesigns) -> int | None:
    """The design of least worth within the bound; of equal ones the cheapest, then the fastest."""
    within = np.flatnonzero(designs.pace <= ROUNDED)
    if not len(within):
        return None
    pace, value = designs.pace[within], designs.value[within]
    worth = pace if instance.objective.minimize == "time" else pace * value
    least = np.flatnonzero(worth <= worth.min() * (1.0 + TIES))
    order = np.lexsort((pace[least], value[least]))
    return int(within[least[order[0]]])
