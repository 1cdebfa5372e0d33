"""Run commands in this process, on instances made from a tiny one."""

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from coopt.cli.main import main

INSTANCES = Path(__file__).parents[2] / "instances"

TINY = """\
schema = 1
margin = "none"
name = "tiny"
[cluster]
gpu = "h100-sxm"
gpus = 64

[[workload]]
name = "training"
model = "gpt-22b"
global_batch = 64
max_iteration_time_s = 1.0
mapping.micro_batch = 1

[network]
hb_domains = "hgx-h100-8"
fabrics = ["rail-only", "clos"]
nics = "cx7-400g"
switches = "64x400g"
optics = "400g-199"
"""

PHASES = """
[[phase]]
year = 2026
gpus = 16

[[phase]]
year = 2028
gpus = 64

[network]"""

Coopt = Callable[..., Result]
Written = Callable[..., Path]
Solved = Callable[..., tuple[Path, Path]]
PLANS: dict[tuple[str, ...], str] = {}


@pytest.fixture
def coopt() -> Coopt:
    """`coopt("solve", path)`; an exception that is no exit fails the test."""
    return lambda *words: CliRunner().invoke(main, [str(word) for word in words], catch_exceptions=False)


@pytest.fixture
def written(tmp_path: Path) -> Written:
    """Write the tiny instance with lines replaced: `written(("gpus = 64", "gpus = 8"))`."""

    def write(*changes: tuple[str, str], name: str = "tiny.toml") -> Path:
        text = TINY
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        file = tmp_path / name
        file.write_text(text, "utf-8")
        return file

    return write


@pytest.fixture
def solved(coopt: Coopt, written: Written) -> Solved:
    """The tiny instance with lines replaced and its plan, solved once in a run: `solved(("gpus = 64", "gpus = 8"))`."""

    def solve(
        *changes: tuple[str, str], options: tuple[object, ...] = (), name: str = "tiny.toml"
    ) -> tuple[Path, Path]:
        instance = written(*changes, name=name)
        plan, asked = instance.with_suffix(".json"), (instance.read_text("utf-8"), *map(str, options))
        if asked not in PLANS:
            assert coopt("solve", instance, *options, "-o", plan).exit_code in (0, 3)
            PLANS[asked] = plan.read_text("utf-8")
        plan.write_text(PLANS[asked], "utf-8")
        return instance, plan

    return solve


@pytest.fixture
def planned(solved: Solved) -> tuple[Path, Path]:
    """The tiny instance and its optimal plan."""
    return solved()


LONGER = ("direct-64", "fleet-131k-w8", "fleet-131k-w16", "fleet-131k-w64", "phased-131k-p4")
"""Instances that are another one again, with more of the same or without its core."""
