"""What runs of one's own say about the parameters of the hardware, and what to run next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from rich.console import RenderableType
from rich.text import Text

from coopt.instance.texts import both, grouped, that_hold
from coopt.plan.parts import beside_ordinary
from coopt.report import words
from coopt.report.validation import TO_PASTE, hardware_lines, value
from coopt.report.words import figures, pieces
from coopt.validation.link_tests import LinkFit
from coopt.validation.own_calibration import NextRun, OwnCalibration
from coopt.validation.posterior import Posterior

DEGREES = ("tp", "cp", "pp", "dp", "ep", "interleave")


def posterior_report(calibration: OwnCalibration) -> list[RenderableType]:
    """Values with intervals, errors before and after, and the mappings that are worth a run."""
    posteriors = calibration.posteriors
    runs = words.counted(sum(len(posterior.rows) for posterior in posteriors), "run")
    has_links = any(not link.why for link in calibration.links)
    tests = words.counted(sum(not link.why for link in calibration.links), "result")
    used = [runs] * bool(posteriors) + [f"{tests} of nccl-tests"] * has_links
    values = [
        (
            posterior.name,
            one.name,
            value(one.before),
            f"{value(one.before_low)} to {value(one.before_high)}",
            value(one.after),
            f"{value(one.low)} to {value(one.high)}",
        )
        for posterior in posteriors
        for one in posterior.parameters
    ]
    errors = [
        (
            posterior.name,
            words.count(len(posterior.rows)),
            words.percent(posterior.before.mean_abs_error),
            words.percent(posterior.fitted.mean_abs_error),
        )
        for posterior in posteriors
    ]
    offered = [posterior for posterior in posteriors if not posterior.unphysical]
    return pieces(
        Text(f"Fitted to {both(used) or 'no run'}; the catalog is unchanged.", style="bold"),
        *(_predictions(calibration) if calibration.rows else ()),
        *_links(calibration.links),
        figures(
            "Fitted values with 90% intervals",
            ("of", "parameter"),
            ("catalog", "its interval", "fitted to your runs", "interval"),
            values,
        )
        if values
        else None,
        figures("Error, mean", ("of",), ("runs", "catalog", "fitted to your runs"), errors)
        if errors
        else None,
        *map(_doubts, posteriors),
        [f"Left out: {name}, {reason}." for name, reason in calibration.skipped.items()],
        *map(_next_run, calibration.next_runs),
        Text(f"{TO_PASTE}\n", style="bold")
        if offered or has_links
        else "There are no new values to copy.\n",
    )


def _links(links: Sequence[LinkFit]) -> list[RenderableType]:
    """What nccl-tests reached of the bandwidth of links."""
    rows = [
        (
            link.id,
            f"{link.operation}, {link.ranks} ranks in {words.counted(link.domains, 'domain')}",
            link.parameter,
            f"{link.bus_gbyte_s:.1f}",
            f"{link.link_gbyte_s:g}",
            value(link.before),
            value(link.after),
        )
        for link in links
    ]
    table = figures(
        "Collectives",
        ("test", "of", "parameter"),
        ("bus GB/s", "link GB/s", "catalog", "reached"),
        rows,
    )
    whys = [f"{link.id}: not used: {link.why}." for link in links if link.why]
    return [table, *whys] if links else []


def link_lines(links: Sequence[LinkFit]) -> str:
    """TOML as in `coopt/catalog/gpu.toml`, with the mean share of each parameter."""
    used = grouped((link.generation, link) for link in links if not link.why)
    return "\n".join(
        line
        for generation, of_generation in used.items()
        for line in hardware_lines(
            generation,
            "16-bit",
            _mean_values(of_generation),
            f"{words.counted(len(of_generation), 'result')} of nccl-tests by `coopt calibrate`",
        )
    )


def _mean_values(links: Sequence[LinkFit]) -> dict[str, float]:
    """The mean of each value that some tests reached, by its name in `efficiency`."""
    reached = grouped(
        (name, value)
        for link in links
        for name, value in ((link.parameter, link.after), ("latency_s", link.latency_s))
        if value is not None
    )
    return {name: fmean(values) for name, values in reached.items()}


def _predictions(calibration: OwnCalibration) -> list[RenderableType]:
    """Measured beside predicted times and memory, and what was read and assumed of each run."""
    evaluated = [result for result in calibration.rows if result.status == "evaluated"]
    rows = [
        (
            result.id,
            words.seconds(result.measured_s or 0.0),
            words.seconds(result.predicted_s or 0.0),
            f"{result.memory_gib:,.0f} of {result.memory_limit_gib:,.0f}",
        )
        for result in evaluated
    ]
    return [
        figures(
            "Runs, predicted with the catalog's values",
            ("run",),
            ("measured", "predicted", "memory, GiB"),
            rows,
        ),
        *(f"{name}: {columns}." for name, columns in calibration.read.items()),
        *(
            f"{result.id}, assumed: {'; '.join(result.assumptions)}."
            for result in evaluated
            if result.assumptions
        ),
    ]


def _doubts(posterior: Posterior) -> list[RenderableType]:
    """How far the catalog is taken to be off, and whether these runs fit that."""
    return pieces(
        f"{posterior.name}: the fit assumes that predictions with the catalog are off by"
        f" {words.percent(posterior.common_error)} for all runs alike, and by a further"
        f" {words.percent(posterior.own_error)} for each mapping (standard errors, from published"
        " runs that the catalog's fit did not use).",
        f"{posterior.name}: to match these runs, {both(posterior.unphysical)} would have to be"
        " at a physical limit, so no values are offered. Check the model, GPU and mapping of the"
        " runs."
        if posterior.unphysical
        else None,
        f"{posterior.name}: predictions for these runs are off by more than the assumed errors"
        " explain in nine of ten cases. Check what logs leave out: GPUs in a domain"
        " (gpus_per_node), network, recomputation."
        if posterior.surprising
        else None,
    )


def posterior_lines(posteriors: Sequence[Posterior]) -> str:
    """TOML as in `coopt/catalog/gpu.toml`, with the most probable values."""
    return "\n".join(
        line
        for posterior in posteriors
        if not posterior.unphysical
        for line in hardware_lines(
            posterior.generation,
            posterior.precision,
            {parameter.name: parameter.after for parameter in posterior.parameters},
            f"{words.counted(len(posterior.rows), 'run')} of one's own by `coopt calibrate`, "
            "around the catalog's values",
        )
    )


def _next_run(choice: NextRun) -> list[RenderableType]:
    """Which mapping is chosen, and which to measure."""
    fastest = (
        f"For a run like {choice.like} on {words.counted(choice.gpus, 'GPU')},"
        f" {words.counted(choice.mappings, 'mapping')} fit{'s' * (choice.mappings == 1)} into"
        " memory; the fastest is expected"
        f" to be {mapping_words(choice.chosen)} with {words.seconds(choice.chosen_s)} an"
        " iteration."
    )
    rows = [
        (
            mapping_words(run.mapping),
            words.seconds(run.predicted_s),
            f"{words.seconds(run.low_s)} to {words.seconds(run.high_s)}",
            words.percent(run.saves),
            words.percent(run.changes),
        )
        for run in choice.proposals
    ]
    title = (
        "Which run to measure next: time it may save, and how likely it changes the best mapping"
    )
    table = figures(title, ("mapping",), ("predicted", "90% interval", "saves", "changes"), rows)
    return [
        fastest,
        table if rows else "No further measurement is expected to change the best mapping.",
    ]


def mapping_words(mapping: Mapping[str, int | bool | str]) -> str:
    """`TP 8, PP 4, DP 2, micro-batch 1, ZeRO 1`: what is split, and what else is not as usual."""
    degrees = {
        name: f"{name.upper() if len(name) == 2 else name} {mapping[name]}" for name in DEGREES
    }
    unordered = mapping["tp"] != 1 and not mapping["sequence_parallel"]
    details = {
        f"micro-batch {mapping['micro_batch']}": True,
        f"ZeRO {mapping['zero']}": bool(mapping["zero"]),
        f"recompute {mapping['recompute']}": mapping["recompute"] != "none",
        **dict.fromkeys(beside_ordinary(mapping, short=True), True),
        "without sequence parallelism": unordered,
    }
    split = [text for name, text in degrees.items() if mapping[name] != 1]
    return ", ".join([*split, *that_hold(details)])
