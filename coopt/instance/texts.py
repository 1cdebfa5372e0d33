"""Text files read and written, names and numbers in sentences, rows as tables, and the error for
unusable input.

Nothing here needs pydantic, so that `coopt --help` does not load it.
"""

from __future__ import annotations

import errno
import io
import json
import math
import os
import re
import shlex
import tomllib
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import escape
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

CALLED = re.compile(r"\b(workload|site|wan|phase)\[([^\[\]]+)\](?:\.workloads\[([^\[\]]+)\])?")
NUMBERED = re.compile(r"\b(workload|site|wan|phase)\[(\d{1,6})\](?:\.workloads\[(\d{1,6})\])?")


FULL = (errno.ENOSPC, errno.EDQUOT)
LONGEST = 120
"""Characters of a name or value that a sentence shows."""
QUOTED_OR_LONG = re.compile(rf"(?<!\w)(['\"])([^'\"]*)\1(?!\w)|([^\s'\"]{{{LONGEST + 1},}})")
"""A whole quotation, so that what stands between two is none, or a long word."""


def cut(text: str, longest: int = LONGEST) -> str:
    """A name or value, cut where it is long."""
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def shortened(sentence: str) -> str:
    """A sentence in which quotations and words without a blank are cut where they are long."""
    return QUOTED_OR_LONG.sub(
        lambda match: f"{match[1]}{cut(match[2])}{match[1]}" if match[1] else cut(match[3]),
        sentence,
    )


class InstanceError(ValueError):
    """An input that cannot be used.

    Parameters
    ----------
    complaints
        One sentence per problem found, each with the place, the given value and the requirement.
    """

    def __init__(self, complaints: str | Iterable[str]) -> None:
        self.complaints: tuple[str, ...] = (
            (complaints,) if isinstance(complaints, str) else tuple(complaints)
        )
        super().__init__("\n".join(self.complaints))

    def __reduce__(self) -> tuple[type[InstanceError], tuple[tuple[str, ...]]]:
        return type(self), (self.complaints,)


def broken(*rules: tuple[object, str]) -> Iterator[str]:
    """Yield the sentences of rules (condition, sentence) whose condition holds."""
    return (sentence for holds, sentence in rules if holds)


def that_hold(conditions: Mapping[str, object]) -> list[str]:
    """The texts whose condition holds, in order."""
    return [text for text, holds in conditions.items() if holds]


def refuse(*rules: tuple[object, str]) -> None:
    """Raise the first sentence of rules (condition, sentence) whose condition holds."""
    for sentence in broken(*rules):
        raise InstanceError(sentence)


def alternatives(names: Iterable[str]) -> str:
    """`a, b or c`; empty without any."""
    return _enumeration(names, "or")


def both(names: Iterable[str]) -> str:
    """`a, b and c`; empty without any."""
    return _enumeration(names, "and")


def _enumeration(names: Iterable[str], word: str) -> str:
    *front, tail = [*names] or [""]
    return f"{', '.join(front)} {word} {tail}" if front else tail


