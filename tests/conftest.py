"""Questions that many tests ask."""

import fcntl
import gc
import json
import math
import os
import sys
import tomllib
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, settings

import coopt
from benchmarks.lp_cases import CHANGED
from coopt._interpreter import collect_rarely
from coopt.cli.main import main
from coopt.instance.schema import Instance
from coopt.plan.schema import Plan
from tests.pages import chromium

collect_rarely()  # as `coopt` does
os.environ["XDG_CONFIG_HOME"] = os.devnull  # no defaults of whoever runs the tests

# no profile times or counts what is drawn; campaigns run with pytest --hypothesis-profile random
DRAWS = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much, HealthCheck.large_base_example)
settings.register_profile("fixed", derandomize=True, deadline=None, suppress_health_check=DRAWS)
settings.register_profile("random", derandomize=False, deadline=None, suppress_health_check=DRAWS)
settings.load_profile("fixed")


def pytest_configure() -> None:
    """Refuse to leave tests out where COOPT_BROWSER asks for all of them."""
    if os.environ.get("COOPT_BROWSER") and chromium.why_not() == chromium.NEEDED:
        raise pytest.UsageError(f"tests of pages cannot run: {chromium.NEEDED}")


def pytest_collection_finish() -> None:
    """Look for cycles among what tests make alone."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure(config: pytest.Config) -> None:
    """What tests leave is looked through for cycles once, and neither five times more by pytest nor as Python ends. The
    last line says how many tests went without a browser, and why."""
    gc.collect()
    gc.freeze()
    terminal, why = config.pluginmanager.get_plugin("terminalreporter"), chromium.why_not()
    skipped = terminal.stats.get("skipped", []) if terminal else []
    if left_out := sum(report.longrepr[2] == f"Skipped: {why}" for report in skipped):
        terminal.write_line(f"{left_out} tests in a browser left out: {why}")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems() -> None:
    """Hypothesis draws some numbers from the code of modules that happen to be loaded, so that fixed questions would be
    others whenever tests run in another order or code changes; it reads all of that code right after this."""
    providers: Any = sys.modules.get("hypothesis.internal.conjecture.providers")
    if settings().derandomize and hasattr(providers, "_get_local_constants"):
        none = providers.Constants()
        providers._get_local_constants = lambda: none


def example_count(campaign: int, usual: int | None = None) -> int:
    """How many random questions a test asks: as many as given in a campaign, else `usual`, or a twentieth but two at
    least."""
    if not settings().derandomize:
        return campaign
    return max(min(campaign, 2), campaign // 20) if usual is None else usual


ROOT = Path(__file__).parents[1]
SHIPPED = sorted((ROOT / "instances").glob("*.toml"))
ONE_NETWORK = [file for file in SHIPPED if not coopt.load(file).beyond_one_network]


@dataclass(frozen=True)
class Told:
    """What a command printed, but for lines of where it wrote to, and what it made there."""

    exit_code: int
    printed: str
    made: Path


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Told]:
    """A command that many tests need, run once by whichever process asks first; one that ends in `-o` writes."""
    here = tmp_path_factory.getbasetemp()
    folder = (here.parent if "PYTEST_XDIST_WORKER" in os.environ else here) / "shared"
    folder.mkdir(exist_ok=True)

    def run(*words: str) -> Told:
        name = f"{words[0]}-{sha256(repr(words).encode()).hexdigest()[:16]}"
        made = folder / (f"{name}.json" if words[0] == "solve" else name)
        part, printed = made.with_suffix(".part"), made.with_suffix(".txt")
        with made.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not printed.exists():
                writes = [str(part)] * (words[-1] == "-o")
                done = CliRunner().invoke(main, [*words, *writes], catch_exceptions=False)
                assert done.exit_code in (0, 3), done.output
                if writes:
                    part.rename(made)
                lines = [line for line in done.output.splitlines(keepends=True) if str(part) not in line]
                text = "".join(lines).replace(f"{ROOT}/", "")
                printed.write_text(f"{done.exit_code}\n{text}", "utf-8")
        code, _, text = printed.read_text("utf-8").partition("\n")
        return Told(int(code), text, made)

    return run


FEW_MAPPINGS = {"cp": 1, "zero": [0, 1], "recompute": ["none", "full"]}
"""Lists of a mapping that keep a search short."""


LESS: dict[str, dict[str, Any]] = {
    "fleet-131k-w8-core": CHANGED["fleet-131k-w8-core-hb32"][1],
    "nextgen-100b": CHANGED["nextgen-100b-s4"][1],
    "phased-131k-p3": CHANGED["phased-131k-p3-rail-only"][1],
    "fleet-3-phases-2-sites": {
        "network.fabrics": "rail-only",
        "network.switches": "qm9700",
        **{f"workload.{n}.mapping.{key}": few for n in range(4) for key, few in FEW_MAPPINGS.items()},
    },
    "llama3-405b-16k": {"network.switches": "128x400g"},
    "shared-131k-w8": {"network.hb_domains": ["h100-hb32", "h100-hb64"], "network.switches": "64x400g"},
}
"""Of shipped instances that take seconds, what is replaced so that less of the same is compared."""


def shipped(file: Path) -> Instance:
    """A shipped instance, or less of the same."""
    return coopt.load(file, LESS.get(file.stem, {}))


def shipped_words(file: Path) -> list[str]:
    """The same on the command line."""
    settings = LESS.get(file.stem, {}).items()
    return [str(file), *(word for key, value in settings for word in ("--set", f"{key}={json.dumps(value)}"))]


@pytest.fixture(scope="session")
def shipped_plan(once: Callable[..., Told]) -> Callable[[Path], Path]:
    """The plan that `coopt solve` writes for a shipped instance, or for less of the same."""
    return lambda file: once("solve", *shipped_words(file), "-o").made


def on_fewer_gpus(file: Path, gpus: int) -> Instance:
    """A shipped instance on so many GPUs, with as many sequences for each as it has."""
    table = tomllib.loads(file.read_text("utf-8"))
    for workload in table["workload"]:
        workload["global_batch"] = workload["global_batch"] * gpus // table["cluster"]["gpus"]
    table["cluster"]["gpus"] = gpus
    return coopt.load(table)


@cache
def validator(schema: str) -> jsonschema.Draft202012Validator:
    """What checks documents by a JSON Schema, which is read and checked itself but once."""
    table = json.loads(schema)
    jsonschema.Draft202012Validator.check_schema(table)
    return jsonschema.Draft202012Validator(table)


PLAIN = {"hb": 0.75, "hb_own": 0, "hb_short": 1, "long_s": 0, "latency_s": 8e-6, "step_s": 1e-6}
PLAIN_H100 = PLAIN | {"gemm": 0.68, "hbm": 0.599, "kernel_s": 5.28e-6, "hb_reduce": 0.97}
"""Shares of a GPU whose collectives have one protocol and copy nothing, as anchors of other mechanisms have them."""


def question(**changes: Any) -> dict[str, Any]:
    """A small instance as a table; dotted keys in `changes` replace values (`network__max_tiers=2`)."""
    table: dict[str, Any] = {
        "schema": 1, "name": "small", "margin": "none", "cluster": {"gpu": "h100-sxm", "gpus": 64},
        "workload": [
            {
                "name": "w", "model": small_model(), "global_batch": 64, "allow_tp_across": True,
                "max_iteration_time_s": 1.0, "mapping": FEW_MAPPINGS,
            }
        ],
        "network": {
            "hb_domains": ["hgx-h100-8", "h100-hb16"], "fabrics": ["rail-only", "rail-optimized", "clos"],
            "nics": "cx7-400g", "switches": [switch(8, 5000), switch(16, 11000)], "optics": "400g-199",
            "oversubscription": 3.0,
            "charge": "ratio",  # anchors by hand are easier with it; random questions ask for every charge
        },
    }  # fmt: skip
    for key, value in changes.items():
        *parents, last = key.split("__")
        here = table
        for part in parents:
            here = here[part] if isinstance(here, dict) else here[int(part)]
        here[last] = deepcopy(value)  # later keys may replace what is in it
    table["network"].setdefault("buildable", False)  # what is not on trial stays as it is counted
    return table


def ask(**changes: Any) -> Instance:
    """A small instance."""
    return Instance.model_validate(question(**changes))


ASK_WHY = not settings().derandomize
"""Campaigns ask why a random question has no plan, which takes longer than to find that it has none."""


def accepted(instance: Instance, *, reasons: bool = True) -> Plan:
    """The plan of a question, or why there is none, which the verifier accepts."""
    plan = coopt.solve(instance, reasons=reasons)
    verdict = coopt.verify(instance, plan)
    assert verdict.accepted, verdict.failures
    return plan


def value_of(plan: Plan) -> float:
    """The objective of a plan; infinite where nothing answers."""
    return math.inf if plan.objective.value is None else plan.objective.value


def value(instance: Instance) -> float:
    """The least objective of a question; infinite where nothing answers."""
    return value_of(coopt.solve(instance, reasons=False))


DISCIPLINES: tuple[dict[str, Any], ...] = (
    {"charge": "ratio", "routing": 1.0},
    {"charge": "ratio", "routing": 1.5},
    {"charge": "loads", "routing": "spray"},
    {"charge": "loads", "routing": "spray", "spray_efficiency": 0.6},
    {"charge": "loads", "routing": "spray", "spray_efficiency": 1.0},
    {"charge": "loads", "routing": 1.5},
    {"charge": "loads", "routing": "pinned"},
    {"charge": "loads", "routing": "ecmp"},
)
"""Ways to charge traffic above the leaves, for random questions."""


def small_model(**changes: Any) -> dict[str, Any]:
    """A transformer that is quick to enumerate."""
    shape = {
        "name": "small", "layers": 8, "hidden": 4096, "heads": 32, "kv_heads": 32, "head_dim": 128, "ffn": 16384,
        "vocab": 51200, "seq": 2048,
    }  # fmt: skip
    return shape | changes


def switch(radix: int, usd: float, gbit_s: float = 400) -> dict[str, Any]:
    """A switch of few ports, so that small clusters need tiers."""
    return {"name": f"{radix}-port", "radix": radix, "port_gbit_s": gbit_s, "usd": usd, "w": 10 * radix}
