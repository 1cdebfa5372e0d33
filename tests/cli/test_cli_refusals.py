"""Bad input of every kind: exit 1, a message that names file and key, nothing on stdout, no traceback."""

import json
from pathlib import Path

import pytest

from coopt.cli.files import FORMATS

BOUND = "max_iteration_time_s = 1.0"
OWN_DOMAIN = '{ name = "mine", size = 8, gbyte_s = 1, usd_per_gpu = 0, w_per_gpu = 0 }'
GROWTH = "[[phase]]\nyear = 2026\ngpus = 32\n[[phase]]\nyear = 2028\ngpus = 64\n[network]"
OWN_GPU = 'gpu = ["h100-sxm", { extends = "h100-sxm", name = "own", hbm_gib = 3 }]'
CHANGES = {  # what is replaced, by what, and what is said of it
    "syntax": ("gpus = 64", "gpus = = 64", "not TOML, line 6, column 8: Invalid value, in 'gpus = = 64'"),
    "half-a-text": ('"400g-199"', '"400g-199', "not TOML, line 20, column 19: Illegal character"),
    "half-a-list": ('"400g-199"', "[1,", "not TOML, line 20, column 13: Invalid value, in 'optics = [1,'"),
    "twice": ("gpus = 64", "gpus = 64\ngpus = 64", "not TOML"),
    "unknown-key": ("gpus = 64", "gpuz = 64", "cluster.gpuz: unknown key, needs a known key (closest: gpu, gpus)"),
    "key-of-a-range": ("= 64\n", "= { least = 8, most = 64, steps = 8 }\n", "steps: unknown key, needs a known key"),
    "entry-of-a-list": ('gpu = "h100-sxm"', OWN_GPU, "cluster.gpu[1].hbm_gib: unknown key"),
    "turned-range": ("= 64\n", "= { least = 64, most = 8, step = 8 }\n", "step = 8: needs most >= least"),
    "long-range": ("= 64\n", "= { least = 1, most = 99999, step = 1 }\n", "step = 1: needs at most 10,000 numbers"),
    "longer-range": ("= 64\n", "= { least = 1, most = 10001, step = 1 }\n", "step = 1: needs at most 10,000 numbers"),
    "no-day": ("gpus = 64", "gpus = 64\nstart = '2027-02-30'", "start = '2027-02-30': is no day of the calendar"),
    "number-for-day": ("gpus = 64", "gpus = 64\nstart = 5", "cluster.start = 5: needs a day such as 2027-01-15"),
    "endless-idleness": ("gpus = 64", "gpus = 64\nidle_gpus = inf", "cluster.idle_gpus = inf: needs true, false, or"),
    "plan": ("schema = 1", '{ "schema": "coopt-plan/2" }', "holds JSON, as plans do, needs TOML"),
    "unknown-table": ("[network]", "[netwrk]", "netwrk: unknown key, needs a known key (closest: network)"),
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
    "empty-list": ("gpus = 64", "gpus = []", "cluster.gpus = []: needs a list of at least 1 entry"),
    "empty-fabrics": ('["rail-only", "clos"]', "[]", "network.fabrics = []: needs a list of at least 1 entry"),
    "fabric": ('["rail-only", "clos"]', '"torus"', "network.fabrics[0] = 'torus': needs one of 'rail-only'"),
    "fat tree": ('["rail-only", "clos"]', '"fat-tree"', "network.fabrics[0] = 'fat-tree': needs 'clos'"),
    "negative-rate": (
        '"cx7-400g"', '{ name = "x", gbit_s = -4, usd = 1, w = 1 }', "gbit_s = -4: needs a number above 0",
    ),
    "half-an-entry": ('"cx7-400g"', '{ name = "x", gbit_s = 400 }', "usd: is missing, needs a value, or extends"),
    "name-twice": ('"cx7-400g"', '["cx7-400g", "cx7-400g"]', "network.nics: name 'cx7-400g' appears more than once"),
    "no-ports": ('"cx7-400g"', '"cx8-800g"', "network.nics: no listed switch has ports of a NIC's rate (800 Gbit/s)"),
    "nan": ("time_s = 1.0", "time_s = nan", "workload[0].max_iteration_time_s = nan: needs a finite number"),
    "infinite": ("time_s = 1.0", "time_s = inf", "workload[0].max_iteration_time_s = inf: needs a finite number"),
    "overflow": ("time_s = 1.0", "time_s = 1e999", "workload[0].max_iteration_time_s = inf: needs a finite number"),
    "negative-time": ("time_s = 1.0", "time_s = -1", "workload[0].max_iteration_time_s = -1: needs a number above 0"),
    "no-bound": (BOUND, "", "workload[0]: no bound is given, needs exactly one"),
    "schema": ("schema = 1", "schema = 2", "schema = 2: needs 1"),
    "racks": (
        '[network]\nhb_domains = "hgx-h100-8"',
        f"[limits]\nracks = 4\n[network]\nhb_domains = {OWN_DOMAIN}",
        "limits.racks: HB domain 'mine' ",
    ),
    "word-or-number": (
        'margin = "none"', 'margin = { time = "15%" }', "margin.time = '15%': needs 'model' or a number",
    ),
    "margin-number": ('margin = "none"', "margin = 3", "margin = 3: needs 'none' or a table"),
    "no-mixer": (
        'model = "gpt-22b"', 'model = { extends = "gpt-22b", mixers = [{ kind = "rwkv", layers = 4 }] }',
        "mixers[0].kind = 'rwkv': needs one of 'attention', 'mamba-2'",
    ),
    "more-mixers-than-layers": (
        'model = "gpt-22b"',
        'model = { extends = "gpt-22b", layers = 4, mixers = [{ kind = "lightning", layers = 6, heads = 8,'
        " head_dim = 64, groups = 8, state = 64 }] }",
        "layers = 4: needs at least 6",
    ),
    "margin-word": ('margin = "none"', 'margin = "nothing"', "margin = 'nothing': needs 'none' or a table"),
    "long-number": ("gpus = 64", f"gpus = {'9' * 5000}", "line 6: a number of 5,000 digits"),
    "deep": ("gpus = 64", f"gpus = {'[' * 100_000}", "nested too deeply"),
}  # fmt: skip
IN_WORKLOAD = {  # keys in place of the bound, or after it where they begin with a line of their own
    "two-bounds": ("\nmin_tokens_per_s = 5", "max_iteration_time_s and min_tokens_per_s are given, needs exactly one"),
    "days-alone": ("train_days = 3", "workload[0]: train_days: "),
    "few-tokens": ("train_days = 60\ntrain_tokens = 15", "train_tokens = 15: "),
    "partly-synchronised": (
        "\noptions = { tp_sync_fraction = 0.5 }\nmapping.sequence_parallel = true",
        "options.tp_sync_fraction = 0.5: ",
    ),
    "two-chunks-put-off": (
        '\noptions = { schedule = "zb-h1" }\nmapping.interleave = [1, 2]',
        "mapping.interleave = [1, 2]: options.schedule = 'zb-h1'",
    ),
    "no-such-schedule": ('\noptions = { schedule = "zb-v" }', "'zb-v': needs one of '1f1b', 'zb-h1' or 'dualpipe'"),
    "no-such-peak": ('\nprecision = "fp4"', "needs another precision or fp4_tflop_s"),
    "fast-tcp": ('\noptions = { transport = "tcp" }', "options.transport = 'tcp': the rate of TCP is known only"),
}
IN_NETWORK = {  # keys of the network, or other tables before it
    "key-of-another-table": ("mapping = 1", "network.mapping: unknown key, needs workload.mapping"),
    "one-reach": ("link_reach_m = 50", "link_reach_m = 50: needs a list of 3, [NIC to leaf, leaf to next tier, to the"),
    "routing": ("routing = 0.5", "routing = 0.5: needs one of 'spray', 'pinned' or 'ecmp' or a number of at least 1"),
    "ratio": ("oversubscription = 0.5", "network.oversubscription = 0.5: needs at least 1"),
    "ratio-text": ('oversubscription = "2"', "network.oversubscription = '2': needs a number or a list"),
    "ratio-of-a-list": ("oversubscription = [0.5]", "network.oversubscription[0] = 0.5: needs"),
    "tiers": ("max_tiers = 4", "network.max_tiers = 4: needs at most 3"),
    "formulation": ('[solver]\nformulation = "x"', "needs one of time_limit_s, gap, threads, name, seed, top"),
    "gap": ("[solver]\ngap = 1.0", "solver.gap = 1.0: needs a number below 1"),
    "one-factor": ("[robust]\nprices.switch = 1.5", "prices.switch = 1.5: needs a list of 2, [least, most]"),
    "three-factors": ("[robust]\nefficiency = [0.8, 0.9, 1]", "3 entries, needs a list of 2, [least, most]"),
    "energy-in-doubt": ("[robust]\nprices.energy = [0.8, 1.2]", "prices.energy: unknown key, needs one of hb, nic,"),
    "a-factor-in-american": ("[robust]\nprices.fiber = [1, 2]", "needs robust.prices.optics in its place"),
    "a-factor-of-another-kind": ("[robust]\nprices.fibre = [1, 2]", "needs robust.prices.optics in its place"),
    "a-limit-elsewhere": ("[objective]\nracks = 10", "objective.racks: unknown key, needs limits.racks in its place"),
    "a-factor-elsewhere": ("[robust]\nprices.energy = 1.2", "unknown key, needs phase.price.energy in its place"),
    "words-of-two-lists": ('[objective]\nminimize = "co2"', "'co2': needs one of 'capex', 'power', 'tco', 'time', "),
    "two-needs-at-once": (
        '[objective]\nminimize = "carbon"',
        "needs objective.kg_co2_per_kwh (carbon of the electricity that is drawn) and train_tokens (from which",
    ),
    "uneven-domains-that-grow": (f'{GROWTH}\ndomain_fill = "any"', "not supported with [[phase]] tables, needs 'even'"),
}
CHANGES |= {
    case: (BOUND, f"{BOUND}{new}" if new[0] == "\n" else new, says) for case, (new, says) in IN_WORKLOAD.items()
}
CHANGES |= {
    case: (
        "[network]",
        new if "[network]" in new else f"{new}\n[network]" if new[0] == "[" else f"[network]\n{new}",
        says,
    )
    for case, (new, says) in IN_NETWORK.items()
}


