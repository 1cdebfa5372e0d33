"""Layouts of pipelines in Megatron-LM's letters: which layers each chunk of a model has."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

from coopt.instance.texts import alternatives, both, counted, refuse

MOST_LETTERS = 1 << 14
# a group in parentheses, or one letter, and how often it is repeated
REPEATS = (
    re.compile(r"\(([^()]*)\)\*(\d{1,9})", re.ASCII),
    re.compile(r"([^()*])\*(\d{1,9})", re.ASCII),
)
GRAMMAR = "EtmL|,()*0123456789"
# what lists in place of letters call the parts of a chunk
NAMES = {"embedding": "E", "decoder": "t", "mtp": "m", "loss": "L"}


class Chunk(NamedTuple):
    """A chunk of a model: transformer layers, layers that predict further tokens, and whether it
    has the embedding and the loss.
    """

    layers: int
    predictions: int
    embeds: bool
    loss: bool

    @property
    def all_layers(self) -> int:
        """Layers of both kinds."""
        return self.layers + self.predictions


Layout = tuple[Chunk, ...]
"""Chunks in the order of the model; chunk i is on stage i mod p."""


@lru_cache(maxsize=1 << 8)
def layout_of(text: str) -> Layout:
    """Read a layout such as `Et*3|(tt|)*29m|L`.

    Raises
    ------
    ValueError
        If a letter is unknown, or embedding, layers and loss are not in the order of a model.
    """
    unknown = [letter for letter in text if letter not in GRAMMAR]
    letters = "" if unknown else _unrolled(text)
    if unknown := unknown or [letter for letter in letters if letter not in "EtmL|"]:
        raise ValueError(
            f"{unknown[0]!r} has no meaning here, needs E (embedding), t (layer), m (layer that"
            " predicts further tokens), L (loss) and | between chunks, repeated as t*3 or (tt|)*2"
        )
    chunks = letters.split("|")
    refuse(
        (
            not re.fullmatch("Et*m*L", "".join(chunks)),
            "needs one E first, then layers t, then layers m, and one L last",
        ),
        (
            not (chunks[0].startswith("E") and chunks[-1].endswith("L")),
            "needs E in the first chunk and L in the last",
        ),
        (
            sum("m" in chunk for chunk in chunks) > 1,
            "layers m are in several chunks, needs all of them in one",
        ),
    )
    return tuple(
        Chunk(chunk.count("t"), chunk.count("m"), "E" in chunk, "L" in chunk) for chunk in chunks
    )


def letters_of(text: str) -> str:
    """Return a layout in letters that may be written as lists of names, one for each chunk.

    Raises
    ------
    ValueError
        If a name is unknown.
    """
    if "[" not in text:
        return text
    chunks = [re.findall(r"\w+", chunk.lower()) for chunk in re.findall(r"\[([^\[\]]*)\]", text)]
    if unknown := [name for chunk in chunks for name in chunk if name not in NAMES]:
        raise ValueError(f"{unknown[0]!r} is no part of a model, needs {alternatives(NAMES)}")
    return "|".join("".join(NAMES[name] for name in chunk) for chunk in chunks)


def _unrolled(text: str) -> str:
    letters = text.replace(",", "")
    for pattern in REPEATS:
        length = len(letters) + sum(
            len(match[1]) * int(match[2]) for match in pattern.finditer(letters)
        )
        if length > MOST_LETTERS:
            raise ValueError(f"it has {length:,} letters, needs at most {MOST_LETTERS:,}")
        letters = pattern.sub(lambda match: match[1] * int(match[2]), letters)
    return letters


@lru_cache(maxsize=1 << 10)
def stages_of(layout: Layout, p: int) -> Layout:
    """Return what each of p stages has in all of its chunks."""
    return tuple(
        Chunk(
            sum(chunk.layers for chunk in layout[stage::p]),
            sum(chunk.predictions for chunk in layout[stage::p]),
            any(chunk.embeds for chunk in layout[stage::p]),
            any(chunk.loss for chunk in layout[stage::p]),
        )
        for stage in range(p)
    )


def chunks_of_stage(
    layout: Layout, p: int, stages: tuple[int, ...] | None, chunks: tuple[int, ...] | None
) -> int:
    """Return the chunks that each of p stages has; 0 where the layout does not go with so many.

    As in Megatron-LM, layers that predict further tokens are in the last chunk of their stage.

    Parameters
    ----------
    stages, chunks
        Numbers of stages and of chunks that are allowed; any where None.
    """
    v, remainder = divmod(len(layout), p)
    is_allowed = (stages is None or p in stages) and (chunks is None or v in chunks)
    is_late = not any(chunk.predictions for chunk in layout[: (v - 1) * p])
    return v if not remainder and is_allowed and is_late and (p > 1 or v == 1) else 0


def layout_fault(
    text: str,
    layers: int,
    predictions: int,
    stages: tuple[int, ...] | None,
    chunks: tuple[int, ...] | None,
) -> str:
    """Return what is wrong with a layout of a model, and what it needs; empty if nothing is."""
    layout = layout_of(text)
    drawn = sum(chunk.layers for chunk in layout), sum(chunk.predictions for chunk in layout)
    if drawn != (layers, predictions):
        return (
            f"it has {counted(drawn[0], 'layer')} t and {counted(drawn[1], 'layer')} m, needs"
            f" {layers} and {predictions}, as the model has"
        )
    count, most = len(layout), layers + predictions + 2
    if count > most:  # what can be alone in a chunk
        return (
            f"it has {counted(count, 'chunk')}, needs at most {most}, one for each layer, the"
            " embedding and the loss"
        )
    if not any(chunks_of_stage(layout, p, stages, chunks) for p in range(1, count + 1)):
        limits = {"pp": stages, "interleave": chunks}
        listed = both(f"{key} = {list(values)}" for key, values in limits.items() if values)
        return (
            f"it has {counted(count, 'chunk')}, needs as many as stages times chunks per stage"
            + (f" ({listed})" if listed else "")
            + (", with layers m in the last chunk of their stage" if predictions else "")
        )
    return ""


def layout_of_ends(layers: int, p: int, first: int, last: int, predictions: int) -> str:
    """Write p stages of which the first and the last have so many layers, where not 0, and the
    others equally many; empty if they cannot.
    """
    others = p - (first > 0) - (last > 0)
    each, remainder = divmod(layers - first - last, max(others, 1))
    if p < 2 or remainder or each < 0 or (others == 0 and each):
        return ""
    return layout_text([first or each, *[each] * (p - 2), last or each], predictions)


def layout_text(sizes: list[int], predictions: int) -> str:
    """Write chunks of so many layers, the last of them with those that predict further tokens."""
    *earlier, last_size = sizes
    text = "E"
    for size, repeats in groupby(earlier):
        count = len(list(repeats))
        text += f"({'t' * size}|)*{count}" if count > 1 else f"{'t' * size}|"
    return text + "t" * last_size + "m" * predictions + "L"
