"""A suite file is refused in sentences before anything runs."""

from pathlib import Path

import pytest

from coopt.instance.texts import InstanceError
from coopt.suite.form import cases_of, read_study
from tests.suite.conftest import VARY, Written

TABLE = '[[table]]\nname = "t"\ntitle = "T"\ngrid = "pace"\ncolumns = ["cluster_gpus", "capex_usd"]\n'
FIGURE = '[[figure]]\nname = "f"\ntitle = "F"\ngrid = "pace"\nx = "cluster_gpus"\ny = "capex_usd"\n'


def read(file: Path) -> None:
    cases_of(read_study(file).suite, file.parent)


@pytest.mark.parametrize(
    ("rest", "says"),
    [
        ('[grid.vary]\n"network.max_tirs" = [1]\n', "network.max_tirs: unknown key"),
        ('[grid.set]\n"netwrk.max_tiers" = 1\n', "netwrk: unknown key"),
        ('[grid.vary]\n"cluster.gpu.usd" = [1]\n', "'usd'"),
        ('[grid.vary]\n"workload.3.global_batch" = [1]\n', "index 3"),
        ('[grid.vary]\n"cluster.gpus" = []\n', "least 1 entry"),
        ('[grid.vary]\nstatus = [{ label = 1, set = {} }]\n', "'status'"),
        ('[grid.vary]\n"a.b" = [1]\na_b = [1]\n', "'a.b'"),
        ('[grid.vary]\n"7" = [1]\n', "with a letter"),
        ('[grid.vary]\nhb = [{ label = [8], set = {} }]\n', "vary.hb: label"),
        ('[grid.vary]\n"network.switches" = ["64x401g"]\n', "every case is"),
        ('action = "guess"\n', "grid[0].action = 'guess'"),
        ('speed = 1\n', "grid[0].speed: unknown key"),
        (VARY + TABLE.replace("capex_usd", "capex"), "t: column 'capex'"),
        (VARY + TABLE.replace('"pace"', '"space"'), "t: grid = 'space'"),
        (VARY + TABLE + FIGURE.replace('"f"', '"t"'), "table, figure: name 't'"),
        (VARY + FIGURE + "share_of = { radix = 3 }\n", "f: share_of.radix: "),
        (VARY + FIGURE + 'published = "gone.csv"\n', "gone.csv: no such file"),
        ('[[grid]]\nname = "pace"\ninstances = "x.toml"\n', "grid: name 'pace'"),
        ('[[grid]]\nname = "Other"\ninstances = "x.toml"\n', "grid[1].name = 'Other': needs lowercase letters"),
        ('[[grid]]\nname = "other"\ninstances = "gone.toml"\n', "grid 'other': "),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(written: Written, rest: str, says: str) -> None:
    with pytest.raises(InstanceError) as refused:
        read(written(rest))
    assert any(says in complaint for complaint in refused.value.complaints), refused.value.complaints


def test_published_figures_need_their_source(written: Written) -> None:
    file = written(VARY + FIGURE + 'published = "p.csv"\n')
    (file.parent / "p.csv").write_text("cluster_gpus,capex_usd,series\n64,1,theirs\n", "utf-8")
    with pytest.raises(InstanceError, match=r"source.*'f'"):
        read(file)


def test_every_complaint_is_told_at_once(written: Written) -> None:
    again = '[grid.vary]\n"cluster.gpuz" = [1]\n[[grid]]\nname = "b"\ninstances = "gone.toml"\n'
    with pytest.raises(InstanceError) as refused:
        read(written(again))
    assert len(refused.value.complaints) == 2


@pytest.mark.parametrize("file", sorted((Path(__file__).parents[2] / "instances" / "suites").glob("*.toml")))
def test_every_shipped_suite_can_be_asked(file: Path) -> None:
    read(file)
