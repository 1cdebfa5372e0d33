"""`coopt validate` and `coopt calibrate` on the measurements that ship with the project and on a few rows of them."""

import json
import re
import sys
import tomllib
from pathlib import Path

import pytest

from coopt.report import pictures
from tests.validation.own import megatron

PUBLISHED = Path(__file__).parents[2] / "benchmarks" / "published.csv"


@pytest.fixture
def some(tmp_path):
    """The header and the rows whose ids begin like that: `some("korth", "ironwood")`."""

    def written(*beginnings: str) -> Path:
        header, *lines = PUBLISHED.read_text("utf-8").splitlines()
        file = tmp_path / "runs.csv"
        file.write_text("\n".join([header, *(line for line in lines if line.startswith(beginnings))]) + "\n", "utf-8")
        return file

    return written


@pytest.fixture
def briefly(monkeypatch):
    """Fits end after a few evaluations; tests/validation/test_calibration.py has where they lead to."""
    monkeypatch.setattr("coopt.validation.calibration.FIRST", 12)
    monkeypatch.setattr("coopt.validation.fitting.AGAIN", 12)


def test_json_holds_rows_and_groups(coopt, some):
    """Dense models and mixtures of experts are told apart."""
    found = json.loads(coopt("validate", some("korth", "ironwood", "automodel"), "--json").stdout)
    assert {"rows", "groups", "evaluated", "skipped", "ranking", "memory"} <= set(found)
    assert set(found["ranking"]) == {"groups", "pairs", "in_order", "spearman", "regret_mean", "regret_max"}
    errors = {"allocated_error", "reserved_error"}
    assert set(found["memory"]) == {"stated", "refused", "ran_out", "accepted_that_ran_out"} | errors
    assert found["evaluated"] + found["skipped"] == len(found["rows"])
    assert found["skipped"] >= 11
    assert all({"id", "measured_s", "predicted_s", "error", "status", "why"} <= set(row) for row in found["rows"])
    assert all({"name", "n", "mean_abs_error", "max_abs_error"} <= set(group) for group in found["groups"])
    assert {group["name"]: group["n"] for group in found["architecture"]}["mixture of experts"] >= 1
    assert sum(group["n"] for group in found["architecture"]) == found["evaluated"]


def test_the_report_names_groups_worst_rows_and_reasons(coopt, some):
    done = coopt("validate", some("korth", "ironwood", "automodel", "dgxc-l70b-v25.02.02"))
    assert done.exit_code == 0
    assert re.search(r"^\d+ of \d+ rows predicted, ", done.stdout)
    titles = ("By source", "By hardware", "By architecture", "largest errors", "Skipped")
    said = " ".join(done.stdout.split())
    for words in (*titles, "korth", "hopper fp8", "TPU7x", "in the measured order", "Calculon"):
        assert words in said
    one = coopt("validate", some("dgxc-l70b-v25.02.02-H100-bf16-64,")).stdout
    for words in ("1 of 1 row ", "row with the largest error", "1 row rests"):
        assert words in one


def test_claims_over_published_mappings_are_printed_where_they_are_asked_for(coopt, some):
    table = some("mbridge-26.02-qwen3-30b-a3b-B200-mxfp8-8,")
    assert json.loads(coopt("validate", table, "--json").stdout)["curse"] is None
    curse = json.loads(coopt("validate", table, "--curse", "--json").stdout)["curse"]
    assert {"n", "median", "p90", "over_15", "groups", "rows"} <= set(curse)
    shown = coopt("validate", table, "--curse").stdout.partition("Predicted speed-up of")[2]
    assert f"{100 * curse['median']:.1f}%" in shown


def test_a_limit_on_the_mean_error_of_groups_decides_the_exit_code(coopt, some):
    for limit, code, says in (("50", 0, "No source has"), ("0.0001", 5, "Mean error above")):
        done = coopt("validate", some("korth"), "--fail-over", limit)
        assert (done.exit_code, says in done.stdout) == (code, True)
        assert coopt("validate", some("korth"), "--fail-over", limit, "--json").exit_code == code


