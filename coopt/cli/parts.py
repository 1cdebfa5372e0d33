"""Answers part by part: one section each on the terminal, a list in JSON, one part alone by its name."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

import click

from coopt.cli.terminal import answer
from coopt.instance.listings import alternatives

if TYPE_CHECKING:
    from coopt.instance.schema import Instance
    from coopt.plan.parts import Record
    from coopt.plan.schema import Plan

R = TypeVar("R", bound="Record")

part_option = click.option("--part", metavar="NAME", help="One part of several.  [all]")


def parts_asked(instance: Instance, plan: Plan, part: str | None) -> tuple[str, ...]:
    """The names of the parts that an answer goes through.

    Raises
    ------
    InstanceError
        When the plan is of another instance, has no part of that name, or none at all.
    """
    from coopt.network.part_networks import part_named
    from coopt.plan.store import check_same_question

    check_same_question(instance, plan)
    if part is None and len(plan.parts) > 1:
        return tuple(one.name for one in plan.parts)
    return (part_named(instance, plan, part).name,)


def check_single(names: tuple[str, ...], option: str, given: object) -> None:
    """Refuse an option that writes one file, where there are several parts.

    Raises
    ------
    InstanceError
        With the names to choose from.
    """
    from coopt.instance.errors import InstanceError

    if given is not None and len(names) > 1:
        raise InstanceError(
            f"{option}: holds one part and the plan has {len(names)}, needs --part {alternatives(map(repr, names))}"
        )


def answer_parts(found: Iterable[tuple[str, R]], shown: Callable[[R], str], *, as_json: bool) -> None:
    """Print the answer on each part: alone as it is, of several under their names."""
    every = list(found)
    if len(every) == 1:
        _, one = every[0]
        answer(one.model_dump_json(by_alias=True, indent=2) if as_json else shown(one))
    elif as_json:
        rows = [{"part": name, **one.model_dump(mode="json", by_alias=True)} for name, one in every]
        answer(json.dumps(rows, indent=2))
    else:
        answer("\n".join(f"Part {name}\n\n{shown(one)}" for name, one in every))
