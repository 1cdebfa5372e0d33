"""Numbers as a planner reads them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coopt.report import words

SHOWN: dict[str, dict[float, str]] = {
    "money": {
        0: "$0", 0.5: "$0.500", 999: "$999", 999.6: "$1.00 k", 1234: "$1.23 k", 94_306_304: "$94.3 M",
        999_600_000: "$1.00 B", 152_829_952: "$153 M", 2.5e9: "$2.50 B", 7.3e12: "$7,300 B", -58.5e6: "-$58.5 M",
    },
    "power": {0: "0 W", 747: "747 W", 1_440: "1.44 kW", 2_326_528: "2.33 MW"},
    "exact": {94306304.0: "94,306,304", 6.9: "6.90", 37.975: "37.975", -1.5: "-1.50", 0: "0"},
    "seconds": {
        0.0: "0 s", 11.8234: "11.82 s", 12.0: "12.00 s", 9.99996: "10.00 s", 0.0007012: "0.0007012 s",
        123456.7: "123,457 s", 1.5e-9: "1.500e-09 s", -0.25: "-0.2500 s",
    },
    "percent": {0.3829: "38.3%", 1.0: "100.0%", 0.0: "0.0%", 0.00012: "0.012%", 1e-14: "0.0%", -0.015: "-1.5%"},
}  # fmt: skip
"""Money and power have three digits, times four, bills all of them."""


@pytest.mark.parametrize("measure", SHOWN)
def test_a_measure_has_the_digits_that_a_planner_reads(measure):
    assert {number: getattr(words, measure)(number) for number in SHOWN[measure]} == SHOWN[measure]


def test_nouns_follow_their_count():
    asked = ((1, "rack"), (4096, "rack"), (2, "switch"), (0, "node"))
    assert [words.counted(*one) for one in asked] == ["1 rack", "4,096 racks", "2 switches", "0 nodes"]


@given(st.floats(1e-5, 1e14))
def test_what_is_printed_is_the_number_to_its_digits(number):
    read = float(words.digits(number, 4).replace(",", ""))
    assert read == pytest.approx(number, rel=5.001e-4)


@given(st.floats(1, 1e14))
def test_money_reads_back(usd):
    value, unit = re.fullmatch(r"\$([\d,.]+) ?([kMB]?)", words.money(usd)).groups()
    scale = {"": 1, "k": 1e3, "M": 1e6, "B": 1e9}[unit]
    assert float(value.replace(",", "")) * scale == pytest.approx(usd, rel=5.001e-3)


@given(st.floats(-1e9, 1e9))
def test_exact_reads_back(number):
    assert float(words.exact(number).replace(",", "")) == pytest.approx(number, abs=5.1e-5)
