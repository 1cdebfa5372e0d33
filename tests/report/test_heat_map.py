"""Heat maps of large clusters are cut into cells that can be seen, and say so."""

import numpy as np
import pytest

from coopt.instance.texts import InstanceError
from coopt.plan.traffic import WorkloadTraffic
from coopt.report import pictures, words
from coopt.report.pictures import CLASS_COLOURS, draw_heat_map
from coopt.report.traffic import COLLECTIVES, traffic_headline
from coopt.traffic.flows import Stream, TrafficDemand
from coopt.traffic.summary import cells_of

pytest.importorskip("matplotlib")


def ring(ranks: int, active: int, size_bytes: float) -> TrafficDemand:
    """Every GPU sends to the same one of the next domain."""
    src = np.arange(ranks)
    stream = Stream(
        kind="dp", collective="dp", phase="gradients", src=src, dst=(src + active) % ranks, group=src % active,
        size_bytes=np.full(ranks, size_bytes),
    )  # fmt: skip
    return TrafficDemand(workload="w", gpus=np.arange(ranks), active=active, domains=ranks // active, streams=(stream,))


def test_32768_gpus_in_4096_domains_become_256_cells_a_side(tmp_path, monkeypatch):
    kept, draw = [], pictures.picture
    monkeypatch.setattr(pictures, "picture", lambda figure, *more: kept.append(figure) or draw(figure, *more))
    cells = cells_of(ring(32768, 8, 3e9))
    assert cells.size_bytes.shape == (1, 256, 256)
    draw_heat_map(cells, "a ring", str(tmp_path / "map.png"))
    left, _, bar = kept[0].axes
    assert left.get_xlabel() == "to HB domain (16 to a cell)"
    assert left.get_xlim() == (-0.5, 4095.5)
    assert bar.get_ylabel().startswith("GB an iteration")
    assert all("e" not in tick.get_text() for tick in bar.get_yticklabels())
    draw_heat_map(cells_of(ring(16, 4, 1.0)), "equal bytes everywhere", str(tmp_path / "map.svg"))
    assert (tmp_path / "map.svg").stat().st_size > 1000
    assert set(CLASS_COLOURS) == set(COLLECTIVES)
    assert len(set(CLASS_COLOURS.values())) == len(CLASS_COLOURS)


def test_silence_makes_no_picture(tmp_path):
    alone = TrafficDemand(workload="w", gpus=np.arange(1), active=1, domains=1, streams=())
    with pytest.raises(InstanceError, match="--heat-map: the plan sends no traffic"):
        draw_heat_map(cells_of(alone), "", str(tmp_path / "map.png"))
    nothing = WorkloadTraffic(
        name="w", gpus=1, all_reduce="ring", talking_pairs=0, silent_share=1.0, whole_bytes=0.0, classes=(), per_gpu=()
    )
    assert traffic_headline(nothing) == "Workload 'w': its GPUs send nothing to each other."


def test_bytes_have_the_largest_unit_that_goes_into_them():
    units = {0.5: "bytes", 999: "bytes", 1e3: "kB", 2.5e12: "TB", 1e18: "PB"}
    assert {size_bytes: words.byte_scale(size_bytes)[1] for size_bytes in units} == units
