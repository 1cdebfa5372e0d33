"""Bad input of every kind: exit 1, a message that names file and key, nothing on stdout, no traceback."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from coopt.cli.files import FORMATS

CHANGES = {
    "syntax": ("gpus = 64", "gpus = = 64", "tiny.toml: not TOML, line 6, column 8: Invalid value, in 'gpus = = 64'"),
    "half-a-text": ('"400g-199"', '"400g-199', "tiny.toml: not TOML, line 20, column 19: Illegal character"),
    "half-a-list": ('"400g-199"', "[1,", "tiny.toml: not TOML, line 20, column 13: Invalid value, in 'optics = [1,'"),
    "twice": ("gpus = 64", "gpus = 64\ngpus = 64", "not TOML"),
    "unknown-key": ("gpus = 64", "gpuz = 64", "cluster.gpuz: unknown key, needs a known one (closest: gpu, gpus)"),
    "unknown-key-of-a-range": (
        "gpus = 64",
        "gpus = { least = 8, most = 64, steps = 8 }",
        "cluster.gpus.steps: unknown key, needs a known one (closest: step)",
    ),
    "formulation": (
        "[network]",
        '[solver]\nformulation = "uplinks"\n[network]',
        "tiny.toml: solver.formulation: unknown key, needs one of time_limit_s, gap, threads, name, seed, top",
    ),
    "key-of-another-table": (
        "[network]",
        "[network]\nmapping = 1",
        "network.mapping: unknown key, needs workload.mapping",
    ),
    "entry-of-a-list": (
        'gpu = "h100-sxm"',
        'gpu = ["h100-sxm", { extends = "h100-sxm", name = "own", hbm_gib = 3 }]',
        "cluster.gpu[1].hbm_gib: unknown key, needs a known one (closest: hbm_gb, hbm_gbyte_s)",
    ),
    "turned-range": (
        "gpus = 64",
        "gpus = { least = 64, most = 8, step = 8 }",
        "step = 8: needs a most that is at least",
    ),
    "long-range": (
        "gpus = 64",
        "gpus = { least = 1, most = 99999, step = 1 }",
        "step = 1: needs at most 10,000 numbers",
    ),
    "plan": ("schema = 1", '{ "schema": "coopt-plan/2" }', "tiny.toml: holds JSON, as plans do, needs TOML"),
    "unknown-table": ("[network]", "[netwrk]", "netwrk: unknown key, needs a known one (closest: network)"),
    "missing-key": ("gpus = 64", "", "cluster.gpus: is missing"),
    "missing-table": ("[cluster]", "[network.x]", "cluster: is missing"),
    "catalog-name": ('"h100-sxm"', '"h100-smx"', "cluster.gpu = 'h100-smx': the catalog has no gpu of this name"),
    "catalog-closest": ('"h100-sxm"', '"h100-smx"', "closest: h100-sxm"),
    "catalog-type": ('nics = "cx7-400g"', "nics = 5", "network.nics[0] = 5: needs a catalog name or a table"),
    "text-for-number": ("gpus = 64", 'gpus = "64"', "cluster.gpus[0] = '64': needs a whole number"),
    "fraction": ("gpus = 64", "gpus = 64.5", "cluster.gpus[0] = 64.5: needs a whole number"),
    "truth-for-number": ("gpus = 64", "gpus = true", "cluster.gpus[0] = true: needs a whole number"),
    "date-for-number": ("gpus = 64", "gpus = 2024-01-01", "cluster.gpus[0] = 2024-01-01: needs a whole number"),
    "text-for-table": ("[cluster]", 'cluster = "big"\n[x]', "cluster = 'big': needs a table"),
    "negative-count": ("gpus = 64", "gpus = -64", "cluster.gpus[0] = -64: needs at least 1"),
    "zero-count": ("gpus = 64", "gpus = 0", "cluster.gpus[0] = 0: needs at least 1"),
    "empty-list": ("gpus = 64", "gpus = []", "cluster.gpus = []: needs at least 1 entry"),
    "empty-fabrics": (
        'fabrics = ["rail-only", "clos"]',
        "fabrics = []",
        "network.fabrics = []: needs at least 1 entry",
    ),
    "empty-domains": ('"hgx-h100-8"', "[]", "network.hb_domains = []: needs at least 1 entry"),
    "fabric": ('["rail-only", "clos"]', '"torus"', "network.fabrics[0] = 'torus': needs one of 'rail-only'"),
    "negative-rate": (
        '"cx7-400g"',
        '{ name = "mine", gbit_s = -400, usd = 1, w = 1 }',
        "network.nics[0].gbit_s = -400: needs a number above 0",
    ),
    "half-an-entry": (
        '"cx7-400g"',
        '{ name = "mine", gbit_s = 400 }',
        "network.nics[0].usd: is missing, needs a value, or extends",
    ),
    "name-twice": ('"cx7-400g"', '["cx7-400g", "cx7-400g"]', "network.nics: name 'cx7-400g' appears twice"),
    "no-ports": ('"cx7-400g"', '"cx8-800g"', "network.nics: no switch has ports of a NIC's rate (800 Gbit/s)"),
    "nan": ("time_s = 1.0", "time_s = nan", "workload[0].max_iteration_time_s = nan: needs a finite number"),
    "infinite": ("time_s = 1.0", "time_s = inf", "workload[0].max_iteration_time_s = inf: needs a finite number"),
    "overflow": ("time_s = 1.0", "time_s = 1e999", "workload[0].max_iteration_time_s = inf: needs a finite number"),
    "negative-time": ("time_s = 1.0", "time_s = -1", "workload[0].max_iteration_time_s = -1: needs a number above 0"),
    "two-bounds": (
        "max_iteration_time_s = 1.0",
        "max_iteration_time_s = 1.0\nmin_tokens_per_s = 5",
        "workload[0]: max_iteration_time_s and min_tokens_per_s given, needs exactly one",
    ),
    "no-bound": ("max_iteration_time_s = 1.0", "", "workload[0]: no bound given, needs exactly one"),
    "days-alone": (
        "max_iteration_time_s = 1.0",
        "train_days = 3",
        "workload[0]: train_days has no train_tokens, needs how many tokens are trained in that time",
    ),
    "few-tokens": (
        "max_iteration_time_s = 1.0",
        "train_days = 60\ntrain_tokens = 15",
        "workload[0]: train_tokens = 15 is less than an iteration has (",
    ),
    "one-factor": (
        "[network]",
        "[robust]\nprices.switch = 1.5\n[network]",
        "robust.prices.switch = 1.5: needs a list of 2, [least, most]",
    ),
    "three-factors": (
        "[network]",
        "[robust]\nefficiency = [0.8, 0.9, 1]\n[network]",
        "robust.efficiency: 3 entries, needs a list of 2, [least, most]",
    ),
    "one-reach": (
        "[network]",
        "[network]\nlink_reach_m = 50",
        "network.link_reach_m = 50: needs a list of 3, [NIC to leaf, leaf to next tier, to the core]",
    ),
    "electricity-in-doubt": (
        "[network]",
        "[robust]\nprices.energy = [0.8, 1.2]\n[network]",
        "robust.prices.energy: unknown key, needs one of hb, nic, switch, optics, gpu",
    ),
    "a-factor-elsewhere": (
        "[network]",
        "[robust]\nprices.energy = 1.2\n[network]",
        "robust.prices.energy: unknown key, needs phase.price.energy in its place",
    ),
    "uneven-domains-that-grow": (
        "[network]",
        '[[phase]]\nyear = 2026\ngpus = 32\n[[phase]]\nyear = 2028\ngpus = 64\n[network]\ndomain_fill = "any"',
        "do not go with [[phase]] tables, needs 'even' or the default, 'fewest', which is 'even' there",
    ),
    "partly-synchronised": (
        "max_iteration_time_s = 1.0",
        "max_iteration_time_s = 1.0\noptions = { tp_sync_fraction = 0.5 }\nmapping.sequence_parallel = true",
        "workload[0]: options.tp_sync_fraction = 0.5 leaves no sequence parallelism",
    ),
    "two-chunks-put-off": (
        "max_iteration_time_s = 1.0",
        'max_iteration_time_s = 1.0\noptions = { schedule = "zb-h1" }\nmapping.interleave = [1, 2]',
        "workload[0]: mapping.interleave = [1, 2]: a GPU has one chunk for a micro-batch under options.schedule = "
        "'zb-h1', needs [1], or the schedule '1f1b'",
    ),
    "no-such-schedule": (
        "max_iteration_time_s = 1.0",
        'max_iteration_time_s = 1.0\noptions = { schedule = "zb-v" }',
        "workload[0].options.schedule = 'zb-v': needs one of '1f1b', 'zb-h1' or 'dualpipe'",
    ),
    "no-such-peak": (
        "max_iteration_time_s = 1.0",
        'max_iteration_time_s = 1.0\nprecision = "fp4"',
        "precision = 'fp4': GPU 'h100-sxm' has no such peak, needs another precision or fp4_tflop_s",
    ),
    "fast-tcp": (
        "max_iteration_time_s = 1.0",
        'max_iteration_time_s = 1.0\noptions = { transport = "tcp" }',
        "options.transport = 'tcp': what TCP reaches is known up to 25 Gbit/s",
    ),
    "routing": (
        "[network]",
        "[network]\nrouting = 0.5",
        "network.routing = 0.5: needs one of 'spray', 'pinned' or 'ecmp' or at least 1",
    ),
    "word-or-number": (
        "[network]",
        '[margin]\ntime = "15%"\n[network]',
        "margin.time = '15%': needs 'model' or a number",
    ),
    "words-of-two-lists": (
        "[network]",
        '[objective]\nminimize = "co2"\n[network]',
        "objective.minimize = 'co2': needs one of 'capex', 'power', 'tco', 'time', 'usd_per_token' or 'carbon'",
    ),
    "two-needs-at-once": (
        "[network]",
        '[objective]\nminimize = "carbon"\n[network]',
        "needs objective.kg_co2_per_kwh (carbon of the electricity that is drawn) and train_tokens (from which",
    ),
    "ratio": ("[network]", "[network]\noversubscription = 0.5", "network.oversubscription = 0.5: needs at least 1"),
    "ratio-text": (
        "[network]",
        '[network]\noversubscription = "2"',
        "network.oversubscription = '2': needs a number or a list",
    ),
    "tiers": ("[network]", "[network]\nmax_tiers = 4", "network.max_tiers = 4: needs at most 3"),
    "gap": ("[network]", "[solver]\ngap = 1.0\n[network]", "solver.gap = 1.0: needs a number below 1"),
    "schema": ("schema = 1", "schema = 2", "schema = 2: needs 1"),
    "racks": (
        '[network]\nhb_domains = "hgx-h100-8"',
        "[limits]\nracks = 4\n[network]\n"
        'hb_domains = { name = "mine", size = 8, gbyte_s = 1, usd_per_gpu = 0, w_per_gpu = 0 }',
        "limits.racks: HB domain 'mine' does not say how many racks it fills",
    ),
    "long-number": ("gpus = 64", f"gpus = {'9' * 5000}", "line 6: a number of 5,000 digits"),
    "deep": ("gpus = 64", f"gpus = {'[' * 100_000}", "nested too deeply"),
}


@pytest.mark.parametrize("command", ["solve", "evaluate", "verify"])
@pytest.mark.parametrize("case", CHANGES)
def test_a_bad_instance_is_refused_by_file_and_key(coopt, written, case, command):
    old, new, says = CHANGES[case]
    file = written((old, new))
    done = coopt(command, file, *(["plan.json"] if command == "verify" else []))
    assert done.exit_code == 1
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert all(line.startswith("coopt: tiny.toml: ") for line in done.stderr.splitlines())
    assert says in done.stderr


def test_every_complaint_is_shown_at_once(coopt, written):
    done = coopt("solve", written(("gpus = 64", "gpus = 0"), ('"rail-only"', '"ring"'), ("global_batch = 64", "")))
    assert len(done.stderr.splitlines()) == 3


def test_a_list_whose_entries_are_refused_is_not_called_too_short(coopt, written):
    done = coopt("solve", written(("[network]", "[network]\noversubscription = [0.5]")))
    (line,) = done.stderr.splitlines()
    assert "network.oversubscription[0] = 0.5" in line


def test_a_device_in_place_of_a_file_is_called_one(coopt):
    done = coopt("solve", "/dev/null")
    assert done.exit_code == 1
    assert "/dev/null: is a device" in done.stderr


def test_json_leaves_stdout_empty_where_the_input_is_refused(coopt, written):
    done = coopt("solve", written(("gpus = 64", "gpus = 0")), "--json")
    assert (done.exit_code, done.stdout) == (1, "")


@pytest.mark.parametrize("content", [None, b"\x8b\xff\x00"])
def test_a_file_that_is_missing_or_no_text_is_refused(coopt, tmp_path, content):
    file = tmp_path / "question.toml"
    if content is not None:
        file.write_bytes(content)
    done = coopt("solve", file)
    assert done.exit_code == 1
    assert file.name in done.stderr


@pytest.mark.parametrize("words", [["solve"], ["evaluate"], ["verify", "x.toml"], ["new"], ["validate"]])
def test_a_name_too_long_for_a_file_is_refused(coopt, written, words):
    command, *before = words
    done = coopt(command, *([written()] if before else []), "x" * 300)
    assert (done.exit_code, done.stdout) == (1, "")
    assert "name too long" in done.stderr


def test_a_folder_is_no_instance(coopt, tmp_path):
    done = coopt("solve", tmp_path)
    assert done.exit_code == 1
    assert str(tmp_path) in done.stderr


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "plan.json: not JSON"),
        ("schema = 1", "plan.json: holds TOML"),
        ("", "plan.json: not JSON"),
        ("[]", "plan.json: the whole file = []: needs a table"),
        ("{}", "plan.json: instance: is missing"),
        ("[" * 100_000, "plan.json: nested too deeply"),
        (f'{{"schema": {"9" * 5000}}}', "line 1: a number"),
        (b"\xff\xfe\x00", "plan.json: not UTF-8 text"),
    ],
)
def test_a_bad_plan_is_refused(coopt, written, tmp_path, text, says):
    plan = tmp_path / "plan.json"
    plan.write_bytes(text if isinstance(text, bytes) else text.encode())
    done = coopt("verify", written(), plan)
    assert done.exit_code == 1
    assert done.stdout == ""
    assert says in done.stderr


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("objective.gap", "NaN", "objective.gap = nan"),
        ("design.spare_gpus", '"none"', "design.spare_gpus = 'none': "),
        ("design.gpuz", "3", "design.gpuz: unknown key"),
    ],
)
def test_a_plan_with_a_wrong_value_is_refused_by_key(coopt, planned, key, value, says):
    instance, plan = planned
    table = json.loads(plan.read_text("utf-8"))
    part, field = key.split(".")
    table[part][field] = "@"
    plan.write_text(json.dumps(table).replace('"@"', value), "utf-8")
    done = coopt("verify", instance, plan)
    assert done.exit_code == 1
    assert done.stdout == ""
    assert says in done.stderr


ANOTHER = {  # other GPUs, other workloads, another kind of question
    "gpus": ("gpus = 64", "gpus = 128"),
    "workloads": ('name = "training"', 'name = "other"'),
    "kind": ('fabrics = ["rail-only", "clos"]', 'fabrics = ["rail-only", "direct"]'),
}


@pytest.mark.parametrize("other", ANOTHER)
def test_the_plan_of_another_instance_is_refused_alike(coopt, planned, written, other):
    file = written(ANOTHER[other], name="other.toml")
    place = planned[0].parent
    exports = [
        ["export", "--format", name, "-o", str(place / f"plan{how.endings[0]}")] for name, how in FORMATS.items()
    ]
    for words in (["traffic"], ["route"], ["faults"], *exports):
        command, *options = words
        done = coopt(command, file, planned[1], *options)
        assert (done.exit_code, done.stdout) == (1, "")
        assert done.stderr == "coopt: tiny: the plan is of another instance, needs one of this instance\n", words


TWO = '[[workload]]\nname = "chat"\nmodel = "gpt-22b"\nglobal_batch = 64\nmax_iteration_time_s = {}\n\n[network]'


@pytest.mark.parametrize(
    ("name", "bound", "said"),
    [
        ("chat", "nan", "workload['chat'].max_iteration_time_s = nan"),
        ("training", "nan", "workload[1].max_iteration_time_s = nan"),  # two of one name
        ("workload[7]", '1\noptions.transport = "tcp"', "workload 'workload[7]': options.transport = 'tcp'"),
    ],
)
def test_of_several_workloads_the_one_that_is_wrong_is_named(coopt, written, name: str, bound: str, said: str):
    done = coopt("solve", written(("[network]", TWO.format(bound).replace("chat", name))))
    assert (done.exit_code, done.stdout) == (1, "")
    assert said in done.stderr


PLACES = """
[[site]]
name = "oslo"
power_mw = {}
[[site]]
name = "berlin"
power_mw = 1
[[phase]]
year = 2026
workloads = [{{ name = "training" }}]
[[phase]]
year = 2028
workloads = [{{ name = "training", gpu = 3 }}]
"""


@pytest.mark.parametrize("said", ["site['oslo'].power_mw = -2", "phase['2028'].workloads['training'].gpu: unknown key"])
def test_sites_and_phases_that_are_wrong_are_named(coopt, written, tmp_path, said: str):
    file = tmp_path / "places.toml"
    file.write_text(Path(written()).read_text("utf-8") + PLACES.format(-2), "utf-8")
    done = coopt("solve", file)
    assert (done.exit_code, done.stdout) == (1, "")
    assert said in done.stderr
