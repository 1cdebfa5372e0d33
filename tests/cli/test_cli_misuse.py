"""Whatever is asked wrongly is refused: the exit code, nothing on stdout, and what is wrong by its name on stderr."""

import sys
from pathlib import Path

import pytest

from coopt.cli.files import FORMATS

MISUSE = [  # what is no command, option or value of one
    (["solv"], "mean 'solve'?"), (["slove"], "'solve' or 'serve'?"),
    (["xyzzy"], "No such command 'xyzzy'.\n"),
    (["suite", "walk"], "No such command"), (["solve", "--tim", "3"], "mean '--time-limit'?"),
    (["solve"], "Missing argument"), (["solve", "x.toml", "--gap", "nan"], "nan is not"),
    (["solve", "x.toml", "--gap", "-0.1"], "range 0<=x<1"), (["solve", "x.toml", "--gap", "1"], "in the range"),
    (["solve", "x.toml", "--gap", "small"], "'small' is not"), (["solve", "x.toml", "--time-limit", "-1"], "range x>0"),
    (["solve", "x.toml", "--time-limit", "0"], "in the range"),
    (["solve", "x.toml", "--time-limit", "inf"], "inf is not"), (["solve", "x.toml", "--threads", "0"], "in the range"),
    (["solve", "x.toml", "--objective", "speed"], "'speed' is not"),
    (["pareto", "x.toml", "--points", "2"], "in the range"), (["pareto", "x.toml", "--slowest", "nan"], "nan is not"),
    (["pareto", "x.toml", "--slowest", "0"], "in the range"),
    (["pareto", "x.toml", "--objective", "time"], "'time' is not"),
    (["evaluate", "x.toml", "--set", "tp"], "'tp' needs"), (["evaluate", "x.toml", "--set", "=3"], "'=3' needs"),
    (["evaluate", "INSTANCE", "--part", "x"], "--part: needs --mappings."),
    (["verify", "INSTANCE", "PLAN", "--part", "x"], "--part: needs --routes."),
    (["route", "INSTANCE", "PLAN", "--algorithm", "luck"], "'luck' is not"),
    (["export", "INSTANCE", "PLAN", "--format", "png"], "'png' is not"), (["export", "INSTANCE", "PLAN"], "--format"),
    (["export", "INSTANCE", "PLAN", "--format", "bom-csv", "--compressed"], "--compressed: "),
    (["export", "INSTANCE", "PLAN", "--format", "lp", "--workload", "training"], "--workload: "),
    (["collective"], "Missing argument"), (["collective", "ring:8", "--bytes", "0"], "in the range"),
    (["collective", "ring:8", "--bytes", "nan"], "nan is not"),
    (["collective", "ring:8", "--latency-s", "-1"], "in the range"),
    (["collective", "ring:8", "--gbit-s", "0"], "in the range"),
    (["collective", "ring:8", "--algorithm", "magic"], "'magic' is not"),
    (["collective", "ring:8", "--algorithm", "ring", "--roots", "free"], "--roots free: "),
    (["collective", "ring:8", "--seed", "-1"], "in the range"),
    (["suite", "run", "x.toml", "--workers", "1", "--scheduler", "y"], "they exclude each other"),
    (["suite", "run", "x.toml", "--workers", "0"], "in the range"),
    *((["validate", "x.csv", "--fail-over", limit], "--fail-over") for limit in ("-1", "nan", "much")),
    (["catalog", "list", "cpu"], "'cpu' is not"), (["schema", "catalog"], "'catalog' is not"),
    (["new"], "Missing argument"),
]  # fmt: skip
REFUSED = [  # files, names and places that are not there
    (["solve", "INSTANCE", "-o", "FOLDER"], "FOLDER: is a folder"),
    (["solve", "INSTANCE", "-o", "FOLDER/none/plan.json"], "plan.json: cannot be written"),
    (["solve", "INSTANCE", "-o", "/dev/null"], "not a regular file"),
    (["solve", "INSTANCE", "-o", "INSTANCE"], "needs another name"),
    (["solve", "INSTANCE", "--solver", "magic"], "solver.name = 'magic'"),
    (["pareto", "INSTANCE", "-o", "INSTANCE"], "is not a folder"),
    (["pareto", "INSTANCE", "-o", "INSTANCE/below"], "is not a folder"),
    (["pareto", "INSTANCE", "-o", ""], "name is empty"), (["suite", "run", "SUITE", "-o", ""], "name is empty"),
    (["suite", "run", "gone.toml"], "gone.toml: no such file"), (["suite", "report", "gone"], "`coopt suite run`"),
    (["export", "INSTANCE", "PLAN", "--format", "graphml", "-o", "x.dot"], "x.dot: is no file name"),
    (["export", "INSTANCE", "PLAN", "--format", "dot", "-o", "x"], ".dot or .gv"),
    (["export", "INSTANCE", "PLAN", "--format", "dot", "-o", "/nowhere/x.dot"], "/nowhere/x.dot: cannot be written"),
    *(
        (
            ["export", "INSTANCE", "PLAN", "--format", name, "--workload", "", "-o", f"x{how.endings[0]}"],
            "needs training",
        )
        for name, how in FORMATS.items()
        if "workload" in how.options
    ),
    (["export", "INSTANCE", "PLAN", "--format", "lp", "--program", "9", "-o", "x.lp"], ": tiny.toml: --program = 9"),
    (["traffic", "INSTANCE", "PLAN", "--heat-map", "map.txt"], "map.txt: unknown picture format"),
    (["traffic", "INSTANCE", "PLAN", "--heat-map", "/nowhere/map.png"], "/nowhere/map.png: cannot be written"),
    (["traffic", "INSTANCE", "PLAN", "--matrix", "/nowhere/m.csv"], "/nowhere/m.csv: cannot be written"),
    *(
        ([command, "INSTANCE", "PLAN", option, file], "needs another name")
        for command, option in {
            "route": "--links", "traffic": "--matrix", "simulate": "--trace", "report": "-o",
        }.items()
        for file in ("INSTANCE", "PLAN")
    ),
    (["simulate", "INSTANCE", "PLAN", "--part", "nowhere"], "--part nowhere: "),
    (["collective", "tours:4x4"], "'tours:4x4': neither a shape"),
    (["collective", "none.graphml"], "none.graphml: no such file"),
    (["collective", "ring:8", "--algorithm", "ring2d"], "ring:8: algorithm ring2d"),
    (["collective", "ring:6", "--algorithm", "halving-doubling"], "power of two"),
    (["collective", "ring:6", "--nic", "cx9"], "--nic cx9: "),
    (["collective", "ring:6", "--optic", "800g-dr8"], "400 Gbit/s, but '800g-dr8' at 800"),
    (["collective", "ring:6", "--export", "x.png"], "x.png: ends in '.png'"),
    (["collective", "ring:6", "--schedule", "/nowhere/x.json"], "/nowhere/x.json: cannot be written"),
    (["validate", "none.csv"], "no such file"), (["calibrate", "none.csv"], "no such file"),
    (["calibrate", "none.csv", "--generation", "pascal"], "--generation = 'pascal'"),
    (["new", "FOLDER/none/mine.toml"], "cannot be written"), (["catalog", "show", "h100-smx"], "closest: h100-sxm"),
]  # fmt: skip
SETTINGS = {
    "network.fabrics.kind=clos": "tiny.toml: override network.fabrics.kind: ",
    "workload.micro_batch=1": "needs workload.mapping.micro_batch",
    "network.fabricz=clos": "tiny.toml with overrides: network.fabricz: unknown key",
    "workload.3.mapping.tp=8": "workload.3.mapping.tp: there is no index 3",
    "workload.-1.name=other": "workload.-1.name: there is no index -1",
    f"workload.{'9' * 5000}.x=1": "needs 0",
    "workload.mapping.tp=eight": "workload[0].mapping.tp[0] = 'eight'",
    "cluster.gpu.usd=5": "cluster.gpu.usd: 'usd' lies below 'h100-sxm'",
}
REFUSED += [(["evaluate", "INSTANCE", "--set", setting], says) for setting, says in SETTINGS.items()]
UNINSTALLED = [
    ["traffic", "INSTANCE", "PLAN", "--heat-map", "FOLDER/map.png"],
    ["validate", "PUBLISHED", "--plot", "FOLDER/map.png"],
]


