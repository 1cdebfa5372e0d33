"""Pages of plans as files: of a shipped one, of hostile names, of a rejected one and without a design."""

import json
from pathlib import Path

from click.testing import CliRunner

from coopt.cli.main import main

ALERT = "<script>alert(1)</script>"
SMALL_CLOS = f"""\
schema = 1
margin = "none"
name = "{ALERT} & co"
description = "Two <b>workloads</b>"

[cluster]
gpu = "h100-sxm"
gpus = 64

[[workload]]
name = "<img src=x onerror=alert(1)>"
model = "gpt-22b"
global_batch = 64
max_iteration_time_s = 1.0
mapping.micro_batch = 1

[[workload]]
name = "second & last"
model = "gpt-22b"
global_batch = 128
max_iteration_time_s = 3.0
mapping.micro_batch = 1

[network]
hb_domains = {{name = 'own "box"', size = 8, gbyte_s = 450, usd_per_gpu = 10, w_per_gpu = 1}}
fabrics = "clos"
nics = "cx7-400g"
switches = {{name = "8-port <i>", radix = 8, port_gbit_s = 400, usd = 2000, w = 100}}
optics = "400g-199"
oversubscription = 3
"""

INSTANCES = Path(__file__).parents[2] / "instances"


def write_reports(folder: Path) -> dict[str, Path]:
    """The files of the pages, by name."""
    hostile = folder / "hostile.toml"
    hostile.write_text(SMALL_CLOS, "utf-8")
    tiny, deadline = INSTANCES / "tiny-64.toml", INSTANCES / "infeasible-deadline.toml"
    plans = {
        name: _run(folder / f"{name}.json", "solve", file, *more)
        for name, file, more in (
            ("plan", tiny, ()), ("hostile", hostile, ("--top", "3")), ("infeasible", deadline, ()),
        )
    }  # fmt: skip
    changed = json.loads(plans["plan"].read_text("utf-8"))
    changed["cost"]["items"][0] |= {"item": ALERT}
    plans["rejected"] = folder / "rejected.json"
    plans["rejected"].write_text(json.dumps(changed), "utf-8")
    questions = {"plan": tiny, "hostile": hostile, "infeasible": deadline, "rejected": tiny}
    return {name: _run(folder / f"{name}.html", "report", questions[name], plan) for name, plan in plans.items()}


def _run(output: Path, *words: object) -> Path:
    CliRunner().invoke(main, [*map(str, words), "-o", str(output)], catch_exceptions=False)
    assert output.exists(), words
    return output
