"""What runs of one's own say about the parameters of the hardware, and what to run next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.console import RenderableType
from rich.text import Text

from coopt.plan.parts import beside_ordinary
from coopt.report import words
from coopt.report.tables import figures
from coopt.report.validation import hardware_lines, value
from coopt.validation.own_calibration import NextRun, OwnCalibration, Proposal
from coopt.validation.posterior import Interval, Posterior

DEGREES = ("tp", "cp", "pp", "dp", "ep", "interleave")


def posterior_report(found: OwnCalibration) -> Iterator[RenderableType]:
    """Values with intervals, errors before and after, and the mappings that are worth a run."""
    posteriors = found.posteriors
    rows = sum(len(one.rows) for one in posteriors)
    yield Text(f"{words.counted(rows, 'run')} of your own; the catalog is as it was.", style="bold")
    yield ""
    yield figures(
        "Values, and where nine of ten lie",
        ("of", "parameter"),
        ("catalog", "its interval", "given the runs", "interval"),
        [(one.name, *_values(parameter)) for one in posteriors for parameter in one.parameters],
    )
    yield figures(
        "Error, mean",
        ("of",),
        ("runs", "catalog", "given the runs"),
        [
            (
                one.name,
                words.count(len(one.rows)),
                words.percent(one.before.mean_abs_error),
                words.percent(one.fitted.mean_abs_error),
            )
            for one in posteriors
        ],
    )
    for one in posteriors:
        yield from _doubts(one)
    for name, why in found.skipped.items():
        yield f"Left out: {name}, {why}."
    for following in found.next_runs:
        yield ""
        yield from _next(following)
    yield ""
    yield Text("To be pasted by hand, into coopt/catalog or the tables of an instance:", style="bold")
    yield ""


def _doubts(one: Posterior) -> Iterator[RenderableType]:
    """How far the catalog is taken to be off, and whether these runs fit that."""
    yield (
        f"{one.name}: the catalog is taken to be off by {words.percent(one.common_error)} on all runs together, "
        f"and by {words.percent(one.own_error)} on each mapping (standard errors of published runs whose source "
        "was left out)."
    )
    if one.surprising:
        yield (
            f"{one.name}: these runs are further off than nine of ten published ones, so see whether columns that "
            "the logs leave out are as they were: GPUs in a domain (gpus_per_node), network, recomputation."
        )


def posterior_lines(posteriors: Sequence[Posterior]) -> str:
    """TOML as in `coopt/catalog/gpu.toml`, with the most probable values."""
    return "\n".join(
        line
        for one in posteriors
        for line in hardware_lines(
            one.generation,
            one.precision,
            {parameter.name: parameter.after for parameter in one.parameters},
            f"{words.counted(len(one.rows), 'run')} of one's own by `coopt calibrate`, around the catalog's values",
        )
    )


def _values(parameter: Interval) -> tuple[str, ...]:
    return (
        parameter.name,
        value(parameter.before),
        f"{value(parameter.before_low)} to {value(parameter.before_high)}",
        value(parameter.after),
        f"{value(parameter.low)} to {value(parameter.high)}",
    )


def _next(found: NextRun) -> Iterator[RenderableType]:
    """Which mapping is chosen, and which to measure."""
    yield (
        f"As {found.like} on {words.counted(found.gpus, 'GPU')}: of {words.counted(found.mappings, 'mapping')} "
        f"that fit, the fastest is expected to be {mapping_words(found.chosen)}: {words.seconds(found.chosen_s)}."
    )
    if not found.proposals:
        yield "No further measurement is expected to change that."
        return
    yield figures(
        "Worth a run next: what its time is expected to save, and how likely it changes the mapping",
        ("mapping",),
        ("predicted", "nine of ten", "saves", "changes"),
        [_proposal(one) for one in found.proposals],
    )


def _proposal(one: Proposal) -> tuple[str, ...]:
    between = f"{words.seconds(one.low_s)} to {words.seconds(one.high_s)}"
    return (
        mapping_words(one.mapping),
        words.seconds(one.predicted_s),
        between,
        words.percent(one.saves),
        words.percent(one.changes),
    )


def mapping_words(mapping: Mapping[str, int | bool | str]) -> str:
    """`TP 8, PP 4, DP 2, micro-batch 1, ZeRO 1`: what is split, and what else is not as usual."""
    split = [f"{name.upper() if len(name) == 2 else name} {mapping[name]}" for name in DEGREES if mapping[name] != 1]
    rest = [f"micro-batch {mapping['micro_batch']}"]
    if mapping["zero"]:
        rest.append(f"ZeRO {mapping['zero']}")
    if mapping["recompute"] != "none":
        rest.append(f"recompute {mapping['recompute']}")
    rest += beside_ordinary(mapping, short=True)
    if mapping["tp"] != 1 and not mapping["sequence_parallel"]:
        rest.append("without sequence parallelism")
    return ", ".join(split + rest)
