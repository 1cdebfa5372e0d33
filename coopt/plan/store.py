"""Plans as files."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

from pydantic import ValidationError

from coopt.instance.complaints import sentences
from coopt.instance.errors import InstanceError
from coopt.plan.schema import Plan


def plan_json(plan: Plan) -> str:
    """The plan as one JSON document."""
    return plan.model_dump_json(by_alias=True, indent=2)


def read_plan(path: str | Path) -> Plan:
    """Read a plan file; InstanceError names every key that is wrong."""
    file = Path(path)
    if file.is_char_device():
        raise InstanceError(f"{file}: is a device, needs a JSON text file")
    try:
        text = file.read_text("utf-8")
    except FileNotFoundError:
        raise InstanceError(
            f"{file}: no such file, needs a plan (`coopt solve INSTANCE -o {file.name}` writes one)"
        ) from None
    except OSError as error:
        raise InstanceError(f"{file}: cannot be read ({error.strerror}), needs a JSON text file") from None
    except UnicodeDecodeError as error:
        raise InstanceError(f"{file.name}: not UTF-8 text ({error.reason}), needs a JSON text file") from None
    try:
        return Plan.model_validate(json.loads(text))
    except ValidationError as error:
        raise InstanceError(f"{file.name}: {sentence}" for sentence in sentences(error, Plan)) from None
    except RecursionError:
        raise InstanceError(f"{file.name}: nested too deeply, needs a plan") from None
    except ValueError as error:
        raise InstanceError(f"{file.name}: not JSON: {error}") from None


def write_text(path: str | Path, text: str) -> None:
    """Write a file so that an interruption leaves the old content or the new, never half of it."""
    file = Path(path)
    try:
        handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    except OSError as error:
        raise InstanceError(f"{file}: cannot be written ({error.strerror}), needs a folder one may write to") from None
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, file)
    except OSError as error:
        Path(temporary).unlink(missing_ok=True)
        raise InstanceError(f"{file}: cannot be written ({error.strerror}), needs a place for a file") from None
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
