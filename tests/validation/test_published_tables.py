"""Tables are read whole or refused with every complaint."""

import pytest

from coopt.instance.texts import InstanceError
from coopt.validation.published import MEASURED, NEEDED, SHAPE, read_measurements


@pytest.mark.parametrize(
    ("column", "cell", "read"),
    [
        *(("interleave", cell, None) for cell in ("", "-", "n/a", "N/A", "–")),
        *(("pipeline_layout", cell, "") for cell in ("-", "n/a")),
        ("layers", "80.0", 80),
        ("global_batch", "1,536", 1536),
        ("tokens_per_s_per_gpu", "16,789.5", 16789.5),
        ("mfu", "41.5%", 0.415),
    ],
)
def test_cells_are_read_as_tables_print_them(table, dense, column, cell, read):
    """A dash or its like was not published; columns that nobody asks for are ignored, as a byte order mark is."""
    file = table(dense | {column: cell, "colour": "green"})
    file.write_text("\ufeff" + file.read_text("utf-8") + "\n,,\n\n", "utf-8")
    (row,) = read_measurements(file)
    assert getattr(row, column) == (read if read is None else pytest.approx(read))
    assert (row.id, row.group) == ("some-llama-64", "some")


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
    """A shape needs none where models are named; any kind of measurement will do but none."""
    with pytest.raises(InstanceError, match="columns gpus, tp ") as refused:
        read_measurements(table(without(dense, "gpus", "tp")))
    assert all(name in str(refused.value) for name in NEEDED)
    assert read_measurements(table(without(dense, *SHAPE)))[0].layers is None
    for name in MEASURED:
        assert read_measurements(table(without(dense, "iter_time_s") | {name: "0.5"}))
    for gone, says in (
        (("tp",), "tp is missing"),
        ((*SHAPE, "model"), f"columns {', '.join(SHAPE)} are missing"),
        (("iter_time_s",), "one of iter_time_s"),
    ):
        with pytest.raises(InstanceError, match=says):
            read_measurements(table(without(dense, *gone)))


def without(columns, *names):
    return {name: value for name, value in columns.items() if name not in names}


def test_a_column_that_is_there_twice_and_a_row_with_too_many_values_are_refused(table, dense):
    file = table(dense)
    text = file.read_text("utf-8")
    head, row = text.splitlines()
    for wrong, says in ((f"{head},tp\n{row},8\n", "column tp"), (f"{text.rstrip()},9,9\n", r"row 1: .* 28 .* 26")):
        file.write_text(wrong, "utf-8")
        with pytest.raises(InstanceError, match=says):
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
