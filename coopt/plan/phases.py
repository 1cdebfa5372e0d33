"""How a cluster grows: what each phase buys, has in place and trains. Data only."""

from __future__ import annotations

from coopt.plan.parts import Design, Item, ItemKind, Record, WorkloadPlan


class Stored(Record):
    """Units of an item that wait for a later phase."""

    item: str
    kind: ItemKind
    count: int


class PhasePlan(Record):
    """One phase: the whole network in place, what is bought at its prices, and what runs.

    `bought` ends with the labour for uplinks added to switches of earlier phases. `stored` is bought and not in place
    yet. `power_w` is that of everything in place, which runs for `years`.
    """

    year: float
    years: float
    design: Design
    bought: tuple[Item, ...]
    stored: tuple[Stored, ...]
    capex_usd: float
    power_w: float
    energy_usd: float
    workloads: tuple[WorkloadPlan, ...]


class MyopicStep(Record):
    """What a phase builds that is planned without the later ones, and what it spends."""

    year: float
    design: Design
    capex_usd: float
    energy_usd: float


class Myopic(Record):
    """Planning each phase on its own: what is in place stays, and nothing is known of later bounds and prices.

    `value` is the objective of all phases and `saving` what the plan takes less; both are None at a dead end, which
    `dead_end` describes.
    """

    steps: tuple[MyopicStep, ...]
    value: float | None
    saving: float | None
    dead_end: str | None