def names_in(table: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return the names of the rows of each table in unchecked input, as `rows_by_name` does; tables
    with an unnamed row are left out.
    """
    called = {"workload": _name, "site": _name, "wan": _ends, "phase": _year}
    names_by_table = {key: _names_of(table.get(key), name_of) for key, name_of in called.items()}
    phases = table.get("phase")
    for t, phase in enumerate(phases if isinstance(phases, list | tuple) else ()):
        if isinstance(phase, Mapping):
            names_by_table[f"phase[{t}].workloads"] = _names_of(phase.get("workloads"), _name)
    return {key: names for key, names in names_by_table.items() if names}


def _names_of(rows: Any, called: Callable[[Mapping[str, Any]], str | None]) -> tuple[str, ...]:
    """Return the name of each row; empty if some row has none."""
    if not isinstance(rows, list | tuple):
        return ()
    names = [name for row in rows if isinstance(row, Mapping) and (name := called(row)) is not None]
    return tuple(names) if len(names) == len(rows) else ()


def _name(row: Mapping[str, Any]) -> str | None:
    return row["name"] if isinstance(row.get("name"), str) else None


def _ends(row: Mapping[str, Any]) -> str | None:
    ends = row.get("between")
    are_names = isinstance(ends, list | tuple) and all(isinstance(end, str) for end in ends)
    return " - ".join(ends) if are_names and ends else None


def _year(row: Mapping[str, Any]) -> str | None:
    year = row.get("year")
    return str(year) if isinstance(year, int) else f"{year:g}" if isinstance(year, float) else None


def change_text(share: float) -> str:
    """A relative change: `+12.34%`, from a doubling on `26 times as much`."""
    factor = 1.0 + share
    if factor < 2:
        return f"{share:+.2%}"
    return f"{factor:,.{0 if factor >= 10 else 1}f} times as much"


def spoken(number: float) -> str:
    """`15 trillion`, `300 billion`, `20,000`."""
    if number < 1e6:
        return f"{number:,.0f}" if number >= 1e3 else f"{number:.4g}"
    rounded = float(f"{number:.4g}")
    scales = {1e15: "quadrillion", 1e12: "trillion", 1e9: "billion", 1e6: "million"}
    scale = next(scale for scale in scales if rounded >= scale)
    value = rounded / scale
    return f"{value:,.0f} {scales[scale]}" if value >= 1e3 else f"{value:.4g} {scales[scale]}"


def counted(number: int, noun: str) -> str:
    """`1 rack`, `4,096 switches`: a count and its noun."""
    irregular = {"leaf": "leaves", "network family": "network families"}
    plural = irregular.get(noun, f"{noun}{'es' if noun.endswith(('ch', 's')) else 's'}")
    return f"{number:,} {noun if number == 1 else plural}"


def exact(number: float) -> str:
    """`94,306,304`, or `6.90` and `37.975` where it is not whole: for bills."""
    if number == round(number):
        return f"{number:,.0f}"
    # Two decimals at least, as money has, and more only where they are not zeros.
    integer, decimals = f"{number:,.4f}".split(".")
    return f"{integer}.{decimals[:2]}{decimals[2:].rstrip('0')}"


def exact_usd(value: float) -> str:
    """`$181,888`, `-$6.90`: for bills."""
    return f"{'-' if value < 0 else ''}${exact(abs(value))}"


def exact_amount(kind: str, value: float | None) -> str:
    """`$181,888`, `2,310.50 W`: a value of the objective `kind` in full, with its unit."""
    if value is None or not math.isfinite(value):
        return "no amount" if value is None else "no finite amount"
    return {
        "time": f"{value:.9g} s an iteration",
        "usd_per_token": f"${1e6 * value:,.9g} per million tokens",
        "carbon": f"{exact(value)} kg of CO2",
        "power": f"{exact(value)} W",
    }.get(kind, exact_usd(value))


def with_names(text: str, names: Sequence[str] | Mapping[str, Sequence[str]]) -> str:
    """Replace row numbers by names: `workload['chat'].gpus` in place of `workload[1].gpus`.

    Only tables with several rows and distinct names are changed, except for the workloads of a
    phase.

    Parameters
    ----------
    names
        Names of workloads, or of the rows of every table that has some, by its key.
    """
    tables = names if isinstance(names, Mapping) else {"workload": names}
    return NUMBERED.sub(lambda match: _named_row(match, tables), text)


def _named_row(match: re.Match[str], tables: Mapping[str, Sequence[str]]) -> str:
    """Replace a row number by its name, except inside user-given names."""
    table, row, inner_row = match[1], int(match[2]), match[3]
    place = f"{table}[{_called(tables.get(table, ()), row)}]"
    if inner_row is None:
        return place
    inner = tables.get(f"{table}[{row}].workloads", ())
    return f"{place}.workloads[{_called(inner, int(inner_row), fewest=1)}]"


def _called(names: Sequence[str], row: int, fewest: int = 2) -> str:
    differ = len(names) >= fewest and len(set(names)) == len(names)
    return repr(names[row]) if differ and row < len(names) else str(row)


def in_dots(key: str, tables: Mapping[str, Sequence[str]]) -> str:
    """Convert `workload['chat'].gpus` and `workload[1].gpus`, as written by `with_names` and
    complaints, to `workload.1.gpus`.
    """

    def numbered(match: re.Match[str]) -> str:
        table, row, inner_row = match[1], match[2], match[3]
        row = _row_of(row, tables.get(table, ()))
        if inner_row is None:
            return f"{table}.{row}"
        inner = tables.get(f"{table}[{row}].workloads", ())
        return f"{table}.{row}.workloads.{_row_of(inner_row, inner)}"

    return re.sub(r"\[(\d+)\]", r".\1", CALLED.sub(numbered, key))


def _row_of(called: str, names: Sequence[str]) -> str:
    """Return the number of the row with that (possibly quoted) name; the input if there is none."""
    name = called.strip("'\"")
    return str(names.index(name)) if names.count(name) == 1 else name


def numbers(values: Iterable[float]) -> str:
    """Return numbers separated by commas; whole ones in full."""
    return ", ".join(
        f"{value:.0f}" if float(value).is_integer() else f"{value:g}" for value in values
    )


LONGEST_BITS = 1024
"""Of a whole number, which is what a float can hold."""
MAX_DIGITS = 4300
"""Of a whole number, which Python reads as long as nobody tells it otherwise."""
LONGEST_LINE = 60
"""Characters of a wrong line that are shown."""
DEEPEST = 50
"""Tables and lists in each other."""
DOTTED = re.compile(rf"""(?<![\w"'.-])["'\w-]++(?:[ \t]*+\.[ \t]*+["'\w-]++){{{DEEPEST}}}""")
"""A key of more tables than may be in each other."""


def read_text(file: Path, kind: str, remedy: str, key: str | None = None) -> str:
    """Read a text file.

    Parameters
    ----------
    kind, remedy
        What the file should be ("a TOML text file"), and what to do if it does not exist.
    key
        The key that names the file, with its value; refusals begin with it in place of the file.

    Raises
    ------
    InstanceError
        If the file cannot be read.
    """
    try:
        if file.is_char_device():
            raise InstanceError(f"{key or file}: is a device, needs {kind}")
        return file.read_text("utf-8")
    except InstanceError:
        raise
    except FileNotFoundError:
        raise InstanceError(f"{key or file}: no such file, needs {remedy}") from None
    except OSError as error:
        raise InstanceError(
            f"{key or file}: cannot be read ({error.strerror}), needs {kind}"
        ) from None
    except UnicodeDecodeError as error:
        raise InstanceError(
            f"{key or file.name}: not UTF-8 text ({error.reason}), needs {kind}"
        ) from None
    except ValueError as error:  # a NUL byte ends a path, and halves of characters have no bytes
        reason = "a NUL byte" if "\0" in str(file) else str(error)
        raise InstanceError(
            f"{key or repr(str(file))}: is not a file name ({reason}), needs the name of a file"
        ) from None


def file_of(key: str, value: object, need: str) -> Path:
    """The path of a file; InstanceError names the key and what it needs instead of a value."""
    if not isinstance(value, str | Path):
        raise InstanceError(f"{key} = {cut(repr(value))}: needs {need}")
    return Path(value)


def read_toml(file: Path, remedy: str | None = None) -> dict[str, Any]:
    """Read a TOML file; InstanceError states why it cannot be read, and what to do if it does not
    exist.
    """
    if remedy is None:
        remedy = (
            f"an instance (`{shlex.join(['coopt', 'new', str(file)])}` writes a commented one)"
            if os.path.isdir(file.parent)
            else f"an instance in an existing folder ({file.parent} is none)"
        )
    return toml_of(read_text(file, "a TOML text file", remedy), file.name)


def toml_of(text: str, where: str) -> dict[str, Any]:
    """Parse a TOML text; InstanceError, which begins with `where`, states why it is invalid."""
    try:
        if DOTTED.search(text):  # `tomllib` takes quadratic time in the number of dots
            raise RecursionError
        table = tomllib.loads(text)
    except RecursionError:
        raise InstanceError(f"{where}: nested too deeply, needs flat tables") from None
    except ValueError as error:
        check_digits(text, where)
        raise InstanceError(shortened(_syntax_complaint(where, text, str(error)))) from None
    check_numbers(table, where)
    return table


def toml_text(value: Any) -> str:
    """Write a value as TOML on one line, with inline tables."""
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {toml_text(part)}' for key, part in value.items())} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_text, value))}]"
    return f"{value:.15g}" if isinstance(value, float) else json.dumps(value, ensure_ascii=False)


def _syntax_complaint(name: str, text: str, error: str) -> str:
    """Return the place and the line of a syntax error: `ours.toml: not TOML, line 3, column 8:
    Invalid value, in 'gpus = ='`.
    """
    if text.lstrip().startswith("{"):
        return f"{name}: holds JSON, as plans do, needs TOML"
    lines = text.splitlines() or [""]
    reason, _, place = error.rpartition(" (at ")
    numbers = re.findall(r"\d+", place)
    if not reason or (not numbers and not place.startswith("end of")):
        return f"{name}: not TOML: {error}"
    line, column = (
        (int(number) for number in numbers) if numbers else (len(lines), len(lines[-1]) + 1)
    )
    excerpt = repr(lines[min(line, len(lines)) - 1].strip()[:LONGEST_LINE])
    return f"{name}: not TOML, line {line}, column {column}: {reason}, in {excerpt}"


def check_numbers(value: Any, where: str, depth: int = 0) -> None:
    """Refuse integers too long to be printed, which TOML allows in bases other than 10, and tables
    nested too deeply, which dotted keys make.

    Parameters
    ----------
    where
        The file, and the keys that lead to the value.
    """
    if depth > DEEPEST:
        raise InstanceError(f"{shortened(where)}: nested too deeply, needs flat tables")
    if isinstance(value, int) and value.bit_length() > LONGEST_BITS:
        raise InstanceError(
            f"{where}: a whole number of {value.bit_length():,} bits, needs one of at most"
            f" {LONGEST_BITS:,}"
        )
    parts = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list | tuple)
        else ()
    )
    for key, entry in parts:
        check_numbers(entry, f"{where}: {key}", depth + 1)


def check_digits(text: str, where: str) -> None:
    """Refuse a number with more digits than Python parses, with a clearer message than Python's."""
    for line, content in enumerate(text.splitlines(), start=1):
        if match := re.search(rf"\d{{{MAX_DIGITS + 1},}}", content.replace("_", "")):
            count, longest = f"{len(match[0]):,}", int(LONGEST_BITS * math.log10(2))
            raise InstanceError(
                f"{where}: line {line}: a number of {count} digits, needs one of at most {longest}"
            )


def write_text(path: str | Path, text: str) -> None:
    """Write a file atomically: an interruption leaves the old or the new content.

    A symbolic link is kept, and its target is written.
    """
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: str | Path, content: bytes) -> None:
    """Write a binary file like `write_text`."""
    _write(path, content, os.replace)


