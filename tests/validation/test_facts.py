"""What is known beyond the rows names its sources and things that exist."""

from itertools import product

import pytest

from coopt.instance.catalog import entries
from coopt.validation.comparison import fitted_of_hardware, fitted_of_software
from coopt.validation.facts import published_facts
from coopt.validation.published import COLUMNS, value_of
from coopt.validation.settings import (
    MAX_PARAMETERS,
    OF_SOFTWARE,
    RANGES,
    Settings,
    fittable_parameters,
    hardware_values,
    reference_of,
)

FACTS = published_facts()
SOURCED = [fact for kind in ("correction", "device", "framework", "shape", "peer") for fact in getattr(FACTS, kind)]
GENERATIONS = sorted({gpu.generation for gpu in entries("gpu").values()})


def test_every_fact_has_a_source():
    for fact in SOURCED:
        assert len(fact.source) >= 6
        assert fact.tag != "M" or "recalled" in fact.source


def test_corrections_name_columns_and_need_what_they_correct_to_be_printed():
    for rule in FACTS.correction:
        assert set(rule.printed) <= set(rule.columns) <= set(COLUMNS)
        assert all(rule.columns[name] != value for name, value in rule.printed.items())


def test_devices_and_software_are_known_and_the_last_framework_takes_every_row():
    assert {device.gpu for device in FACTS.device} <= set(entries("gpu"))
    assert {device.hb_domain for device in FACTS.device} <= set(entries("hb_domain"))
    assert {framework.name for framework in FACTS.framework} == set(entries("software"))
    assert FACTS.framework[-1].where == ""


def test_words_of_notes_fill_columns_with_values_that_they_take():
    for words in FACTS.words:
        if "\\1" not in words.value:
            assert value_of(words.column, words.value) is not None


@pytest.mark.parametrize(
    "asked", FACTS.fit, ids=lambda asked: asked.software or f"{asked.generation}-{asked.precision}"
)
def test_a_fit_has_few_parameters_that_there_are(asked):
    assert 1 <= len(asked.parameters) <= MAX_PARAMETERS
    assert set(asked.parameters) <= set(RANGES)
    assert set(asked.parameters) <= set(OF_SOFTWARE if asked.software else fittable_parameters(asked.precision))


def test_at_most_four_parameters_are_fitted_for_a_generation_and_precision_and_one_for_a_framework():
    for generation, precision in product(GENERATIONS, ("16-bit", "fp8", "fp4")):
        assert len(fitted_of_hardware(generation, precision)) <= MAX_PARAMETERS
    assert all(len(fitted_of_software(name)) <= 1 for name in entries("software"))


@pytest.mark.parametrize("name", entries("gpu"))
def test_gpus_of_one_generation_share_their_efficiency_but_for_what_watts_allow(name):
    gpu = entries("gpu")[name]
    reference = reference_of(gpu.generation)
    kinds = ["16-bit", *(kind for kind in ("fp8", "fp4") if getattr(gpu.efficiency, kind))]
    names = {kind: fittable_parameters(kind) for kind in kinds}
    shared = Settings(
        hardware={(gpu.generation, kind): hardware_values(reference, kind, names[kind]) for kind in kinds}
    )
    for kind in kinds:
        expected = hardware_values(shared.gpu(gpu), kind, names[kind])
        assert hardware_values(gpu, kind, names[kind]) == pytest.approx(expected, abs=6e-4)


def test_products_of_gpus_of_one_generation_rise_with_their_watts():
    """GB200 of 1,200 W for 4,900 TFLOP/s is the reference; B200 has 1,000 W for 4,500, GB300 1,400 W for 4,900."""
    settings = Settings(hardware={("blackwell", "fp8"): {"gemm": 0.5, "hbm": 0.6, "kernel_s": 1e-5}})
    shares = {name: settings.gpu(entries("gpu")[name]).efficiency.fp8.gemm for name in ("gb200", "b200", "gb300")}
    assert shares["gb200"] == pytest.approx(0.5)
    assert shares["b200"] == pytest.approx(0.5 * (1000 / 4500 * 4900 / 1200) ** (2 / 3))
    assert shares["gb300"] == pytest.approx(0.5 * (14 / 12) ** (2 / 3))
