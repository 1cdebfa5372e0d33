"""Arguments that several commands take, and what a shell completes them to.

Answers come part by part: one section each on the terminal, a list in JSON, one part alone by its
name.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from coopt.cli.terminal import SETTING, answer, setting_text
from coopt.instance.errors import alternatives

if TYPE_CHECKING:
    from pydantic import BaseModel

    from coopt.instance.schema import Instance
    from coopt.plan.parts import Record
    from coopt.plan.schema import Plan

R = TypeVar("R", bound="Record")

part_option = click.option("--part", metavar="NAME", help="One part of several.  [all]")


def a_file(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Files, which the shell lists itself."""
    return [CompletionItem(incomplete, type="file")]


def catalog_kind(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Kinds of catalog entries."""
    from coopt.instance.catalog import KINDS

    return [kind for kind in KINDS if kind.startswith(incomplete)]


def catalog_name(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Names of catalog entries of every kind."""
    from coopt.instance.catalog import KINDS, entries

    return [name for kind in KINDS for name in entries(kind) if name.startswith(incomplete)]


def setting(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Keys of an instance; behind the `=` of a key that takes one, names of the catalog."""
    from coopt.instance.catalog import entries
    from coopt.instance.schema import Instance

    key, equals, value = incomplete.partition("=")
    keys = dict(dotted_keys(Instance))
    if equals:
        form_key = re.sub(r"\[[^\]]*\]|\.\d+(?=\.|$)", "", key)
        kind = keys.get(form_key)
        return [
            f"{key}={name}" for name in (entries(kind) if kind else ()) if name.startswith(value)
        ]
    return [f"{name}=" for name in keys if name.startswith(incomplete)]


def dotted_keys(form: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, str | None]]:
    """The keys of a form and of the tables in it, such as `network.max_tiers`, each with the kind
    of its catalog.
    """
    from coopt.instance.catalog import KINDS
    from coopt.instance.complaints import model_in

    kinds: dict[type[BaseModel], str] = {entry: kind for kind, entry in KINDS.items()}
    for name, field in form.model_fields.items():
        key, table_form = f"{prefix}{field.alias or name}", model_in(field.annotation)
        if table_form is None or table_form in kinds:
            yield key, kinds[table_form] if table_form else None
        else:
            yield from dotted_keys(table_form, f"{key}.")


Command = Callable[..., Any]
Settings = tuple[tuple[str, Any], ...]
"""Keys of an instance with the values that replace what it says."""


def with_settings(words: Sequence[str], settings: Settings) -> str:
    """A command as one types it, with the same values replaced."""
    return shlex.join(
        [*words, *(word for pair in settings for word in ("--set", setting_text(*pair)))]
    )


settings_option = click.option(
    "--set",
    "settings",
    type=SETTING,
    shell_complete=setting,
    multiple=True,
    help=(
        "Replace a value of the instance, such as network.max_tiers=2 or workload.0.mapping.tp=8;"
        " repeatable."
    ),
)


def instance_argument(command: Command) -> Command:
    """The file of an instance, and `--set` for what is to replace its values."""
    return click.argument("instance", shell_complete=a_file)(settings_option(command))


plan_argument = click.argument("plan", metavar="PLAN.json", shell_complete=a_file)


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
        return tuple(member.name for member in plan.parts)
    return (part_named(instance, plan, part).name,)


def check_single(names: tuple[str, ...], option: str, value: object) -> None:
    """Refuse an option that writes one file, where there are several parts.

    Raises
    ------
    InstanceError
        With the names to choose from.
    """
    from coopt.instance.errors import InstanceError

    if value is not None and len(names) > 1:
        raise InstanceError(
            f"{option}: holds one part and the plan has {len(names)}, needs --part"
            f" {alternatives(map(repr, names))}"
        )


def answer_parts(
    answers: Iterable[tuple[str, R]], text_of: Callable[[R], str], *, as_json: bool
) -> None:
    """Print the answer on each part: alone as it is, of several under their names."""
    parts = list(answers)
    if len(parts) == 1:
        _, content = parts[0]
        answer(content.model_dump_json(by_alias=True, indent=2) if as_json else text_of(content))
    elif as_json:
        rows = [
            {"part": name, **content.model_dump(mode="json", by_alias=True)}
            for name, content in parts
        ]
        answer(json.dumps(rows, indent=2))
    else:
        answer("\n".join(f"Part {name}\n\n{text_of(content)}" for name, content in parts))
