"""Check that one network stands in every phase, that its uplinks never fall, and that all workloads
run on it.

What phases pay stands here, and the bound: no network that grows costs less, with the uplinks that
serve its phases.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache, cached_property, lru_cache, partial

from coopt.instance.couplings import Limits
from coopt.instance.schema import Instance, ObjectiveKind
from coopt.instance.variants import phases_of, years_of
from coopt.plan.parts import Design
from coopt.plan.schema import Plan
from coopt.verifier.checks.rivals import Counterexample, check_claims
from coopt.verifier.checks.verdict import LENIENT, ROUNDING, STRICT, Ledger
from coopt.verifier.couplings.stages import (
    GrowthStage,
    design_of_stage,
    earlier_stage,
    last_stages,
    moves_leaves,
    same_design,
)
from coopt.verifier.parts.bills import (
    CountedItem,
    bill,
    bill_total,
    decimal,
    exact_sum,
    level_lines,
    within_limits,
)
from coopt.verifier.parts.optics import optics_choices
from coopt.verifier.parts.space import families
from coopt.verifier.parts.timings import Trainer

GrowthPath = tuple[GrowthStage, ...]  # one network, phase by phase


def grows_alone(instance: Instance, kind: ObjectiveKind) -> bool:
    """Whether it asks for one network that grows, whatever may happen at prices that are known."""
    many_sided = instance.sharing.mode == "partition" or instance.network.many_sided
    tables = (instance.site, instance.robust, instance.availability)
    return bool(instance.phase) and not (many_sided or any(tables)) and kind != "power"


def growth_paths(instance: Instance, kind: ObjectiveKind) -> Iterator[GrowthPath]:
    """Every network that can grow through all phases."""
    counts = [phase.gpus for phase in instance.phase]
    for family in families(instance):
        if any(gpus % family.active for gpus in counts):
            continue
        for last_network in last_stages(
            instance.network, family, partial(optics_choices, instance, kind, family)
        ):
            if not moves_leaves(last_network, counts):
                yield tuple(
                    earlier_stage(last_network, gpus, instance.network.largest_ratio)
                    for gpus in counts
                )


class Growths:
    """All networks of an instance as they grow, and which uplinks serve its phases; nothing is
    computed twice.
    """

    def __init__(self, instance: Instance, kind: ObjectiveKind) -> None:
        self.instance, self.kind = instance, kind
        self.questions = [*phases_of(instance)]
        self._trainers = {
            margin: [Trainer(question, margin) for question in self.questions]
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

        def trains(uplinks: int) -> bool:
            return self._trainers[margin][t].trains(stage.family, stage.reach(uplinks))

        if not within or not trains(within[-1]):
            return ()  # the most uplinks are the fastest
        return within[bisect_left(within, True, key=trains) :]

    def may_serve(self, stage: GrowthStage, t: int, uplinks: int) -> bool:
        """Whether a stage meets bounds and limits of a phase, with rounding in its favour."""
        in_limits = uplinks in self.within(stage, t, LENIENT)
        return in_limits and self._trainers[LENIENT][t].trains(stage.family, stage.reach(uplinks))

    def within(self, stage: GrowthStage, t: int, margin: float = STRICT) -> Sequence[int]:
        """Uplinks that keep the limits, which no further uplink mends."""
        question = self.questions[t]
        if question.limits == Limits():
            return stage.uplinks

        def over(uplinks: int) -> bool:
            lines = bill(question, stage.family, stage.levels(uplinks), stage.optics)
            return not within_limits(
                question, stage.family, bill_total(lines, question.objective), margin
            )

        return stage.uplinks[: bisect_left(stage.uplinks, True, key=over)]


@lru_cache(maxsize=1)
def growths_of(instance: Instance, kind: ObjectiveKind) -> Growths:
    """The networks of an instance, kept for what else is checked of its plans."""
    return Growths(instance, kind)


def is_drawn(instance: Instance, stage: GrowthStage, uplinks: int, design: Design) -> bool:
    """Whether a design is the one that a stage with so many uplinks is written out as."""
    choice = design.hb_domain
    if (choice.name, choice.active) != (
        stage.family.hb.name,
        stage.family.active,
    ) or uplinks not in stage.uplinks:
        return False
    return same_design(design, design_of_stage(instance, stage, uplinks, design))


def price_factor(instance: Instance, phase: int, kind: str) -> float:
    """The factor of a phase on the prices of a kind of item; 1 where nothing grows."""
    return float(getattr(instance.phase[phase].price, kind)) if instance.phase else 1.0


def link_labour_usd(instance: Instance, phase: int) -> float:
    """Labour for a link that a phase adds to a switch that stood (USD)."""
    return instance.phase[phase].retrofit_usd_per_link if instance.phase else 0.0


def phase_electricity_usd(instance: Instance, phase: int, power_w: float) -> float:
    """Price of running `power_w` until the next phase."""
    terms = instance.objective
    usd_per_kwh = terms.usd_per_kwh * price_factor(instance, phase, "energy")
    return years_of(instance, phase) * 8760 * power_w / 1000 * terms.pue * usd_per_kwh


def support_unit_usd(instance: Instance, phase: int, kind: str, unit_usd: float) -> float:
    """Support of a unit that stands until the next phase, at its price in the phase (USD)."""
    share = instance.objective.support_share * years_of(instance, phase)
    return share * unit_usd * price_factor(instance, phase, kind)


def links_per_uplink(earlier: GrowthStage, stage: GrowthStage) -> tuple[int, int]:
    """Links added to switches of an earlier phase: for each new uplink on its leaves, and for each
    uplink they had.
    """
    if stage.ports.tiers < 2 or earlier.ports.tiers < 1:
        return 0, 0
    planes = stage.family.planes * stage.family.copies
    # Aggregation switches of a single pod keep their ports up free until cores come with the second
    # pod.
    cores_come = earlier.one_pod and stage.ports.tiers == 3
    return planes * earlier.leaves, planes * stage.ports.pod_up if cores_come else 0


def links_added(earlier: GrowthStage, stage: GrowthStage, uplinks_before: int, uplinks: int) -> int:
    """Links up that are added to switches of an earlier phase: on its leaves, and on its
    aggregation switches.
    """
    links_per_new, links_per_old = links_per_uplink(earlier, stage)
    bundles_before = uplinks_before // stage.ports.pod_each
    return links_per_new * (uplinks - uplinks_before) + links_per_old * bundles_before


def check_phased_bound(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """Check that no network grows for less than the bound, and that none grows at all where the
    plan says so.
    """
    growths = growths_of(instance, plan.objective.kind)

    def find(bound: float, margin: float) -> Counterexample | None:
        value = least_growth_below(growths, bound, margin)
        return None if value is None else Counterexample(f"{float(value):,.10g}", float(value))

    check_claims(ledger, plan, find, "network that grows")


def least_growth_below(growths: Growths, bound: float, margin: float = STRICT) -> Fraction | None:
    """The least value of a network that serves every phase, where it is below `bound` by more than
    rounding.
    """
    instance, kind = growths.instance, growths.kind
    # below the bound by more than its own rounding
    ceiling = (
        Fraction(bound) - abs(Fraction(bound)) * Fraction(ROUNDING)
        if math.isfinite(bound)
        else None
    )
    least_value: Fraction | None = None
    charge = cache(partial(_unit_charge_usd, instance, kind))
    for path in growths.paths:
        charges = [_StageCharge(instance, kind, stage, t, charge) for t, stage in enumerate(path)]
        if (
            ceiling is not None
            and sum(stage_charge.least_usd for stage_charge in charges) >= ceiling
        ):
            continue  # whatever switches and modules it has
        serving = _serving_below(growths, path, charges, ceiling, margin)
        value_of_path = min(growth_values(instance, path, serving, charges).values(), default=None)
        if value_of_path is not None and (ceiling is None or value_of_path < ceiling):
            least_value = ceiling = value_of_path
    return least_value


def _serving_below(
    growths: Growths,
    path: GrowthPath,
    charges: Sequence[_StageCharge],
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
    charges: Sequence[_StageCharge], uplinks_by_phase: list[Sequence[int]], ceiling: Fraction | None
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
    instance: Instance,
    path: GrowthPath,
    uplinks_by_phase: Sequence[Sequence[int]],
    charges: Sequence[_StageCharge],
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
            _arriving(instance, path, t, least_by_uplinks, choices)
            if t
            else dict.fromkeys(choices, Fraction())
        )
        least_by_uplinks = {
            uplinks: charges[t].at(uplinks) + value for uplinks, value in arrivals.items()
        }
    return least_by_uplinks


def _arriving(
    instance: Instance,
    path: GrowthPath,
    t: int,
    least_before: dict[int, Fraction],
    choices: Sequence[int],
) -> dict[int, Fraction]:
    """The least value so far with the labour of a phase, by its uplinks, which are no fewer than
    those before.
    """
    new_links, old_links = links_per_uplink(path[t - 1], path[t])
    rate = decimal(link_labour_usd(instance, t))
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


class _StageCharge:
    """What units in place in a phase add by its uplinks, less what those of the next phase need not
    pay again.
    """

    def __init__(
        self,
        instance: Instance,
        kind: ObjectiveKind,
        stage: GrowthStage,
        t: int,
        charge: Callable[[int, str, float], Fraction],
    ) -> None:
        self._instance, self._kind, self._stage, self._t, self._charge = (
            instance,
            kind,
            stage,
            t,
            charge,
        )
        fixed_lines = bill(instance, stage.family, (), ())  # what uplinks do not change
        self._below_usd, self._below_w = self._charged(fixed_lines), _power_w(fixed_lines)
        self.least_usd = self._with([])
        self._known: dict[int, Fraction] = {}

    def at(self, uplinks: int) -> Fraction:
        """What they add with so many uplinks (USD)."""
        if uplinks not in self._known:
            stage = self._stage
            lines = level_lines(self._instance, stage.family, stage.levels(uplinks), stage.optics)
            self._known[uplinks] = self._with(lines)
        return self._known[uplinks]

    def _with(self, lines: list[CountedItem]) -> Fraction:
        value = self._below_usd + self._charged(lines)
        if self._kind != "tco":
            return value
        return value + Fraction(
            phase_electricity_usd(self._instance, self._t, self._below_w + _power_w(lines))
        )

    def _charged(self, lines: list[CountedItem]) -> Fraction:
        return exact_sum(
            (line.amount, self._charge(self._t, line.kind, line.unit_usd)) for line in lines
        )


def _power_w(lines: list[CountedItem]) -> float:
    return sum(line.amount * line.unit_w for line in lines)


def _unit_charge_usd(
    instance: Instance, objective: ObjectiveKind, t: int, kind: str, unit_usd: float
) -> Fraction:
    """What a unit in place adds in a phase with its labour and support, less what one of the next
    phase need not pay again (USD).
    """
    factor = decimal(least_price_factor(instance, t, kind))
    is_last = t + 1 == len(instance.years)
    price = decimal(unit_usd) * (
        factor - (0 if is_last else decimal(least_price_factor(instance, t + 1, kind)))
    )
    if objective != "tco":
        return price
    support = decimal(support_unit_usd(instance, t, kind, unit_usd))
    return price * (1 + decimal(instance.objective.labour_share)) + support


def least_price_factor(instance: Instance, t: int, kind: str) -> float:
    """The least factor that a kind of item is bought at up to a phase."""
    # units may be bought ahead and kept in store
    return min(price_factor(instance, earlier, kind) for earlier in range(t + 1))