def write_new_text(path: str | Path, text: str) -> None:
    """Write a file atomically if it does not exist yet."""
    try:
        _write(path, text.encode("utf-8"), _give_new_name)
    except FileExistsError:
        raise InstanceError(f"{path}: already exists, needs the name of a new file") from None


def _give_new_name(temporary: Path, file: Path) -> None:
    """Give a file a name that no other has; replacing would overwrite what others write."""
    try:
        os.link(temporary, file)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links: the name is taken first
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        os.replace(temporary, file)


def unwritten(
    place: str | Path, error: OSError, need: str, *, verb: str = "written"
) -> InstanceError:
    """Return the complaint about a place that cannot be written, with what it needs where the disk
    is not full.
    """
    needed = "free space on its disk" if error.errno in FULL else need
    return InstanceError(f"{place}: cannot be {verb} ({error.strerror}), needs {needed}")


def _write(path: str | Path, content: bytes, place: Callable[[Path, Path], None]) -> None:
    """Write a file beside its name, which `place` then gives it.

    Raises
    ------
    FileExistsError
        When `place` finds a file of that name.
    """
    file = Path(os.path.realpath(path))
    # in the same folder, since a file gets its name at once only within a file system
    temporary = file.parent / f".{uuid.uuid4().hex}.tmp"
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        place(temporary, file)
    except FileExistsError:
        raise
    except OSError as error:
        raise unwritten(path, error, "a path that can be written to") from None
    finally:
        temporary.unlink(missing_ok=True)


