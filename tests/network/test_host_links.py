"""What a GPU reaches of its NICs: its link to its host, or what its server says, and no more."""

from typing import Any

import pytest

from coopt.instance.schema import Instance
from coopt.report.building import building_notes
from coopt.report.notes import remarks
from coopt.verifier.simulation.plans import simulate
from tests.conftest import accepted, question


def asked(rate: float, per_gpu: int, host_gbyte_s: float, server: dict[str, Any]) -> Instance:
    """Servers of one GPU, so that all traffic is between NICs."""
    table = question(
        cluster={"gpu": {"extends": "h100-sxm", "name": "gpu", "host_gbyte_s": host_gbyte_s}, "gpus": 16},
        network__hb_domains={"name": "server", "size": 1, "gbyte_s": 450, "usd_per_gpu": 0, "w_per_gpu": 0} | server,
        network__fabrics="clos",
        network__nics={"name": "nic", "gbit_s": rate, "usd": 1, "w": 1},
        network__nics_per_gpu=per_gpu,
        network__switches={"name": "switch", "radix": 32, "port_gbit_s": rate, "usd": 1000, "w": 10},
        network__optics={"name": "optic", "gbit_s": rate, "reach_m": 500, "usd": 1, "w": 1},
        objective={"minimize": "time"},
    )
    del table["workload"][0]["max_iteration_time_s"]
    return Instance.model_validate(table)


@pytest.mark.parametrize(
    ("host_gbyte_s", "server", "per_gpu", "reached_gbit_s"),
    [
        (55, {}, 1, 440),
        (55, {}, 2, 440),
        (55, {"nic_gbyte_s": 80}, 1, 640),
        (55, {"nic_gbyte_s": 30}, 1, 240),
        (110, {}, 1, 800),
        (110, {}, 2, 880),
    ],
)
def test_nics_give_what_gpus_reach(host_gbyte_s, server, per_gpu, reached_gbit_s):
    """A plan takes as long as one whose NICs have no more, as simulated too."""
    behind = asked(800, per_gpu, host_gbyte_s, server)
    alone = asked(reached_gbit_s / per_gpu, per_gpu, 1000, {})
    plan, again = accepted(behind), accepted(alone)
    assert plan.workloads[0].iteration_time_s == pytest.approx(again.workloads[0].iteration_time_s, rel=1e-9)
    (run,), (run_alone,) = simulate(behind, plan).workloads, simulate(alone, again).workloads
    assert run.simulated_s == pytest.approx(run_alone.simulated_s, rel=1e-9)
    for notes in (remarks(behind, plan), building_notes(behind, plan.design)):
        told = [f" {rate:g} Gbit/s" in " ".join(notes) for rate in (reached_gbit_s, 800 * per_gpu)]
        assert told == [reached_gbit_s < 800 * per_gpu] * 2
