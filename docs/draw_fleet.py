"""Draw the fleet of `instances/fleet-3-phases-2-sites.toml` into docs/fleet.svg: who stands where
and when.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt

import coopt
from coopt.plan.schema import Plan

HERE = Path(__file__).parent
INSTANCE = HERE.parent / "instances" / "fleet-3-phases-2-sites.toml"
COLORS = ("#9ec3e6", "#c6e6f2", "#a8d5b0", "#ecdca0")
mpl.rcParams |= {
    "svg.hashsalt": "coopt",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 10,
}


def main() -> None:
    """Solve and draw."""
    plan = coopt.solve(coopt.load(INSTANCE))
    assert plan.status == "optimal"
    figure = drawn(plan)
    figure.savefig(
        HERE / "fleet.svg",
        metadata={"Date": None, "Creator": None, "Title": "A fleet over phases and sites"},
    )


def drawn(plan: Plan) -> plt.Figure:
    """A panel for each site, a bar for each phase, a piece of it for each island."""
    sites = sorted({str(part.site) for part in plan.parts})
    years = sorted({float(part.phase or 0) for part in plan.parts})
    names = list(dict.fromkeys(run.name for part in plan.parts for run in part.workloads))
    figure, panels = plt.subplots(
        1, len(sites), figsize=(8.4, 3.4), sharey=True, constrained_layout=True
    )
    for panel, site in zip(panels, sites, strict=True):
        base = dict.fromkeys(years, 0)
        for name, color in zip(names, COLORS, strict=True):
            for part in plan.parts:
                if (
                    part.site == site
                    and part.design is not None
                    and part.name.startswith(f"{name}, ")
                ):
                    year, gpus = float(part.phase or 0), part.design.gpus
                    place = years.index(year)
                    panel.bar(
                        place, gpus, bottom=base[year], width=0.84, color=color, edgecolor="white"
                    )
                    text = f"{name}\n{gpus:,}" if gpus >= 700 else f"{name}  {gpus:,}"
                    panel.text(
                        place, base[year] + gpus / 2, text, ha="center", va="center", fontsize=8
                    )
                    base[year] += gpus
        fed = {one.phase: one for one in plan.couplings.sites if one.site == site}
        limit_mw = next(iter(fed.values())).facility_limit_w / 1e6
        ticks = [f"{year:g}\n{fed[year].facility_w / 1e6:.1f} of {limit_mw:g} MW" for year in years]
        panel.set_xticks(range(len(years)), ticks)
        panel.set_xlim(-0.6, len(years) - 0.4)
        panel.set_title(site)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("GPUs that train")
    return figure


if __name__ == "__main__":
    main()