Row = Mapping[str, Any]
LIBRARIES = ("pandas", "polars")


Key = TypeVar("Key")
Value = TypeVar("Value")


def grouped(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """The values of each key, both in their order."""
    groups: dict[Key, list[Value]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def csv_text(header: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Rows as a CSV file, with nothing where a cell is None."""
    import csv  # which `coopt --help` does without

    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return stream.getvalue()


def frame(rows: Iterable[Row]) -> Any:
    """Convert rows to a data frame of pandas, or of polars if only that is installed.

    Raises
    ------
    InstanceError
        If neither is installed.
    """
    library = next((name for name in LIBRARIES if find_spec(name)), None)
    if library is None:
        raise InstanceError(
            "to_frame: neither pandas nor polars is installed, needs one of them (`pip install"
            " 'coopt[jupyter]'`)"
        )
    return import_module(library).DataFrame([dict(row) for row in rows])


def frame_of(tables: Mapping[str, Callable[[], Iterable[Row]]], table: str) -> Any:
    """Return the table of that name as a data frame.

    Raises
    ------
    InstanceError
        If there is no table of that name, or no library for data frames.
    """
    if table not in tables:
        raise InstanceError(
            f"to_frame: table = {table!r}, needs one of {', '.join(map(repr, tables))}"
        )
    return frame(tables[table]())


def html(title: str, sentences: Iterable[str] = (), tables: Iterable[Sequence[Row]] = ()) -> str:
    """Render a title, sentences and tables, with all text escaped."""
    paragraphs = "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)
    rendered = "".join(map(_html_table, tables))
    return f"<div><p><strong>{escape(title)}</strong></p>{paragraphs}{rendered}</div>"


def _html_table(rows: Sequence[Row]) -> str:
    if not rows:
        return ""
    head = "".join(f"<th>{escape(str(key))}</th>" for key in rows[0])
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(_cell(value))}</td>' for value in row.values())}</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: ""}[value]
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 9999.5 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def choice_left(key: str, values: tuple[Any, ...]) -> str:
    """A sentence about a key that leaves several values."""
    listing = ", ".join(str(v).lower() if isinstance(v, bool) else str(v) for v in values)
    return f"{key} leaves a choice ({listing}), needs one value to evaluate"