def words_of(words: list[str], planned: tuple[Path, Path]) -> list[str]:
    """The words with the places of files in place of their names in capitals."""
    instance, plan = planned
    places = {"INSTANCE": instance, "PLAN": plan, "FOLDER": instance.parent, "SUITE": instance.with_name("suite.toml")}
    places["PUBLISHED"] = Path(__file__).parents[2] / "benchmarks" / "published.csv"
    for name, place in places.items():
        words = [word.replace(name, str(place)) for word in words]
    return words


@pytest.fixture
def refused(coopt, planned, monkeypatch):
    """`refused(words, says, code)`: nothing is printed but what is wrong, and all files stay as they are."""
    (planned[0].with_name("suite.toml")).write_text('schema = 1\nname = "small"\ngrid = []\n', "utf-8")
    monkeypatch.chdir(planned[0].parent)
    monkeypatch.setattr("coopt.solving.fronts.sweep.pareto", None)  # refused before the search
    before = {file: file.read_bytes() for file in planned[0].parent.iterdir()}

    def check(words: list[str], says: str, code: int) -> None:
        done = coopt(*words_of(words, planned))
        assert (done.exit_code, done.stdout) == (code, ""), done.output
        assert words_of([says], planned)[0] in done.stderr
        assert len(done.stderr) < 2000
        assert "Traceback" not in done.stderr
        assert {file: file.read_bytes() for file in planned[0].parent.iterdir()} == before

    return check


@pytest.mark.parametrize(("words", "says"), MISUSE, ids=[" ".join(words) for words, _ in MISUSE])
def test_misuse_exits_2_and_says_how(refused, words, says):
    refused(words, says, 2)


@pytest.mark.parametrize(("words", "says"), REFUSED, ids=[" ".join(words)[:80] for words, _ in REFUSED])
def test_what_is_not_there_is_refused_by_its_name(refused, words, says):
    refused(words, says, 1)


@pytest.mark.parametrize("words", UNINSTALLED)
def test_what_is_missing_is_named_with_its_remedy(refused, monkeypatch, words):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    refused(words, "`pip install 'coopt[report]'`", 1)
