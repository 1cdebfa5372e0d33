"""At which price the choice of products turns."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from coopt.instance.doubts import price_doubt
from coopt.instance.question import ObjectiveKind
from coopt.instance.schema import Instance
from coopt.plan.parts import Cost

FAR_PRICE = 2.0
"""How many times as high or low a price may be that is said to turn the choice."""
NO_DOUBT = 1e-6  # of a price that is a quote


@dataclass(frozen=True)
class Turn:
    """What turns a choice of products: `missing_usd` of purchase that another one costs more, what
    the answer spends more on each product (USD), and the share by which each price may move so.
    """

    missing_usd: float
    more_usd: dict[tuple[str, str], float]
    doubts: dict[tuple[str, str], float]

    @classmethod
    def of(cls, instance: Instance, kind: ObjectiveKind, cost: Cost, other: Cost) -> Turn:
        """What turns the choice between two bills."""
        more_usd = defaultdict[tuple[str, str], float](float)
        for items, sign in ((cost.items, 1.0), (other.items, -1.0)):
            for item in items:
                more_usd[item.product] += sign * item.usd
        # each dollar of purchase is labour and support, too
        owned = instance.objective.owned_share if kind == "tco" else 1.0
        return cls(
            missing_usd=(other.of(kind) - cost.of(kind)) / owned,
            more_usd={of: usd for of, usd in more_usd.items() if usd},
            # where the answer spends more, a higher price turns the choice, and else a lower one
            doubts={of: price_doubt(instance, of, rises=usd > 0) for of, usd in more_usd.items()},
        )

    @property
    def swing_usd(self) -> float:
        """By how much prices within what their sources leave open may move the difference."""
        return sum(abs(usd) * self.doubts[of] for of, usd in self.more_usd.items())

    @property
    def nearness(self) -> float:
        """How many times over they move it; a choice of equal cost is as near as can be."""
        return self.swing_usd / self.missing_usd if self.missing_usd > 0.0 else math.inf

    @property
    def figures(self) -> dict[str, Any]:
        """The one price that turns the choice soonest, in what its source leaves open, if any near
        its own does, and whether all of them together may.
        """
        rises = {of: self.missing_usd / usd for of, usd in self.more_usd.items()}
        near = [of for of, rise in rises.items() if 1 / FAR_PRICE <= 1.0 + rise <= FAR_PRICE]
        # a quote leaves nothing open
        soonest = min(
            near, key=lambda of: abs(rises[of]) / max(self.doubts[of], NO_DOUBT), default=None
        )
        turn: dict[str, Any] = {"close": self.swing_usd >= self.missing_usd}
        if soonest is not None:
            price = {"turns_at": 1.0 + rises[soonest], "doubt": self.doubts[soonest]}
            turn |= {"product": soonest[1], **price}
        return turn
