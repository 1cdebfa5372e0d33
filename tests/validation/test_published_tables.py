"""Tables are read whole or refused with every complaint."""

from __future__ import annotations

import pytest

from coopt.instance.base import InstanceError
from coopt.validation.published import MEASURED, NEEDED, SHAPE, read_measurements


def test_an_empty_cell_was_not_published(table, dense):
    (row,) = read_measurements(table(dense | {"micro_batch": "", "zero": ""}))
    assert row.micro_batch is None
    assert row.zero is None
    assert row.layers == 80


def test_whole_numbers_may_be_written_with_a_point(table, dense):
    (row,) = read_measurements(table(dense | {"layers": "80.0"}))
    assert row.layers == 80


@pytest.mark.parametrize("cell", ["-", "n/a", "N/A", "–"])
def test_a_dash_or_its_like_was_not_published(table, dense, cell):
    (row,) = read_measurements(table(dense | {"interleave": cell, "mfu": cell}))
    assert (row.interleave, row.mfu) == (None, None)


def test_numbers_are_read_as_tables_print_them(table, dense):
    (row,) = read_measurements(
        table(dense | {"global_batch": "1,536", "tokens_per_s_per_gpu": "16,789.5", "mfu": "41.5%"})
    )
    assert (row.global_batch, row.tokens_per_s_per_gpu, row.mfu) == (1536, 16789.5, pytest.approx(0.415))


def test_a_byte_order_mark_and_empty_lines_are_ignored(table, dense):
    file = table(dense)
    file.write_text("\ufeff" + file.read_text("utf-8") + "\n,,\n\n", "utf-8")
    assert [row.id for row in read_measurements(file)] == ["some-llama-64"]


def test_columns_nobody_asks_for_are_ignored(table, dense):
    assert len(read_measurements(table(dense | {"colour": "green"}))) == 1


def test_the_group_is_the_id_up_to_its_first_hyphen(row):
    assert row(id="dgxc-l70b-64").group == "dgxc"
    assert row(id="alone").group == "alone"


@pytest.mark.parametrize(
    ("column", "value", "says"),
    [
        ("layers", "many", "runs.csv: row some-llama-64: layers = 'many'"),
        ("layers", "80.5", "layers = '80.5'"),
        ("tp", "0", "tp = '0'"),
        ("zero", "-1", "zero = '-1'"),
        ("iter_time_s", "-3", "iter_time_s = '-3'"),
        ("iter_time_s", "nan", "iter_time_s = 'nan'"),
        ("id", "a\tb", "row 1: id = 'a\\tb'"),
        ("iter_time_s", "5e-324", "iter_time_s = '5e-324'"),
        ("gpus", "inf", "gpus = 'inf'"),
        ("id", " ", "row 1: id is empty"),
    ],
)
def test_a_value_that_is_none_is_refused(table, dense, column, value, says):
    with pytest.raises(InstanceError, match="needs") as refused:
        read_measurements(table(dense | {column: value}))
    assert says in str(refused.value)


def test_every_wrong_value_is_named(table, dense):
    with pytest.raises(InstanceError) as refused:
        read_measurements(table(dense | {"tp": "x"}, dense | {"pp": "y", "heads": "z"}))
    assert len(refused.value.complaints) == 3


def test_missing_columns_are_named(table, dense):
    with pytest.raises(InstanceError, match="columns gpus, tp ") as refused:
        read_measurements(table(without(dense, "gpus", "tp")))
    assert all(name in str(refused.value) for name in NEEDED)
    with pytest.raises(InstanceError, match="tp is missing"):
        read_measurements(table(without(dense, "tp")))


def test_a_shape_needs_no_columns_where_models_are_named(table, dense):
    assert read_measurements(table(without(dense, *SHAPE)))[0].layers is None
    with pytest.raises(InstanceError, match=f"columns {', '.join(SHAPE)} are missing"):
        read_measurements(table(without(dense, *SHAPE, "model")))


def test_any_kind_of_measurement_will_do_but_none(table, dense):
    for name in MEASURED:
        assert read_measurements(table(without(dense, "iter_time_s") | {name: "0.5"}))
    with pytest.raises(InstanceError, match="one of iter_time_s"):
        read_measurements(table(without(dense, "iter_time_s")))


def without(columns, *names):
    return {name: value for name, value in columns.items() if name not in names}


def test_a_column_that_is_there_twice_is_refused(table, dense):
    file = table(dense)
    lines = file.read_text("utf-8").splitlines()
    file.write_text(f"{lines[0]},tp\n{lines[1]},8\n", "utf-8")
    with pytest.raises(InstanceError, match="column tp"):
        read_measurements(file)


def test_a_row_with_too_many_values_is_refused(table, dense):
    file = table(dense)
    file.write_text(file.read_text("utf-8").rstrip() + ",9,9\n", "utf-8")
    with pytest.raises(InstanceError, match=r"row 1: .* 28 .* 26"):
        read_measurements(file)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "holds no measurement"),
        (b"id,layers\n", "holds no measurement"),
        (b"\xff\xfe\x00", "not UTF-8"),
        (b'id,layers\n"open', "not CSV"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path, content, says):
    file = tmp_path / "runs.csv"
    file.write_bytes(content)
    with pytest.raises(InstanceError, match=says):
        read_measurements(file)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(InstanceError, match=r"none\.csv: no such file"):
        read_measurements(tmp_path / "none.csv")
