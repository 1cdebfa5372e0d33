"""Find a proof of the bound of coupled parts, and write it down for who checks it without a
solver.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from coopt.instance.schema import Instance, instance_of, require_billed
from coopt.instance.texts import InstanceError
from coopt.instance.variants import at_max_efficiency, at_prices
from coopt.network.growth import grows_alone
from coopt.plan.schema import (
    Cases,
    InstanceId,
    IslandCut,
    Leaf,
    Node,
    Plan,
    ProductCut,
    Proof,
    PurchaseCut,
)
from coopt.plan.store import check_same_question, decided, placed_as, plan_of
from coopt.solving.direct.answer import listed_rows
from coopt.solving.direct.lengths import link_lengths
from coopt.solving.driver import identity
from coopt.solving.fleet.answer import hopeful_offers, offers_of, offers_then
from coopt.solving.fleet.arrays import Grid
from coopt.solving.fleet.listing import islands_listed
from coopt.solving.fleet.parts import subset, useful
from coopt.solving.fleet.placed import slots_of
from coopt.solving.proofs import tree as cuts
from coopt.solving.proofs.relaxation import CaseProof, Multipliers, amount
from coopt.solving.runs import Run, StoppedError, backend_of
from formulations.choice_data import ChoiceData

JUST_ABOVE = 1 + 1e-12
"""The best plan at other prices is proven to be there, too: a bound just above it leaves it open.
"""

ROUNDED = 1 - 1e-12
"""Sums of floats are that much more, at most, than the sums of whole numbers that a check takes."""


def prove(
    instance: Instance | str | Path,
    plan: Plan | str | Path,
    *,
    time_limit_s: float = 300.0,
    gap: float = 0.0,
) -> Proof:
    """Find what proves the bound of a plan of coupled parts, or that nothing is feasible.

    Where time runs out before all cases are closed, the proof is one of a lower bound, which it
    names.

    Parameters
    ----------
    instance, plan
        The question and its answer, or the files that hold them.
    gap
        By which share the bound that is proven may be below the one that the plan claims; the proof
        has fewer cases.

    Raises
    ------
    InstanceError
        When the plan answers another question, claims no bound, or is not one of coupled parts; or
        when time runs out before any case begins.

    Examples
    --------
    >>> import coopt
    >>> instance = coopt.load("instances/tiny-64.toml", {"sharing.mode": "partition"})
    >>> plan = coopt.solve(instance)
    >>> proof = coopt.prove(instance, plan)
    >>> found = coopt.certify(instance, plan, proof)
    >>> found.ok, found.exact
    (True, '164704')
    """
    instance = instance_of(instance)
    plan = plan_of(plan)
    question, plan = decided(instance, plan)
    check_same_question(question, plan)
    instance, plan = placed_as(question, plan)
    bound = plan.objective.bound
    has_proof = bool(instance.asks("direct")) or (
        instance.sharing.mode == "partition"
        or bool(instance.phase and not grows_alone(instance))
        or bool(instance.robust and instance.availability)
    )
    if not has_proof:
        require_billed(instance, "prove", plan.objective.kind)
        raise InstanceError(
            f"{instance.place}: no proof is written for such a question, needs `coopt certify`"
            " alone, which checks its plan without a proof"
        )
    if bound is None and plan.status != "infeasible":
        raise InstanceError(
            f"{instance.place}: the plan has no lower bound to prove (its status is"
            f" {plan.status!r}), needs a plan with a bound"
        )
    kind = plan.objective.kind
    local = instance.model_copy(
        update={
            "objective": instance.objective.model_copy(update={"minimize": kind}),
            "solver": instance.solver.model_copy(update={"time_limit_s": time_limit_s}),
        }
    )
    run = Run(instance=local, backend=backend_of(local.solver), on_progress=None)
    try:
        return _proof(run, plan, gap, identity(question))
    except StoppedError as stopped:
        raise InstanceError(
            f"{instance.place}: {time_limit_s:g} s passed before the first case of the proof was"
            " finished, needs a longer time limit"
        ) from stopped


def _proof(run: Run, plan: Plan, gap: float, question: InstanceId) -> Proof:
    """The proof, as far as the clock of a run allows."""
    kind, bound = plan.objective.kind, plan.objective.bound
    # Infeasibility is proven as a bound that no finite value reaches.
    deadline, target = run.deadline, math.inf if bound is None else bound
    if run.instance.asks("direct"):
        links = link_lengths(listed_rows(run), target * (1 - gap), deadline)
        return Proof(schema_="coopt-proof/1", instance=question, objective=kind, links=links)
    offers, scenarios = _offers(run, plan)
    pairs = [_cases(*offer, target * (1 - gap), deadline) for offer in offers]
    proven = min(bound for _, bound in pairs)
    return Proof(
        schema_="coopt-proof/1",
        instance=question,
        objective=kind,
        bound=amount(proven * ROUNDED) if 0 < proven < target else None,
        cases=tuple(cases for cases, _ in pairs),
        bests=tuple(
            tuple(_cases(*offer, best_value * JUST_ABOVE, deadline)[0] for offer in scenario_offers)
            for scenario_offers, best_value in scenarios
        ),
    )


Offer = tuple[Instance, ChoiceData]
"""A question whose core names its optic, and the numbers of its islands."""


def _offers(run: Run, plan: Plan) -> tuple[list[Offer], list[tuple[list[Offer], float]]]:
    """What a plan may be chosen from, and the same at every way prices may turn out, with the best
    plan then, of which the plan tells the objective.
    """
    instance = run.instance
    islands = islands_listed(run, beaten_optics=True)
    if (
        not instance.price_scenarios or plan.status == "infeasible"
    ):  # limits do not depend on the scenario
        return [(variant.instance, variant.data) for variant in offers_of(islands, ())], []
    turns = plan.couplings.turns
    if [turn.factors for turn in turns] != instance.price_scenarios:
        raise InstanceError(
            f"{instance.place}: price scenarios of the plan differ from those of the instance,"
            " needs the plan of this instance"
        )
    hopeful = at_max_efficiency(instance)
    scenarios = tuple((turn.factors, at_prices(hopeful, turn.factors), turn.best) for turn in turns)
    dominating = hopeful_offers(run, islands, beaten_optics=True)
    return [(variant.instance, variant.data) for variant in offers_of(islands, scenarios)], [
        (
            [(variant.instance, variant.data) for variant in offers_then(dominating, scenario)],
            best_value,
        )
        for _, scenario, best_value in scenarios
    ]


def _cases(
    instance: Instance, data: ChoiceData, target: float, deadline: float
) -> tuple[Cases, float]:
    """The cases of what is offered, written down, and the bound that they prove."""
    optic = instance.sharing.optic_in_use
    if (
        len(np.unique(data.workload)) < data.workloads
    ):  # some workload has no island, which takes no multipliers
        return Cases(optic=optic, tree=Leaf(costs=False)), math.inf
    # What the filter drops is dominated; who checks the proof lists islands without it and drops
    # what is beaten itself.
    useful_data = subset(data, useful(data))
    writer = _Writer(instance, useful_data)
    prover = cuts.Prover(useful_data, target, deadline, writer.unit_limits)
    return Cases(optic=optic, tree=writer.node(prover.tree())), prover.proven


class _Writer:
    """Cases in the words of a proof."""

    def __init__(self, instance: Instance, data: ChoiceData) -> None:
        self._grid, self._data = Grid(instance=instance), data
        self._islands = [slot.name for slot in slots_of(instance)]
        self._goods = len(self._grid.goods)

    @property
    def unit_limits(self) -> list[int]:
        """The limits, by number, that are counted in whole units: GPUs and racks."""
        return [
            i for i, limit in enumerate(self._data.limits) if limit.resource in ("gpus", "racks")
        ]

    def node(self, node: cuts.Node) -> Node:
        """A tree of cases."""
        if isinstance(node, CaseProof):
            return self._leaf(node.multipliers)
        name, phase = self._data.products[node.product].name, node.product // self._goods
        up_to, beyond = map(self.node, node.sides)
        max_units = node.max_units
        if max_units is None:
            return ProductCut(product=name, without=up_to, among=beyond)
        if node.workload is None:
            return PurchaseCut(bought=name, phase=phase, most=max_units, up_to=up_to, beyond=beyond)
        island = self._islands[node.workload]
        return IslandCut(
            island=island, product=name, phase=phase, most=max_units, up_to=up_to, beyond=beyond
        )

    def _leaf(self, multipliers: Multipliers) -> Leaf:
        sites = [site.name if site is not None else "" for site in self._grid.sites]
        units = {
            (self._data.products[p].name, p // self._goods): value
            for p, value in enumerate(multipliers.units.tolist())
        }
        pairs = zip(self._data.limits, multipliers.limits.tolist(), strict=True)
        # A proof has prices of a unit of the resource, such as a watt, the data of one of the
        # limit, such as a MW.
        limits = {(limit.resource, limit.phase): value * limit.scale for limit, value in pairs}
        links = {
            (sites[c % len(sites)], c // len(sites)): value
            for c, value in enumerate(multipliers.links.tolist())
        }
        return Leaf(
            costs=multipliers.costs,
            units=self._by_phase(units),
            limits=self._by_phase(limits),
            budget=amount(multipliers.budget),
            links=self._by_phase(links),
            outlooks=tuple(map(amount, multipliers.scenarios.tolist())),
        )

    def _by_phase(self, values: dict[tuple[str, int], float]) -> dict[str, tuple[str, ...]]:
        """Amounts phase by phase; what has none is left out."""
        names = {name for (name, _), value in values.items() if value > 0}
        phases = range(self._grid.phases)
        return {name: tuple(amount(values[name, t]) for t in phases) for name in sorted(names)}