def test_rows_that_cannot_be_predicted_are_no_failure_unless_there_is_a_limit(coopt, some, tmp_path):
    table, picture = some("ironwood"), tmp_path / "picture.png"
    for words, code, says in (
        ((), 0, "11 rows"),
        (("--fail-over", "1"), 5, "within 1.0%."),
        (("--fail-over", "1", "--json"), 5, '"skipped": 11'),
        (("--plot", picture), 1, "(accelerator TPU7x"),
    ):
        done = coopt("validate", table, *words)
        assert (done.exit_code, says in done.output) == (code, True), done.output
    assert not picture.exists()


def test_wrong_values_are_refused_with_row_and_column(coopt, some):
    file = some("korth")
    file.write_text(file.read_text("utf-8").replace(",51200.0,", ",many,", 1), "utf-8")
    done = coopt("validate", file)
    assert done.exit_code == 1
    assert "runs.csv: row korth-t5-22B-ful: vocab = 'many': needs a number" in done.stderr


def test_a_picture_has_times_and_their_ratio_with_plain_ticks(coopt, some, tmp_path, monkeypatch):
    kept, draw = [], pictures.picture
    monkeypatch.setattr(pictures, "picture", lambda figure, *more: kept.append(figure) or draw(figure, *more))
    for file in (tmp_path / "picture.png", tmp_path / "picture.svg"):
        assert f"picture written to {file}" in coopt("validate", some("korth", "mpt"), "--plot", file).stderr
        assert file.stat().st_size > 5000
    times, ratios = kept[0].axes
    assert times.get_title(loc="left").startswith("26 runs, median error ")
    assert ratios.get_ylabel() == "predicted / measured"
    assert ratios.get_ylim()[0] < 0.9 < 1.1 < ratios.get_ylim()[1]
    labels = [tick.get_text() for axes in (times, ratios) for tick in axes.get_xticklabels(which="both")]
    assert any(labels)
    assert all(float(label) >= 0 and "e" not in label for label in labels if label)