@pytest.mark.parametrize(
    ("case", "command"), [*((case, "solve") for case in CHANGES), ("nan", "evaluate"), ("nan", "verify")]
)
def test_a_bad_instance_is_refused_by_file_and_key(coopt, written, case, command):
    old, new, says = CHANGES[case]
    done = coopt(command, written((old, new)), *(["plan.json"] if command == "verify" else []))
    assert (done.exit_code, done.stdout) == (1, "")
    assert "Traceback" not in done.stderr
    assert all(line.startswith("coopt: tiny.toml: ") for line in done.stderr.splitlines())
    assert says in done.stderr


def test_every_complaint_is_shown_at_once_and_none_as_json(coopt, written):
    wrong = written(("gpus = 64", "gpus = 0"), ('"rail-only"', '"ring"'), ("global_batch = 64", ""))
    done = coopt("solve", wrong, "--json")
    assert (done.exit_code, done.stdout, len(done.stderr.splitlines())) == (1, "", 3)


@pytest.mark.parametrize("given", ["device", "folder", "nothing", "no text"])
def test_what_is_no_file_of_text_is_refused_by_its_name(coopt, tmp_path, given):
    (tmp_path / "wild.toml").write_bytes(b"\x8b\xff\x00")
    file = {"device": Path("/dev/null"), "folder": tmp_path, "no text": tmp_path / "wild.toml"}.get(
        given, tmp_path / "none"
    )
    done = coopt("solve", file)
    assert (done.exit_code, done.stdout) == (1, "")
    assert file.name in done.stderr
    assert given != "device" or "is a device" in done.stderr


