"""All-to-alls over rails as flows on the whole graph, against the closed form of what forwarding adds."""

from collections import defaultdict

import pytest

from coopt.network.graphs import whole_graph
from coopt.network.plan_networks import families_of_design
from coopt.solving.evaluate import evaluate_instance
from coopt.traffic.flows import demand
from tests.conftest import ask, small_model


@pytest.mark.parametrize(
    ("size", "hb_gbyte_s", "nic_gbit_s", "published"),
    [(128, 300, 200, 200 / 2400), (128, 450, 400, 400 / 3600), (8, 300, 200, 0.073), (8, 450, 400, 0.097)],
)
def test_forwarding_adds_the_ratio_of_the_bandwidths(size, hb_gbyte_s, nic_gbit_s, published) -> None:
    """arXiv 2307.12169: 8.2% and 11.2%, C_S/C_F = 200G/2.4T and 400G/3.6T; of eight ranks in a domain seven eighths."""
    gpus = 64 * size if size > 8 else 2048
    added, exact = overhead(size, gpus, hb_gbyte_s, nic_gbit_s)
    assert added == pytest.approx(exact, rel=1e-9)
    assert added * ((gpus - size) / gpus if size == 8 else 1) == pytest.approx(published, rel=0.01)


def overhead(size: int, gpus: int, hb_gbyte_s: float, nic_gbit_s: float) -> tuple[float, float]:
    """What the hop inside the domain adds to the time on rails, by loads of links, and (K-1)/K·C_S/C_F·N/(N-K).

    On rails a GPU sends what it sends on a network that joins all GPUs: everything for other domains, once.
    """
    rate = f"{nic_gbit_s:g}g"
    instance = ask(
        cluster__gpus=gpus,
        workload__0__model=small_model(experts=gpus, top_k=1, ffn=2048),
        workload__0__global_batch=gpus,
        workload__0__max_iteration_time_s=1e9,
        workload__0__mapping={
            "tp": 1, "pp": 1, "ep": gpus, "micro_batch": 1, "interleave": 1, "zero": 0, "recompute": "none",
            "sequence_parallel": False,
        },
        network__hb_domains={"name": "hb", "size": size, "gbyte_s": hb_gbyte_s, "usd_per_gpu": 0, "w_per_gpu": 0},
        network__fabrics="rail-only",
        network__nics={"name": "nic", "gbit_s": nic_gbit_s, "usd": 1, "w": 1},
        network__switches={"name": rate, "radix": 512, "port_gbit_s": nic_gbit_s, "usd": 1, "w": 1},
        network__optics={"name": "optic", "gbit_s": nic_gbit_s, "reach_m": 500, "usd": 1, "w": 1},
        network__oversubscription=1.0,
    )  # fmt: skip
    found = evaluate_instance(instance)
    family, uplinks = next(families_of_design(instance, found.design))
    graph = whole_graph(family, uplinks)
    loads: dict[tuple[str, str], float] = defaultdict(float)
    for stream in demand(instance.workload[0], found.workloads[0]).streams:
        if (stream.kind, stream.phase) != ("ep", "forward"):
            continue
        for src, sent, dst in zip(stream.src.tolist(), stream.size_bytes.tolist(), stream.dst.tolist(), strict=True):
            if src == 0:  # every rank sends alike
                inside = src // size == dst // size
                loads[(f"hb/{src // size}" if inside else f"nic/{src // size}/{src % size}/0"), f"gpu/0/{src}"] += sent
    seconds = {}
    for (far, near), size_bytes in loads.items():
        seconds[far.split("/")[0]] = size_bytes * 8e-9 / graph.edges[far, near]["gbit_s"]
    ratio = (size - 1) / size * (nic_gbit_s / 8 / hb_gbyte_s) * gpus / (gpus - size)
    return seconds["hb"] / seconds["nic"], ratio
