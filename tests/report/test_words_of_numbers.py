"""Names and numbers in sentences: in full where they are small, and nothing is lost between two quotations."""

import pytest

from coopt.instance.texts import numbers, shortened, spoken
from coopt.report.words import in_days, percent
from tests.conftest import ask


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (12.5, "12.5"),
        (20_000, "20,000"),
        (131_072, "131,072"),
        (999.96e6, "1 billion"),
        (405.91e9, "405.9 billion"),
        (15e12, "15 trillion"),
        (2e18, "2,000 quadrillion"),
    ],
)
def test_numbers_are_spoken_without_powers_of_ten(number: float, words: str) -> None:
    assert spoken(number) == words


def test_counts_of_seven_digits_are_written_in_full() -> None:
    assert numbers([1_048_576, 400.0, 133.25]) == "1048576, 400, 133.25"


def test_a_share_near_the_whole_does_not_read_as_the_whole() -> None:
    shares = {0.999: "99.9%", 0.9999: "99.99%", 0.99996: "99.996%", 1.0: "100.0%", 1.0 - 1e-12: "100.0%"}
    assert {share: percent(share) for share in shares} == shares


def test_a_day_is_one() -> None:
    workload = ask(workload__0__train_tokens=1e12).workload[0]
    assert [workload.duration(days * 86400 / workload.iterations) for days in (1, 2)] == ["1 day", "2 days"]


def test_centuries_are_days_without_powers_of_ten() -> None:
    assert [in_days(days) for days in (65.012, 100, 1234.5, 56789.1)] == [
        "65.01 days",
        "100 days",
        "1,234 days",
        "56,790 days",
    ]


def test_only_what_is_quoted_is_cut() -> None:
    between = "word " * 40
    assert shortened(f"'a' {between}'b'") == f"'a' {between}'b'"
    assert shortened(f"a NIC's {between}'b'") == f"a NIC's {between}'b'"
    assert shortened(f"'a {between}'") == f"'{f'a {between}'[:117]}...'"
    assert shortened(f"key = {'x' * 200}, needs") == f"key = {'x' * 117}... needs"
