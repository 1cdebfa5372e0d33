"""What a training run is made of: the keys of `[workload.software]`, which are columns of measured
runs too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union

from pydantic import Field, create_model
from pydantic.fields import FieldInfo

from coopt.instance.base import Count, Entry, Name, Table
from coopt.instance.catalog import Book, find
from coopt.instance.texts import alternatives, both
from coopt.instance.transformer import Software

Dispatcher = Literal["all-to-all", "deepep", "hybridep", "nvlink"]
USUAL = "megatron-core"
COMPILED = {True: "fsdp", False: "fsdp-eager"}
"""PyTorch FSDP2 with a compiler and without, as the catalog calls them."""


class Composition(Table):
    """What a run is made of, beyond the properties that entries of the catalog have."""

    framework: Annotated[
        Name | None, Field(description="catalog name of the framework; megatron-core if left out")
    ] = None
    compile: Annotated[
        bool | None, Field(description="a compiler fuses pointwise kernels (fsdp), or none does")
    ] = None
    dispatcher: Annotated[
        Dispatcher | None,
        Field(
            description=(
                "what sends tokens to experts: all-to-alls of NCCL, DeepEP, HybridEP, or a kernel"
                " over NVLink"
            )
        ),
    ] = None
    dispatcher_multiprocessors: Annotated[
        Count | None,
        Field(
            description=(
                "multiprocessors of a GPU that it copies with; links are the bound if left out"
            )
        ),
    ] = None

    def options(self, options: Mapping[str, Any], book: Book | None) -> dict[str, Any]:
        """Return `options` of a workload with what this says of its software.

        Raises
        ------
        ValueError
            If the framework is unknown, or another key says the same thing otherwise.
        """
        changes = self.model_dump(exclude_none=True, exclude=set(Composition.model_fields))
        own: dict[str, Any] = {"software": {"extends": self._framework(book), **changes}}
        if self.dispatcher is not None:
            own["dispatch"] = "each" if self.dispatcher == "all-to-all" else "once"
        if self.dispatcher_multiprocessors is not None:
            own["dispatch_multiprocessors"] = self.dispatcher_multiprocessors
        if twice := [f"options.{key}" for key in own if key in options]:
            raise ValueError(
                f"software: {both(twice)} {'set' if len(twice) > 1 else 'sets'} the same, needs"
                f" either software or {'those keys' if len(twice) > 1 else 'that key'}"
            )
        return {**options, **own}

    def _framework(self, book: Book | None) -> str:
        framework = self.framework or USUAL
        try:
            find("software", framework, book)
        except ValueError as error:
            raise ValueError(f"software.framework = {framework!r}: {error}") from None
        if self.compile is None:
            return framework
        if framework not in COMPILED.values():
            raise ValueError(
                f"software.compile = {str(self.compile).lower()}: has no effect in {framework},"
                f" needs the framework {alternatives(COMPILED.values())}"
            )
        return COMPILED[self.compile]


def _optional(field: FieldInfo) -> tuple[Any, FieldInfo]:
    """Return a property of frameworks as a key that may be left out."""
    return Union[field.annotation, None], FieldInfo.merge_field_infos(field, default=None)  # noqa: UP007


if TYPE_CHECKING:
    RunSoftware = Composition
else:
    PROPERTIES = [name for name in Software.model_fields if name not in Entry.model_fields]
    RunSoftware = create_model(
        "RunSoftware",
        __base__=Composition,
        __doc__=(
            "The software of a run: these keys, and those of `workload.options.software`. Each"
            " replaces the catalog's value."
        ),
        **{name: _optional(Software.model_fields[name]) for name in PROPERTIES},
    )
