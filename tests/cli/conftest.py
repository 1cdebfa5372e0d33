"""Run commands in this process, on instances made from a tiny one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from coopt.cli.main import main

INSTANCES = Path(__file__).parents[2] / "instances"

TINY = """\
schema = 1
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


@pytest.fixture(scope="session")
def tiny_plan(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What `coopt solve` writes for the tiny instance."""
    instance = tmp_path_factory.mktemp("tiny") / "tiny.toml"
    instance.write_text(TINY, "utf-8")
    plan = instance.with_name("plan.json")
    assert CliRunner().invoke(main, ["solve", str(instance), "-o", str(plan)], catch_exceptions=False).exit_code == 0
    return plan.read_text("utf-8")


@pytest.fixture
def planned(written: Written, tiny_plan: str, tmp_path: Path) -> tuple[Path, Path]:
    """The tiny instance and its optimal plan."""
    instance, plan = written(), tmp_path / "plan.json"
    plan.write_text(tiny_plan, "utf-8")
    return instance, plan


@pytest.fixture(params=sorted(INSTANCES.glob("*.toml")), ids=lambda file: file.stem)
def shipped(request: pytest.FixtureRequest) -> Path:
    """Every instance that ships with the project."""
    return Path(request.param)


LONGER = ("fleet-131k-w16", "fleet-131k-w64", "phased-131k-p4")
QUICK = [file for file in sorted(INSTANCES.glob("*.toml")) if file.stem not in LONGER]


@pytest.fixture(params=QUICK, ids=lambda file: file.stem)
def quick(request: pytest.FixtureRequest) -> Path:
    """Every instance that ships with the project but those that are a smaller one again, with more of the same."""
    return Path(request.param)
