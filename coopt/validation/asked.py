"""What to fit, from the words of a user."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from fnmatch import fnmatchcase

from coopt.instance.catalog import entries
from coopt.instance.errors import InstanceError
from coopt.instance.hardware import Gpu
from coopt.validation.adjust import OF_SOFTWARE, fittable
from coopt.validation.facts import FitSet, known

MOST_PARAMETERS = 4  # more of them fit the rows better and predict others worse


def sets_asked(
    generation: str | None, precision: str | None, parameters: str | None, rows: Sequence[str]
) -> tuple[FitSet, ...]:
    """The default sets that are meant, with other parameters or rows where some are named.

    Raises
    ------
    InstanceError
        When a generation or parameter is not known, or parameters are named for more than one generation.
    """
    names = _names(parameters)
    if generation is not None:
        _check_generation(generation)
    elif names:
        raise InstanceError("--parameters: fits one generation at a time, needs --generation NAME")
    narrow = precision or ("16-bit" if names else None)
    meant = [asked for asked in known().fit if _meant(asked, generation, narrow)]
    if generation is not None and narrow is not None and not meant:
        every = {"generation": generation, "precision": narrow, "parameters": fittable("fp8")}
        meant = [FitSet.model_validate(every)]
    changes = {**({"parameters": names} if names else {}), **({"rows": tuple(rows)} if rows else {})}
    for asked in meant:
        _check_parameters(names, asked)
    if not meant:
        raise InstanceError(f"nothing to fit for {generation or 'any generation'}, needs --precision as well")
    return tuple(asked.model_copy(update=changes) for asked in meant)


def check_globs(globs: Sequence[str], ids: Collection[str]) -> None:
    """Refuse patterns that fit no row at all.

    Raises
    ------
    InstanceError
        With a sentence for each.
    """
    idle = [glob for glob in globs if not any(fnmatchcase(name, glob) for name in ids)]
    if idle:
        raise InstanceError(
            f"--rows = {glob!r}: no id of the table is like that, needs such as 'dgxc-*'" for glob in idle
        )


def _meant(asked: FitSet, generation: str | None, precision: str | None) -> bool:
    if asked.software:
        return generation is None and precision is None
    return generation in (None, asked.generation) and precision in (None, asked.precision)


def _names(parameters: str | None) -> tuple[str, ...]:
    if parameters is None:
        return ()
    names = tuple(dict.fromkeys(name.strip() for name in parameters.split(",") if name.strip()))
    if not 1 <= len(names) <= MOST_PARAMETERS:
        raise InstanceError(f"--parameters = {parameters!r}: needs one to {MOST_PARAMETERS} names, such as gemm,hbm")
    return names


def _check_generation(generation: str) -> None:
    found = dict.fromkeys(gpu.generation for gpu in entries("gpu").values() if isinstance(gpu, Gpu) and gpu.generation)
    if generation not in found:
        raise InstanceError(f"--generation = {generation!r}: no GPU of the catalog, needs one of {', '.join(found)}")


def _check_parameters(names: Sequence[str], asked: FitSet) -> None:
    known_names = OF_SOFTWARE if asked.software else fittable(asked.precision)
    unknown = [name for name in names if name not in known_names]
    if unknown:
        raise InstanceError(
            f"--parameters: {', '.join(unknown)} cannot be fitted for {asked.precision}, "
            f"needs some of {', '.join(known_names)}"
        )
