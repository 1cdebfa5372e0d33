"""The figures that are shown are those of the flows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coopt.instance.schema import Instance
from coopt.instance.texts import InstanceError
from coopt.network.plan_networks import family_of_plan
from coopt.plan.schema import Plan
from coopt.solving.answer import solve
from coopt.traffic.flows import Stream, TrafficDemand
from coopt.traffic.of_plan import demands
from coopt.traffic.summary import cells_of, matrix_csv, sparse_matrix, traffic_figures
from tests.changes import with_part
from tests.conftest import ask
from tests.traffic.sums import bytes_by_kind, bytes_by_tier, silent_share


@pytest.fixture(scope="module")
def solved() -> tuple[Instance, Plan]:
    """64 GPUs on two tiers of switches of 8 ports."""
    instance = ask(network__switches={"name": "8-port", "radix": 8, "port_gbit_s": 400, "usd": 1, "w": 1})
    return instance, solve(instance)


@st.composite
def scattered(draw: st.DrawFn) -> TrafficDemand:
    """Flows between random GPUs."""
    ranks, active = draw(st.sampled_from([(12, 4), (6, 1), (64, 8), (30, 5)]))
    ends = st.integers(0, ranks - 1)
    rows = draw(st.lists(st.tuples(ends, ends, st.integers(0, 10**6)), min_size=1, max_size=40))
    src, dst, sizes = np.array([row for row in rows if row[0] != row[1]] or [(0, 1, 5)], dtype=np.int64).T
    kinds = draw(st.permutations(["tp", "dp"]))
    streams = tuple(
        Stream(
            kind=kind, collective="dp", phase="forward", src=src[part::2], dst=dst[part::2], group=src[part::2],
            size_bytes=sizes[part::2].astype(float),
        )
        for part, kind in enumerate(kinds)
    )  # fmt: skip
    return TrafficDemand(workload="w", gpus=np.arange(ranks), active=active, domains=ranks // active, streams=streams)


@pytest.mark.parametrize("trees", [False, True])
def test_bytes_of_classes_places_and_gpus_add_up_to_the_same(solved: tuple[Instance, Plan], trees: bool) -> None:
    family, (sent,) = demands(*solved, trees=trees)
    (found,) = traffic_figures(solved[0], family, (sent,)).workloads
    kinds, tiers = bytes_by_kind(sent), bytes_by_tier(family, sent)
    assert found.whole_bytes == pytest.approx(sum(kinds.values()))
    for kind, size_bytes in kinds.items():
        assert sum(one.whole_bytes for one in found.classes if one.kind == kind) == pytest.approx(size_bytes)
    places = {"domain": tiers[0], "leaf": tiers[1], "above": sum(n for tier, n in tiers.items() if tier > 1)}
    for one in found.per_gpu:
        assert sum(getattr(part, f"{one.place}_bytes") for part in found.classes) == pytest.approx(places[one.place])
        assert one.mean_sent_bytes * found.gpus == pytest.approx(places[one.place])
        assert one.least_sent_bytes <= one.mean_sent_bytes <= one.most_sent_bytes
    assert found.silent_share == silent_share(sent)
    assert found.talking_pairs == len(sparse_matrix(sent)[0])


@settings(max_examples=60)
@given(scattered(), st.integers(1, 20))
def test_cells_hold_all_bytes_wherever_they_are_cut(found: TrafficDemand, most: int) -> None:
    for gpus in (0, 64):
        cells = cells_of(found, most_gpus=gpus, most_cells=most)
        sums = {k: float(part.sum()) for k, part in zip(cells.kinds, cells.size_bytes, strict=True)}
        assert sums == {k: v for k, v in bytes_by_kind(found).items() if k in sums}
        assert cells.size_bytes.shape[1] == -(-cells.ends // cells.per_cell)
        assert cells.end == ("GPU" if gpus else "HB domain")
        assert gpus or cells.size_bytes.shape[1] <= most
        src, dst, sizes = sparse_matrix(found)
        width = cells.per_cell * (1 if gpus else found.active)
        for a, b, size_bytes in zip(src // width, dst // width, sizes, strict=True):
            assert cells.size_bytes[:, a, b].sum() >= size_bytes


@settings(max_examples=60)
@given(scattered())
def test_the_matrix_that_is_written_is_the_matrix(found: TrafficDemand) -> None:
    head, *lines = matrix_csv(found).splitlines()
    assert head == "src_gpu,dst_gpu,bytes"
    read = [(int(a), int(b), float(c)) for a, b, c in (line.split(",") for line in lines)]
    assert read == [*zip(*(column.tolist() for column in sparse_matrix(found)), strict=True)]


def test_a_matrix_that_is_too_large_is_refused(solved: tuple[Instance, Plan]) -> None:
    _, (sent,) = demands(*solved)
    pairs = len(sparse_matrix(sent)[0])
    assert matrix_csv(sent, most_pairs=pairs)
    with pytest.raises(InstanceError, match=rf"--matrix: {pairs} pairs .* {pairs - 1} "):
        matrix_csv(sent, most_pairs=pairs - 1)


def test_a_plan_for_other_workloads_or_of_another_split_is_refused(solved: tuple[Instance, Plan]) -> None:
    instance, plan = solved
    (workload,) = plan.workloads
    renamed = with_part(plan, workloads=(workload.model_copy(update={"name": "other"}),))
    with pytest.raises(InstanceError, match=r"'other'.*'w'"):
        demands(instance, renamed)
    halved = dict.fromkeys(workload.placement, (1, 1))
    bent = with_part(plan, workloads=(workload.model_copy(update={"placement": halved}),))
    with pytest.raises(InstanceError, match=r"1 GPU .* 64 in"):
        demands(instance, bent)
    assert family_of_plan(instance, plan)


def test_one_hb_domain_keeps_everything_and_one_gpu_sends_nothing() -> None:
    instance = ask(cluster__gpus=8, network__hb_domains="hgx-h100-8", workload__0__max_iteration_time_s=100.0)
    family, sent = demands(instance, solve(instance))
    (found,) = traffic_figures(instance, family, sent).workloads
    assert found.whole_bytes > 0
    assert found.whole_bytes == pytest.approx(sum(one.domain_bytes for one in found.classes))
    alone = TrafficDemand(workload="w", gpus=np.arange(1), active=1, domains=1, streams=())
    (found,) = traffic_figures(instance, family, (alone,)).workloads
    assert (found.whole_bytes, found.silent_share, found.classes) == (0.0, 1.0, ())
    assert matrix_csv(alone) == "src_gpu,dst_gpu,bytes\n"
