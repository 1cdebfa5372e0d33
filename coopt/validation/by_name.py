"""The shape of a model whose row gives a catalog name in place of columns."""

from __future__ import annotations

from coopt.instance.catalog import entries
from coopt.instance.transformer import Transformer
from coopt.validation.published import SHAPE, Row

ALIKE = {name: name for name in ("layers", "hidden", "ffn", "heads", "kv_heads", "head_dim", "experts")} | {
    "topk": "top_k"
}


def unpublished(row: Row) -> list[str]:
    """Columns of the shape that the row leaves empty."""
    return [name for name in SHAPE if getattr(row, name) is None]


def shape_by_name(row: Row, assumed: list[str]) -> Transformer | None:
    """The catalog's model of the row's name, with the row's vocabulary and sequence length.

    None where the row says everything itself, where no model has its name, or where its columns contradict that model.

    Parameters
    ----------
    assumed
        Takes a sentence about what came from the catalog.
    """
    missing, model = unpublished(row), entries("model").get(row.model.lower())
    if not missing or not isinstance(model, Transformer):
        return None
    if any(getattr(row, column) not in (None, getattr(model, name)) for column, name in ALIKE.items()):
        return None
    assumed.append(f"{', '.join(missing)} of {model.name} from the catalog")
    return model.model_copy(update={"vocab": row.vocab or model.vocab, "seq": row.seq or model.seq})