def test_what_a_missing_bound_needs_is_not_what_was_given(coopt, written):
    file = written((BOUND, ""))
    done = coopt("solve", file, "--objective", "time")
    assert (done.exit_code, "--set" in done.stderr) == (1, True)
    assert coopt("solve", file, "--set", "objective.minimize=time").exit_code == 0


@pytest.mark.parametrize("words", [["solve"], ["evaluate"], ["verify", "x.toml"], ["new"], ["validate"]])
def test_a_name_too_long_for_a_file_is_refused(coopt, written, words):
    command, *before = words
    done = coopt(command, *([written()] if before else []), "x" * 300)
    assert (done.exit_code, done.stdout) == (1, "")
    assert "name too long" in done.stderr


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "not JSON"),
        ("schema = 1", "is TOML"),
        ("", "not JSON"),
        ("[]", "holds [], needs a table"),
        ("{}", "instance: is missing"),
        ("[" * 100_000, "nested too deeply"),
        (b"\xff\xfe\x00", "not UTF-8 text"),
        (("objective", "gap", "NaN"), "objective.gap = nan"),
        (("design", "spare_gpus", '"none"'), "design.spare_gpus = 'none': "),
        (("design", "gpuz", "3"), "design.gpuz: unknown key"),
    ],
)
def test_a_bad_plan_is_refused_by_key(coopt, planned, text, says):
    """Whatever the file holds; of a plan a value is replaced."""
    instance, plan = planned
    if isinstance(text, tuple):
        table, (part, key, value) = json.loads(plan.read_text("utf-8")), text
        table[part][key] = "@"
        text = json.dumps(table).replace('"@"', value)
    plan.write_bytes(text if isinstance(text, bytes) else text.encode())
    done = coopt("verify", instance, plan)
    assert (done.exit_code, done.stdout) == (1, "")
    assert f"{plan.name}: {says}" in done.stderr


