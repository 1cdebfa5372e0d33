"""What a thing adds to the objective."""

from __future__ import annotations

from coopt.instance.schema import Objective, ObjectiveKind
from coopt.instance.sites import Site

HOURS_PER_YEAR = 8760


def weigh(objective: Objective, usd: float, w: float, kind: ObjectiveKind | None = None) -> float:
    """A price and a power in the unit of the objective: USD for capex and tco, W for power."""
    kind = kind or objective.minimize
    if kind == "power":
        return w
    return usd if kind == "capex" else usd + w * usd_per_w(objective)


def usd_per_w(objective: Objective) -> float:
    """Price of drawing one watt of IT power over the planned years."""
    return objective.years * HOURS_PER_YEAR / 1000 * objective.pue * objective.usd_per_kwh


def electricity_of(objective: Objective, site: Site) -> Objective:
    """The objective at a site's own PUE and price of electricity."""
    own = {"pue": site.pue, "usd_per_kwh": site.usd_per_kwh}
    return objective.model_copy(update={key: value for key, value in own.items() if value is not None})
