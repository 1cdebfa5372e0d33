"""Text files: reading with clear errors, and atomic writing."""

from __future__ import annotations

import json
import math
import os
import re
import tomllib
import uuid
from pathlib import Path
from typing import Any

from coopt.instance.errors import InstanceError, shortened

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


def read_text(file: Path, kind: str, remedy: str) -> str:
    """Read a text file.

    Parameters
    ----------
    kind, remedy
        What the file should be ("a TOML text file"), and what to do if it does not exist.

    Raises
    ------
    InstanceError
        If the file cannot be read.
    """
    try:
        if file.is_char_device():
            raise InstanceError(f"{file}: is a device, needs {kind}")
        return file.read_text("utf-8")
    except InstanceError:
        raise
    except FileNotFoundError:
        raise InstanceError(f"{file}: no such file, needs {remedy}") from None
    except OSError as error:
        raise InstanceError(f"{file}: cannot be read ({error.strerror}), needs {kind}") from None
    except UnicodeDecodeError as error:
        raise InstanceError(f"{file.name}: not UTF-8 text ({error.reason}), needs {kind}") from None
    except ValueError:  # a NUL byte ends a path
        raise InstanceError(
            f"{str(file)!r}: is no name of a file, needs one without a NUL byte"
        ) from None


def read_toml(file: Path, remedy: str | None = None) -> dict[str, Any]:
    """Read a TOML file; InstanceError states why it cannot be read, and what to do if it does not
    exist.
    """
    text = read_text(
        file,
        "a TOML text file",
        remedy or f"an instance (`coopt new {file.name}` writes a commented one)",
    )
    return toml_of(text, file.name)


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
        return f"{name}: holds JSON, as plans do, needs TOML, as instances are written in"
    lines = text.splitlines() or [""]
    reason, _, place = error.rpartition(" (at ")
    numbers = re.findall(r"\d+", place)
    if not reason or (not numbers and "end of document" not in place):
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
    file = Path(os.path.realpath(path))
    # in the same folder, since replacing a file is atomic only within a file system
    temporary = file.parent / f".{uuid.uuid4().hex}.tmp"
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        os.replace(temporary, file)
    except OSError as error:
        raise InstanceError(
            f"{path}: cannot be written ({error.strerror}), needs a place for a file"
        ) from None
    finally:
        temporary.unlink(missing_ok=True)


def write_new_text(path: str | Path, text: str) -> None:
    """Write a file atomically if it does not exist yet."""
    # an empty file takes the name first: replacing alone would overwrite a file that somebody else
    # writes meanwhile
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    except FileExistsError:
        raise InstanceError(f"{path}: already exists, needs the name of a new file") from None
    except OSError as error:
        need = "a folder one may write to"
        raise InstanceError(f"{path}: cannot be written ({error.strerror}), needs {need}") from None
    try:
        write_text(path, text)
    except BaseException:
        Path(path).unlink(missing_ok=True)
        raise
