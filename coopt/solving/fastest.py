"""The fastest design that an instance ranges over, whatever it costs: by enumeration, so exact."""

from __future__ import annotations

import numpy as np

from coopt.columns.table import columns
from coopt.columns.times import unbounded
from coopt.instance.couplings import Limits
from coopt.instance.schema import Instance, require_billed, require_no_failures, require_one_network
from coopt.instance.variants import inside_first
from coopt.network.space import families
from coopt.plan.store import Evaluation, limit_checks
from coopt.solving import explain
from coopt.solving.driver import identity
from coopt.solving.fronts.designs import all_designs


def fastest_design(instance: Instance) -> Evaluation | tuple[str, ...]:
    """The network and mappings of least iteration time within memory and limits.

    Every network is looked at with every number of uplinks that the limits leave; of equally fast
    designs it is the cheapest. With several workloads it is the largest share of a bound that is
    least. Bounds on time are reported, not enforced.

    Returns
    -------
    Evaluation or sentences
        Sentences that say why nothing can be built, or why nothing fits.
    """
    require_one_network(instance, "the action `fastest` of a suite")
    require_no_failures(instance, "the action `fastest` of a suite")
    require_billed(instance, "the action `fastest` of a suite")

    def in_time(outcome: Evaluation | tuple[str, ...]) -> bool:
        return not isinstance(outcome, tuple) and all(
            run.iteration_time_s <= run.bound_s for run in outcome.workloads
        )

    return inside_first(instance, _fastest_network, in_time)[0]


def _fastest_network(instance: Instance) -> Evaluation | tuple[str, ...]:
    """The fastest design where workloads say whether TP groups may extend over HB domains."""
    candidates = tuple(families(instance, unlaid=True))
    if not candidates:
        return explain.no_family(instance)
    table = unbounded(instance, candidates, lambda _: None)
    designs = all_designs(instance, candidates, table, lambda: None)
    if designs is not None:
        # more uplinks are never slower: of those that are as fast the fewest are the cheapest
        fastest = int(np.lexsort((designs.value, designs.pace))[0])
        answer = designs.written_out(fastest, instance, -np.inf, table)
        return Evaluation(
            instance=identity(instance),
            design=answer.design,
            cost=answer.cost,
            workloads=answer.workloads,
            limits=tuple(limit_checks(instance, answer.design, answer.cost, answer.workloads)),
        )
    unlimited = instance.model_copy(update={"limits": Limits()})
    if all_designs(unlimited, candidates, table, lambda: None) is not None:
        return ("no network on which every workload fits meets the limits: needs looser [limits]",)
    table = columns(instance, candidates, lambda _: None, lambda: None)
    return explain.no_design(instance, candidates, table, lambda: None)
