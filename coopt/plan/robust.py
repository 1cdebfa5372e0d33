"""What a plan stands. Data only."""

from __future__ import annotations

from typing import Literal

from coopt.plan.record import Record


class Survived(Record):
    """The loss of any one part of a kind: NICs a domain has fewer, and how much longer its traffic takes."""

    part: Literal["nic", "leaf", "plane"]
    nics_lost: int
    slowdown: float


class Turn(Record):
    """One way prices may turn out: factors by kind, the objective of the plan then, and that of the best plan."""

    factors: dict[str, float]
    value: float
    best: float


class Standing(Record):
    """How robust a plan is.

    With the aim "worst-case" the bill and the objective are at the worst prices, and `list_value` is the objective at
    those of the instance. With "regret" the objective is the largest excess over the best plan, `turns` hold them all,
    and the bill is at the prices of the instance.
    """

    aim: Literal["worst-case", "regret"]
    efficiency: tuple[float, float]
    slower: float
    survived: tuple[Survived, ...]
    list_value: float
    turns: tuple[Turn, ...] = ()
