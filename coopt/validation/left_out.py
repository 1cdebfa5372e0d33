"""Every source predicted by fits that saw nothing of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from coopt.validation.facts import FitSet
from coopt.validation.fitting import enough, errors_of, fitted, set_name, used, uses
from coopt.validation.runs import Run
from coopt.validation.settings import Settings

AGAIN = 90  # evaluations of a fit that starts from the one with all groups
Told = Callable[[str], None]


def left_out_errors(runs: Sequence[Run], sets: Sequence[FitSet], settings: Settings, told: Told) -> dict[int, float]:
    """Errors of the rows that some set uses, by their position among `runs`, each group by fits without it.

    A row is missing where without its group nothing at all says what a parameter should be.
    """
    found: dict[int, float] = {}
    taken = [i for i, run in enumerate(runs) if any(uses(asked, run) for asked in sets)]
    for group in dict.fromkeys(runs[i].group for i in taken):
        without, unknown = _fitted_without(group, runs, sets, settings, told)
        blind = [i for i in taken if runs[i].group == group and not any(uses(asked, runs[i]) for asked in unknown)]
        if blind:
            errors = errors_of([runs[i] for i in blind], without)
            found |= {i: float(error) for i, error in zip(blind, errors, strict=True)}
    return found


def _fitted_without(
    group: str, runs: Sequence[Run], sets: Sequence[FitSet], settings: Settings, told: Told
) -> tuple[Settings, list[FitSet]]:
    """The fits without a group, and the sets of which nothing is known without it."""
    lost, others = ([run for run in runs if (run.group == group) is mine] for mine in (True, False))
    changed, unknown = set[str](), list[FitSet]()
    for asked in sets:
        upstream = " ".join(asked.after) in changed if asked.after else bool(asked.software and changed)
        if used(asked, lost) or upstream:
            told(f"fitting {set_name(asked)} without {group}")
            left = used(asked, others)
            settings = fitted(asked, left, settings, AGAIN)
            changed.add(set_name(asked))
            if not enough(asked, left) and not settings.prior_of(asked):
                unknown.append(asked)
    return settings, unknown