ANOTHER = {  # other GPUs, other workloads, another kind of question
    "gpus": ("gpus = 64", "gpus = 128"),
    "workloads": ('name = "training"', 'name = "other"'),
    "kind": ('fabrics = ["rail-only", "clos"]', 'fabrics = ["rail-only", "direct"]'),
}


@pytest.mark.parametrize("other", ANOTHER)
def test_the_plan_of_another_instance_is_refused_alike(coopt, planned, written, other):
    file, place = written(ANOTHER[other], name="ours.toml"), planned[0].parent
    exports = [["export", "--format", name, "-o", place / f"x{how.endings[0]}"] for name, how in FORMATS.items()]
    for command, *options in (["traffic"], ["route"], ["faults"], ["simulate"], *exports):
        done = coopt(command, file, planned[1], *options)
        assert (done.exit_code, done.stdout) == (1, "")
        assert done.stderr == "coopt: ours.toml: the plan is of another instance, needs one of this instance\n", command


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
power_mw = -2
[[site]]
name = "berlin"
power_mw = 1
[[phase]]
year = 2026
workloads = [{ name = "training" }]
[[phase]]
year = 2028
workloads = [{ name = "training", gpu = 3 }]
"""


def test_sites_and_phases_that_are_wrong_are_named(coopt, written):
    file = written()
    file.write_text(file.read_text("utf-8") + PLACES, "utf-8")
    done = coopt("solve", file)
    assert (done.exit_code, done.stdout) == (1, "")
    assert "site['oslo'].power_mw = -2" in done.stderr
    assert "phase['2028'].workloads['training'].gpu: unknown key" in done.stderr
