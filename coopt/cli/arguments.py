"""Arguments that several commands take, and what a shell completes them to.

Answers come part by part: one section each on the terminal, a list in JSON, one part alone by its
name. The answer goes to stdout and notes to stderr; places to write to and typed values are checked
before a search begins.
"""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from coopt.instance.texts import (
    InstanceError,
    alternatives,
    check_digits,
    that_hold,
    toml_text,
    unwritten,
    write_text,
)

if TYPE_CHECKING:
    from pydantic import BaseModel

    from coopt.instance.schema import Instance
    from coopt.plan.parts import Record
    from coopt.plan.schema import Plan


TURNING = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Characters that turn the direction of a text, so that a terminal shows something else than what
is there.
"""


REFUSED, INFEASIBLE, STOPPED, FAILED = 1, 3, 4, 5
"""Exit codes: input that cannot be used, what is proven not to exist, what ended before its proof,
and what was checked and does not hold. Misuse of the command line is 2.
"""


def answer(text: str) -> None:
    """Write the answer to stdout; a reader that has gone away (`| head`) is no error and keeps the
    exit code.
    """
    try:
        _write(sys.stdout, text)
    except BrokenPipeError:
        _hush(sys.stdout)
    except OSError as error:
        _hush(sys.stdout)
        raise unwritten("standard output", error, "a writable file or pipe") from None


def note(text: str) -> None:
    """Tell something on stderr, one line with the name of the program before it."""
    try:
        _write(sys.stderr, f"coopt: {text}")
    except OSError:
        _hush(sys.stderr)


def write_file(file: str | None, content: Callable[[], str], what: str) -> None:
    """Write a file where one is named, and tell what it holds; `content` is made only then."""
    if file is not None:
        write_text(file, content())
        note(f"{what} written to {file}")


GIVEN = (ParameterSource.COMMANDLINE, ParameterSource.DEFAULT_MAP)


def command_line(ctx: click.Context) -> str:
    """The sub-command that runs, as one would type it, with the options that were given."""
    typed = ["coopt", str(ctx.info_name)]
    for parameter in ctx.command.params:
        name = str(parameter.name)
        if ctx.get_parameter_source(name) in GIVEN:
            if parameter.type is SETTING:
                typed += [
                    word
                    for setting in ctx.params[name]
                    for word in ("--set", setting_text(*setting))
                ]
                continue
            flag = isinstance(parameter, click.Option) and parameter.is_flag
            typed += [parameter.opts[0]] if isinstance(parameter, click.Option) else []
            typed += [] if flag else [str(ctx.params[name])]
    return shlex.join(typed)


def check_place(output: str, *others: str) -> None:
    """Refuse a place where nothing can be written, before hours of search.

    Parameters
    ----------
    others
        Files that are read, or written by another option.

    Raises
    ------
    InstanceError
        When `output` is a folder or a device, one of the others, or lies in a folder that cannot be
        written to.
    """
    if output == "-":
        raise InstanceError(
            "-: this file cannot be written to standard output, needs the name of a file"
        )
    file = Path(output)
    with _writable(output):
        same = [
            other
            for other in map(Path, others)
            if file == other or (file.exists() and other.exists() and file.samefile(other))
        ]
        for refusal in that_hold(
            {
                "is a folder, needs the name of a file": file.is_dir(),
                "is not a regular file, needs the name of one": file.exists()
                and not file.is_file(),
                f"is the same file as {''.join(map(str, same[:1]))}, which this command reads or"
                " writes too, needs another name": bool(same),
            }
        ):
            raise InstanceError(f"{output}: {refusal}")
        with tempfile.TemporaryFile(dir=Path(os.path.realpath(file)).parent):
            pass


@contextmanager
def _writable(output: str) -> Iterator[None]:
    """Refuse a place that the system says nothing can be written to."""
    try:
        yield
    except OSError as error:
        raise unwritten(output, error, "an existing folder with write permission") from None


def check_places(outputs: Iterable[str | None], *inputs: str) -> None:
    """Refuse places to write to, those that are given, as `check_place` does; each has to be
    another one.
    """
    places = [place for place in outputs if place is not None]
    for number, place in enumerate(places):
        check_place(place, *inputs, *places[:number])


def check_folder(output: str) -> None:
    """Refuse a folder that nothing can be written to; one that is not there yet is made later.

    Raises
    ------
    InstanceError
        When `output` or a folder above it is a file, or cannot be written to, or `output` is no
        name at all.
    """
    if not output:
        raise InstanceError(
            "the output folder: its name is empty, needs the name of a folder (`.` is the current"
            " one)"
        )
    place = Path(os.path.realpath(output))
    folder = next(parent for parent in (place, *place.parents) if parent.exists())
    if not folder.is_dir():
        raise InstanceError(f"{output}: {folder.name} is not a folder, needs the name of one")
    with _writable(output), tempfile.TemporaryFile(dir=folder):
        pass


def _write(stream: TextIO | None, text: str) -> None:
    if stream is None:
        return
    encoding = stream.encoding or "utf-8"
    text = TURNING.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    stream.write((text.rstrip("\n") + "\n").encode(encoding, "replace").decode(encoding))
    stream.flush()


def _hush(stream: TextIO) -> None:
    """Let what is left in the buffer, and all that follows, go nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


class FiniteNumber(click.FloatRange):
    """A number in a range; infinity and NaN are in no range."""

    name = "number"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Refuse what is not finite, then what is out of range."""
        number = float(click.FLOAT.convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return float(super().convert(number, param, ctx))


class Setting(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """`key=value`; the value is read as TOML, and as plain text where it is not TOML."""

    name = "key=value"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, Any]:
        """Split at the first `=`."""
        if isinstance(value, tuple):
            return value
        key, equals, text = str(value).partition("=")
        if not equals or not key.strip():
            self.fail(
                f"{value!r} needs the form key=value, such as network.max_tiers=2.", param, ctx
            )
        check_digits(text, f"--set {key.strip()}")
        return key.strip(), toml_value(text)


def setting_text(key: str, value: Any) -> str:
    """`key=value` as one types it: text without quotes where it is read as text all the same."""
    is_plain = isinstance(value, str) and toml_value(value) == value
    return f"{key}={value if is_plain else toml_text(value)}"


def toml_value(text: str) -> Any:
    """`2`, `[8, 16]`, `true` as TOML reads them; anything else is the text itself."""
    try:
        table = tomllib.loads(f"x = {text}")
    except (ValueError, RecursionError):
        return text.strip()
    return table["x"] if len(table) == 1 else text.strip()


TIME_LIMIT = FiniteNumber(min=0, min_open=True)
PERCENT = FiniteNumber(min=0)
GAP = FiniteNumber(min=0, max=1, max_open=True)
BYTES = FiniteNumber(min=1, max=1e18)
RATE = FiniteNumber(min=1e-9, max=1e15)
SEED = click.IntRange(min=0)
LATENCY = FiniteNumber(min=0, max=1e6)
PACE = FiniteNumber(min=0, min_open=True)
POINTS = click.IntRange(min=3, max=10_000)
TOP = click.IntRange(min=1, max=1000)
THREADS = click.IntRange(min=1)
SETTING = Setting()


R = TypeVar("R", bound="Record")

part_option = click.option(
    "--part", metavar="NAME", help="The part to show, if the plan has several.  [all]"
)


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
    from coopt.instance.catalog import KINDS, model_in

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
    from coopt.network.plan_networks import part_named
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
    from coopt.instance.texts import InstanceError

    if value is not None and len(names) > 1:
        raise InstanceError(
            f"{option}: a file shows one part, but the plan has {len(names)}, needs --part"
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
