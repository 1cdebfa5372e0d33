"""Programs that embed coopt are checked by mypy against its annotations, which the wheel ships."""

import os
import subprocess
import sys
from pathlib import Path

from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).parents[2]
SERVICE = ROOT / "docs" / "embedding" / "service.py"

CLIENT = """\
import threading

import coopt


def listen(step: coopt.Progress) -> None:
    gap: float | None = step.gap


instance: coopt.Instance = coopt.load("instances/tiny-64.toml")
plan: coopt.Plan = coopt.solve(instance, time_limit_s=1.0, on_progress=listen, cancel=threading.Event())
verdict: coopt.Verdict = coopt.verify(instance, plan)
routing: coopt.Routing = coopt.route(instance, plan)
faults: coopt.Faults = coopt.faults(instance, plan)
again: coopt.Evaluation = coopt.evaluate(instance, plan.design, [one.mapping for one in plan.workloads])
seconds: float = again.workloads[0].iteration_time_s
"""

WRONG = """
coopt.solve(plan)
coopt.solve(instance, time_limit=1.0)
usd: int = plan.objective.value
coopt.route(instance, plan).colour
"""

CONFIG = """\
[mypy]
strict = True
follow_imports = skip

[mypy-coopt.*,pydantic.*,pydantic_core.*]
follow_imports = silent
"""
"""What a program takes from coopt is followed; what coopt takes from others than Pydantic has no part in it."""


def test_a_client_and_the_service_are_checked_strictly_against_the_annotations(tmp_path: Path) -> None:
    (tmp_path / "client.py").write_text(CLIENT + WRONG, "utf-8")
    (tmp_path / "mypy.ini").write_text(CONFIG, "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "client.py", str(SERVICE)],
        cwd=tmp_path,
        env=os.environ | {"MYPYPATH": str(ROOT), "MYPY_CACHE_DIR": str(ROOT / ".mypy_cache" / "client")},
        capture_output=True,
        text=True,
        check=False,
    )
    found = [tuple(line.split(":")[:2]) for line in done.stdout.splitlines() if ": error:" in line]
    first = CLIENT.count("\n") + 2
    assert found == [("client.py", str(first + i)) for i in range(4)], done.stdout


def test_the_wheel_says_that_it_is_typed() -> None:
    inside = {file.distribution_path for file in WheelBuilder(str(ROOT)).recurse_included_files()}
    assert {"coopt/py.typed", "formulations/py.typed", "coopt/catalog/gpu.toml"} <= inside
