"""Parameters of models by component, beside what was published."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType

from coopt.instance.transformer import Transformer
from coopt.perf.mapping import components, further_parameters, model_parameters
from coopt.report import words
from coopt.report.words import figures


def parameter_report(model: Transformer, published: Transformer | None = None) -> RenderableType:
    """A table of the parameters of each component, total and active."""
    rows = [
        (part.name, _billions(part.total), _billions(part.active)) for part in components(model)
    ]
    return figures(
        "parameters (10^9)",
        ("component",),
        ("total", "active"),
        [*rows, *_sums(model, published or model)],
    )


def _sums(model: Transformer, published: Transformer) -> Iterator[tuple[str, str, str]]:
    total, active = model_parameters(model)
    table = model.vocab * model.hidden
    yield "all", _billions(total), _billions(active)
    yield "without the input embedding", _billions(total - table), _billions(active - table)
    if published.published_total or published.published_active:
        name = "as published" if published is model else f"as published for {published.name}"
        figures_of = (published.published_total, published.published_active)
        total_text, active_text = (f"{size:,.4g}" if size else "" for size in figures_of)
        yield name, total_text, active_text
    if model.extra_predictions:
        further = _billions(further_parameters(model))
        yield f"in addition, {words.counted(model.extra_predictions, 'MTP layer')}", further, ""


def _billions(size: float) -> str:
    return f"{size / 1e9:,.3f}"


def parameter_figures(model: Transformer) -> dict[str, object]:
    """The same as a table of numbers."""
    total, active = model_parameters(model)
    return {
        "total": total,
        "active": active,
        "further_predictions": further_parameters(model) if model.extra_predictions else 0.0,
        "components": [part._asdict() for part in components(model)],
        "published_total": model.published_total,
        "published_active": model.published_active,
    }
