"""Columns alone decide what is predicted: not the id of a row, its address, its notes or the name of its model."""

from dataclasses import replace
from random import Random

import pytest

from coopt.instance.software import RunSoftware
from coopt.instance.texts import InstanceError
from coopt.instance.workload import Workload
from coopt.validation.batches import batches_of, unchanged_s
from coopt.validation.published import Measurement, framework_of, read_measurements
from coopt.validation.runs import MeasuredRun, outcome_of, run_of, runs_among

LETTERS = "bcdfghjklmnpqrtvwxz"
TOLD = {"attention", "dp_mode", "schedule", "ep_overlap", "expert_tp"}


def of_columns(row: Measurement) -> bool:
    """Whether columns hold the shape; compressed attention is the catalog's alone."""
    return "gated" in row.shape and row.model != "DeepSeekV4 Flash"


def test_no_name_address_or_note_changes_a_prediction_of_a_published_row(published):
    """One row of each model, GPU, precision and framework."""
    draw = Random(7)
    published = {
        (row.model, row.gpu, row.precision, framework_of(row).name): row for row in published if of_columns(row)
    }.values()
    words = lambda: "".join(draw.choices(LETTERS, k=9))  # noqa: E731
    drawn = [replace(row, id=words(), source_url=words(), notes=words(), model=words()) for row in published]
    before, after = runs_among(published), [run_of(row) for row in drawn if isinstance(outcome_of(row), MeasuredRun)]
    assert (unchanged_s(batches_of(before)) == unchanged_s(batches_of(after))).all()
    assert [run.split for run in before] == [run.split for run in after]


def test_an_instance_with_these_keys_asks_what_the_row_ran(outcomes):
    for row, run in outcomes:
        if not isinstance(run, MeasuredRun):
            continue
        workload = run.workload
        table = workload.model_dump(exclude={"options", "software"}) | {
            "software": {"framework": framework_of(row).name, **row.software},
            "options": workload.options.model_dump(include=TOLD),
        }
        assert Workload.model_validate(table).options == workload.options


@pytest.mark.parametrize(
    ("cells", "says"),
    [
        ({"graphs": "some"}, "graphs = 'some': needs one of 'none', 'scoped' or 'full'"),
        ({"dispatcher": "nccl"}, "dispatcher = 'nccl': needs one of 'all-to-all', 'deepep', 'hybridep' or 'nvlink'"),
        ({"graph_modules": "attn+head"}, "'attn', 'mamba', 'mlp'"),
        ({"gradient_bytes": "8"}, "gradient_bytes = 8"),
        ({"framework": "nemo"}, "framework = 'nemo': needs one of fsdp, "),
        ({"flop_count": "all"}, "flop_count = 'all': needs one of hw-4/3-fullattn, "),
        ({"schedule": "gpipe"}, "schedule = 'gpipe': needs one of 1f1b, "),
        ({"compile": "maybe"}, "compile = 'maybe': needs 1 or 0"),
        ({"host_s": "soon"}, "host_s = 'soon': needs a number"),
    ],
)
def test_values_that_are_not_known_are_refused_with_those_that_are(table, dense, cells, says):
    with pytest.raises(InstanceError) as refused:
        read_measurements(table(dense | cells))
    assert says in str(refused.value)


def test_every_published_row_says_what_it_is_made_of(published):
    for row in published:
        if of_columns(row):
            RunSoftware.model_validate(row.software)
            assert {"framework", "graphs", "gradient_bytes", "state_bytes"} <= row.software.keys()
            assert not row.experts or {"dispatcher", "grouped_experts"} <= row.software.keys()
