"""Relative tolerances, each with the origin of the deviation."""

from __future__ import annotations

REORDERED = 1e-12
"""Sums of the same terms in another order: thousands of roundings to 2^-53."""

EQUAL = 1e-9
"""One quantity by two formulas, from decimals of a file, or within HiGHS's feasibility tolerance,
which is set to this.
"""

PROVEN = 1e-8
"""Two objectives, each proven to `EQUAL`, with room for both and their units."""

SOLVED = 1e-6
"""What solvers other than HiGHS, whose rows are kept to this by default, decide; also discounts,
whose shares are rounded to cents.
"""

SEARCHED = 1e-3
"""A threshold found by halving an interval: nearer ones tell a planner nothing."""
