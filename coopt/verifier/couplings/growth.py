"""Check that one network stands in every phase, that its uplinks never fall, and that all workloads
run on it.

What phases pay stands here, and the bound: no network that grows costs less, with the uplinks that
serve its phases.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property, lru_cache, partial

from coopt.instance.question import ObjectiveKind
from coopt.instance.schema import Instance
from coopt.plan.parts import Design
from coopt.plan.schema import Plan
from coopt.verifier.checks.rivals import Counterexample, check_claims, counterexample
from coopt.verifier.checks.verdict import LENIENT, STRICT, Ledger
from coopt.verifier.couplings.fleet import Fleet
from coopt.verifier.parts.bills import (
    CountedItem,
    bill,
    counting,
    decimal,
    exact_sum,
    level_lines,
)
from coopt.verifier.parts.enumeration import ChainBills, exact_limit, fast_enough
from coopt.verifier.parts.optics import optics_choices
from coopt.verifier.parts.space import families
from coopt.verifier.parts.stages import (
    GrowthStage,
    design_of_stage,
    grown_from,
    last_stages,
    links_per_uplink,
    same_design,
)
from coopt.verifier.parts.timings import Trainer
from coopt.verifier.training.caching import kept

GrowthPath = tuple[GrowthStage, ...]  # one network, phase by phase


def growth_paths(instance: Instance, kind: ObjectiveKind) -> Iterator[GrowthPath]:
    """Every network that can grow through all phases."""
    for family in families(instance):
        for last_network in last_stages(
            instance.network, family, partial(optics_choices, instance, kind, family)
        ):
            stages = [grown_from(instance, last_network, phase.gpus) for phase in instance.phase]
            path = tuple(stage for stage in stages if stage is not None)
            if len(path) == len(stages):
                yield path


class Growths:
    """All networks of an instance as they grow, and which uplinks serve its phases; nothing is
    computed twice.
    """

    def __init__(self, instance: Instance, kind: ObjectiveKind) -> None:
        self.instance, self.kind, self.fleet = instance, kind, Fleet(instance, kind)
        self._trainers = {
            margin: [Trainer(question, margin) for question in self.fleet.questions]
            for margin in (STRICT, LENIENT)
        }

    @cached_property
    def paths(self) -> tuple[GrowthPath, ...]:
        """Every network that can grow through all phases."""
        return tuple(growth_paths(self.instance, self.kind))

    def serving(
        self, stage: GrowthStage, t: int, margin: float, within: Sequence[int]
    ) -> Sequence[int]:
        """Which of some uplinks, ascending, let a stage meet the bounds of a phase, taken short by
        a share.
        """
        return fast_enough(self._trainers[margin][t], stage, within)

    def may_serve(self, stage: GrowthStage, t: int, uplinks: int) -> bool:
        """Whether a stage meets bounds and limits of a phase, with rounding in its favour."""
        in_limits = uplinks in self.within(stage, t, LENIENT)
        return in_limits and self._trainers[LENIENT][t].trains(stage.family, stage.reach(uplinks))

    def within(self, stage: GrowthStage, t: int, margin: float = STRICT) -> Sequence[int]:
        """Uplinks that keep the limits, which no further uplink mends."""
        return ChainBills(self.fleet.questions[t], self.kind, stage).admitted(None, margin)[0]


@lru_cache(maxsize=1)
def growths_of(instance: Instance, kind: ObjectiveKind) -> Growths:
    """The networks of an instance, kept for what else is checked of its plans."""
    return Growths(instance, kind)


def uplinks_of(design: Design) -> int:
    """The uplinks of a leaf; 0 where there are none."""
    tiers = design.fabric.tier
    return tiers[0].uplinks_per_switch if len(tiers) > 1 else 0


def is_drawn(instance: Instance, stage: GrowthStage, uplinks: int, design: Design) -> bool:
    """Whether a design is the one that a stage with so many uplinks is written out as."""
    choice, family = design.hb_domain, stage.family
    fits = (choice.name, choice.active) == (family.hb.name, family.active)
    return (
        fits
        and uplinks in stage.uplinks
        and same_design(design, design_of_stage(instance, stage, uplinks, design.fabric))
    )


def check_phased_bound(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """Check that no network grows for less than the bound, and that none grows at all where the
    plan says so.
    """
    kind = plan.objective.kind
    growths = growths_of(instance, kind)

    def find(bound: float, margin: float) -> Counterexample | None:
        return counterexample(kind, least_growth_below(growths, bound, margin))

    check_claims(ledger, plan, find, "network that grows")


def least_growth_below(growths: Growths, bound: float, margin: float = STRICT) -> Fraction | None:
    """The least value of a network that serves every phase, where it is below `bound` by more than
    rounding.
    """
    fleet = growths.fleet
    # below the bound by more than its own rounding
    ceiling, least_value = exact_limit(bound), None
    for path in growths.paths:
        charges = [StageCharge(fleet, stage, t) for t, stage in enumerate(path)]
        if (
            ceiling is not None
            and sum(stage_charge.least_usd for stage_charge in charges) >= ceiling
        ):
            continue  # whatever switches and modules it has
        serving = _serving_below(growths, path, charges, ceiling, margin)
        value_of_path = min(growth_values(fleet, path, serving, charges).values(), default=None)
        if value_of_path is not None and (ceiling is None or value_of_path < ceiling):
            least_value = ceiling = value_of_path
    return least_value


def _serving_below(
    growths: Growths,
    path: GrowthPath,
    charges: Sequence[StageCharge],
    ceiling: Fraction | None,
    margin: float,
) -> list[Sequence[int]]:
    """The uplinks of each phase that serve it, but for those that are worth too much whatever the
    other phases have.
    """
    uplinks: list[Sequence[int]] = [
        growths.within(stage, t, margin) for t, stage in enumerate(path)
    ]
    for t in reversed(range(len(path))):
        # Timing is what takes long: only uplinks that may be worth less are timed at all.
        uplinks = _worth_less(charges, uplinks, ceiling)
        uplinks[t] = growths.serving(path[t], t, margin, uplinks[t])
    return uplinks


def _worth_less(
    charges: Sequence[StageCharge], uplinks_by_phase: list[Sequence[int]], ceiling: Fraction | None
) -> list[Sequence[int]]:
    """The uplinks of each phase that are worth less than a ceiling beside the fewest of all others;
    none anywhere where a phase has none. With more uplinks a phase takes no less of any unit, and
    no unit is worth less than nothing.
    """
    if not all(uplinks_by_phase):
        return [()] * len(uplinks_by_phase)
    if ceiling is None:
        return uplinks_by_phase
    fewest = [
        charge.at(uplinks[0]) for charge, uplinks in zip(charges, uplinks_by_phase, strict=True)
    ]
    rest = ceiling - sum(fewest, Fraction())
    return [
        uplinks[: bisect_left(uplinks, rest + least, key=charge.at)]
        for charge, uplinks, least in zip(charges, uplinks_by_phase, fewest, strict=True)
    ]


def growth_values(
    fleet: Fleet,
    path: GrowthPath,
    uplinks_by_phase: Sequence[Sequence[int]],
    charges: Sequence[StageCharge],
) -> dict[int, Fraction]:
    """Least objective of each number of uplinks in the end over uplinks that never fall, each
    phase's among its own.

    A unit that a phase adds costs the least price so far, so what a phase has in place is charged
    that price and credited the one of the next phase. Adding links costs labour, in proportion to
    what is added. Credits and labour of links that stood may be far larger than what is left of
    them, so that sums are made of fractions. `charges` say what each phase adds with so many
    uplinks.
    """
    least_by_uplinks: dict[int, Fraction] = {}
    for t, choices in enumerate(uplinks_by_phase):
        arrivals = (
            _arriving(fleet, path, t, least_by_uplinks, choices)
            if t
            else dict.fromkeys(choices, Fraction())
        )
        least_by_uplinks = {
            uplinks: charges[t].at(uplinks) + value for uplinks, value in arrivals.items()
        }
    return least_by_uplinks


def _arriving(
    fleet: Fleet,
    path: GrowthPath,
    t: int,
    least_before: dict[int, Fraction],
    choices: Sequence[int],
) -> dict[int, Fraction]:
    """The least value so far with the labour of a phase, by its uplinks, which are no fewer than
    those before.
    """
    new_links, old_links = links_per_uplink(path[t - 1], path[t])
    rate = decimal(fleet.labour_usd(t))
    rate_of_old, rate_of_new = rate * (old_links - new_links), rate * new_links
    pending = sorted(least_before.items(), reverse=True)
    arrivals: dict[int, Fraction] = {}
    least_value: Fraction | None = None
    for uplinks in choices:
        while pending and pending[-1][0] <= uplinks:
            earlier_uplinks, value_before = pending.pop()
            value = value_before + rate_of_old * earlier_uplinks
            least_value = value if least_value is None else min(least_value, value)
        if least_value is not None:
            arrivals[uplinks] = least_value + rate_of_new * uplinks
    return arrivals


class StageCharge:
    """What units in place in a phase add by its uplinks, less what those of the next phase need not
    pay again.
    """

    def __init__(self, fleet: Fleet, stage: GrowthStage, t: int) -> None:
        self._fleet, self._stage, self._t = fleet, stage, t
        # what uplinks do not change
        self.least_usd = self._charged(bill(fleet.question, stage.family, (), ()))

    @kept()
    def at(self, uplinks: int) -> Fraction:
        """What they add with so many uplinks (USD)."""
        stage = self._stage
        lines = level_lines(stage.family, stage.levels(uplinks), stage.optics)
        return self.least_usd + self._charged(counting(self._fleet.question, lines))

    def _charged(self, lines: Sequence[CountedItem]) -> Fraction:
        fleet, t = self._fleet, self._t
        value = exact_sum(
            (line.amount, _unit_charge_usd(fleet, t, line.kind, line.unit_usd)) for line in lines
        )
        if fleet.kind != "tco":
            return value
        power_w = sum(line.amount * line.unit_w for line in lines)
        return value + Fraction(fleet.site_usd_per_w(t, None) * power_w)


@lru_cache(maxsize=1024)
def _unit_charge_usd(fleet: Fleet, t: int, kind: str, unit_usd: float) -> Fraction:
    """What a unit in place adds in a phase with its labour and support, less what one of the next
    phase need not buy (USD).
    """
    price, terms, is_last = decimal(unit_usd), fleet.question.objective, t == fleet.phases[-1]
    saved = Fraction() if is_last else _least_factor(fleet, t + 1, kind)
    charge = price * (_least_factor(fleet, t, kind) - saved)
    if fleet.kind != "tco":
        return charge
    support = decimal(terms.support_share) * decimal(fleet.years(t))
    factor = decimal(fleet.price_factor(t, kind))
    return charge * (1 + decimal(terms.labour_share)) + price * factor * support


def _least_factor(fleet: Fleet, t: int, kind: str) -> Fraction:
    """The least factor that a kind of item is bought at up to a phase."""
    # units may be bought ahead and kept in store
    return decimal(min(fleet.price_factor(earlier, kind) for earlier in range(t + 1)))