def test_a_fit_without_scipy_says_what_to_install(coopt, some, monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy", None)
    done = coopt("calibrate", some("korth"))
    assert done.exit_code == 1
    assert done.stderr.endswith("needs `pip install 'coopt[fit]'`\n")


@pytest.mark.usefixtures("briefly")
def test_a_fit_prints_values_errors_and_lines_for_the_catalog(coopt, some, tmp_path):
    lines = tmp_path / "lines.toml"
    done = coopt("calibrate", some("korth", "sc21"), "--generation", "ampere", "-o", lines)
    assert done.exit_code == 0
    assert "3 parameters" in done.stdout
    (table,) = tomllib.loads(lines.read_text("utf-8"))["gpu"]
    assert set(table["efficiency"]) == {"gemm", "gemm_k0", "send_s"}
    assert "4 published rows" in table["sources"][0]["source"]
    assert lines.read_text("utf-8").strip() in done.stdout
    assert "to 4 rows" in done.stderr


@pytest.mark.usefixtures("briefly")
def test_a_fit_as_json_holds_what_is_worth_on_rows_not_used(coopt, some, tmp_path):
    words = ("--generation", "ampere", "--parameters", "gemm", "--rows", "sc21-*", "--rows", "korth-*", "--json")
    done = coopt("calibrate", some("korth-t5-1", "sc21-t1-1"), *words, "-o", tmp_path / "lines.toml")
    assert done.exit_code == 0
    assert "in turn" in (tmp_path / "lines.toml").read_text("utf-8")
    (fit,) = json.loads(done.stdout)["fits"]
    assert fit["groups"] == ["sc21", "korth"]
    assert [parameter["name"] for parameter in fit["parameters"]] == ["gemm"]
    assert fit["leave_one_group_out"]["n"] == fit["fitted"]["n"] == 8
    assert fit["held_out"] is None


@pytest.mark.parametrize(
    ("rows", "words", "says"),
    [("ironwood", ("--generation", "hopper"), "too few rows"), ("korth", ("--rows", "zzz*"), "--rows = 'zzz*'")],
)
def test_a_fit_without_rows_is_refused(coopt, some, rows, words, says):
    done = coopt("calibrate", some(rows), *words)
    assert (done.exit_code, says in done.stderr) == (1, True)


def test_a_log_of_ones_own_moves_values_and_names_the_run_to_make_next(coopt, tmp_path):
    log, table = tmp_path / "mine-64.log", tmp_path / "rows.csv"
    log.write_text(megatron(recompute_granularity="full", sequence_parallel=True), "utf-8")
    done = coopt("calibrate", log, "--set", "gpu=H100", "--table", table)
    assert done.exit_code == 0
    assert "1 run of " in done.stdout
    assert "run to measure next" in done.stdout
    assert tomllib.loads(done.stdout[done.stdout.index("[[gpu]]") :])["gpu"][0]["generation"] == "hopper"
    again = coopt("calibrate", table, "--posterior", "--json")
    (posterior,) = json.loads(again.stdout)["posteriors"]
    assert posterior["rows"] == ["mine-64"]
    assert all(one["low"] < one["after"] < one["high"] for one in posterior["parameters"])
    assert coopt("validate", table).exit_code == 0


def test_nothing_is_offered_that_cannot_have_run_so(coopt, tmp_path):
    log = tmp_path / "mine.log"
    unlike = megatron((8.6,) * 5, recompute_granularity="full", sequence_parallel=True)
    for text, says in ((megatron(), " of 79.6 GiB"), (unlike, "at a physical limit")):
        log.write_text(text, "utf-8")
        done = coopt("calibrate", log, "--set", "gpu=H100")
        assert (done.exit_code, says in " ".join(done.stdout.split())) == (0, True)
        assert "no new values" in done.stdout
        assert "[[gpu]]" not in done.stdout


def test_a_log_that_leaves_the_gpu_out_says_how_to_add_it(coopt, tmp_path):
    log = tmp_path / "mine-64.log"
    log.write_text(megatron(), "utf-8")
    done = coopt("calibrate", log)
    assert (done.exit_code, "mine-64: GPU not published)" in done.stderr) == (1, True)
    assert coopt("calibrate", log, "--set", "gpu").exit_code == 2


def test_catalog_files_of_ones_own_name_models_gpus_and_software(coopt, tmp_path):
    own, table = tmp_path / "own.toml", tmp_path / "runs.csv"
    sizes = {"layers": 32, "hidden": 4096, "heads": 32, "kv_heads": 8, "head_dim": 128, "ffn": 14336}
    shape = "\n".join(f"{key} = {size}" for key, size in (sizes | {"vocab": 128256, "seq": 8192}).items())
    own.write_text(
        '[[gpu]]\nextends = "h100-sxm"\nname = "h100-slow"\nefficiency = { gemm = 0.5 }\n'
        f'[[model]]\nname = "ours"\ngated = true\n{shape}\n',
        "utf-8",
    )
    head = "id,model,gpu,gpus,tp,pp,global_batch,micro_batch,precision,recompute,iter_time_s\n"
    rows = [f"a-{gpu},ours,{gpu},16,2,1,128,1,bf16,none,12.0" for gpu in ("H100", "h100-slow")]
    table.write_text(head + "\n".join(rows) + "\n", "utf-8")
    usual, slow = json.loads(coopt("validate", table, "--catalog", own, "--json").stdout)["rows"]
    assert slow["gpu"] == "h100-slow"
    assert slow["predicted_s"] > 1.2 * usual["predicted_s"]
    left_out = json.loads(coopt("validate", table, "--json").stdout)
    assert [row["status"] for row in left_out["rows"]] == ["skipped", "skipped"]
    assert "none.toml" in coopt("validate", table, "--catalog", "none.toml").stderr
