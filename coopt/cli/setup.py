"""Commands on the installation: `coopt doctor` looks through it, `coopt completion` teaches a shell
the commands.
"""

from __future__ import annotations

import json
import os
import platform
import re
import sys
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

import click
from click.shell_completion import get_completion_class

from coopt._version import __version__
from coopt.cli.arguments import FAILED, answer, note
from coopt.cli.defaults import config_file, folder_of
from coopt.instance.texts import both, counted, unwritten, write_text

EXTRAS = ("report", "serve", "jupyter", "suite", "dask", "fit")
SHELLS = ("bash", "zsh", "fish")
COMPLETE = "_COOPT_COMPLETE"


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print the findings as one JSON document.")
@click.pass_context
def doctor(ctx: click.Context, as_json: bool) -> None:
    """Check the installation: versions, solver, packages, cores.

    Exit codes: 0 everything needed is there, 5 something needed is missing or the solver fails.
    """
    packages = _packages()
    solver = _solved()
    found = {
        "coopt": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count(),
        "solver": solver,
        "defaults": str(config_file()) if config_file().is_file() else None,
        "packages": packages,
    }
    lacking = [row for row in packages if not (row["extras"] or row["serves"])]
    answer(json.dumps(found, indent=2) if as_json else _text(found))
    ctx.exit(FAILED if lacking or not solver["solves"] else 0)


def _packages() -> list[dict[str, Any]]:
    """Every package that coopt or one of its extras needs, with its installed version."""
    extras: dict[str, tuple[str, list[str]]] = {}
    for package, least, extra in map(_needed, requires("coopt") or []):
        if extra in ("", *EXTRAS):
            extras.setdefault(package, (least, []))[1].append(extra)
    return [
        {
            "package": package,
            "needs": least,
            "installed": installed,
            "serves": installed is not None and _release(installed) >= _release(least),
            "extras": [extra for extra in of_package if "" not in of_package],
        }
        for package, (least, of_package) in sorted(extras.items())
        for installed in [_version(package)]
    ]


def _needed(requirement: str) -> tuple[str, str, str]:
    """Name, least version and extra of a requirement such as `scipy>=1.11; extra == 'fit'`."""
    found = re.fullmatch(
        r"([\w.-]+)(?:\[.*\])?(?:>=([\w.]+))?(?:; extra == ['\"](\w+)['\"])?", requirement
    )
    assert found is not None, requirement
    return found[1], found[2] or "", found[3] or ""


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _release(text: str) -> tuple[int, ...]:
    """`1.11.4rc1` as numbers that compare."""
    return tuple(map(int, re.findall(r"\d+", text)[:3]))


def _solved() -> dict[str, Any]:
    """The solver's version, and whether it finds the optimum of a program of one integer."""
    from coopt.solving.highs import QuietHighs, run_apart

    solver = QuietHighs()  # type: ignore[no-untyped-call, unused-ignore]
    number = solver.addIntegral(lb=0, ub=10, obj=1)
    solver.addConstr(2 * number >= 3)
    run_apart(solver)
    return {"name": "HiGHS", "version": solver.version(), "solves": solver.val(number) == 2}


def _text(found: dict[str, Any]) -> str:
    """The findings for a terminal: each extra with what it lacks."""
    solver, packages = found["solver"], found["packages"]
    lines = [
        f"coopt {found['coopt']}, Python {found['python']}, {found['platform']},"
        f" {counted(found['cores'], 'core')}",
        f"solver: {solver['name']} {solver['version']}"
        f" {'works' if solver['solves'] else 'FAILS to solve a small integer program'}",
        f"defaults: {found['defaults'] or f'none ({config_file()})'}",
    ]
    for extra in ("", *EXTRAS):
        rows = [row for row in packages if extra in (row["extras"] or [""])]
        bad = [
            f"{row['package']} {row['needs']} (installed: {row['installed'] or 'none'})"
            for row in rows
            if not row["serves"]
        ]
        have = ", ".join(f"{row['package']} {row['installed']}" for row in rows)
        target = f"coopt[{extra}]" if extra else "coopt"
        remedy = f"LACKS {both(bad)}: pip install '{target}'"
        lines.append(f"{extra or 'core'}: {remedy if bad else have}")
    return "\n".join(lines)


@click.group()
def completion() -> None:
    """Let a shell complete commands, options, keys and names."""


SHELL = click.option(
    "--shell",
    type=click.Choice(SHELLS),
    default=lambda: Path(os.environ.get("SHELL", "")).name,
    show_default="that of $SHELL",
    help="Shell to complete for.",
)


@completion.command()
@SHELL
def install(shell: str) -> None:
    """Write the completion script to where the shell looks for it.

    bash needs the package bash-completion; for zsh, a line to add to ~/.zshrc is printed.
    """
    data = folder_of("XDG_DATA_HOME", ".local/share")
    place = {
        "bash": data / "bash-completion" / "completions" / "coopt",
        "zsh": data / "zsh" / "site-functions" / "_coopt",
        "fish": folder_of("XDG_CONFIG_HOME", ".config") / "fish" / "completions" / "coopt.fish",
    }[shell]
    script = _script(shell)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritten(
            place.parent, error, "a folder that you may write to", verb="created"
        ) from None
    write_text(place, script)
    if shell == "zsh":
        note(
            f"completion script written to {place}; for new shells to use it, add this line to"
            f" ~/.zshrc before compinit: fpath+=({place.parent})"
        )
    else:
        needed = " with the package bash-completion" if shell == "bash" else ""
        note(f"completion script written to {place}; new shells{needed} will use it")


@completion.command()
@SHELL
def show(shell: str) -> None:
    """Print the completion script."""
    answer(_script(shell))


def _script(shell: str) -> str:
    from coopt.cli.main import main

    form = get_completion_class(shell)
    assert form is not None
    return form(main, {}, "coopt", COMPLETE).source()
