"""What `coopt diff` lists is all that differs, whatever kind of plan is compared."""

import re
from typing import Any

import pytest

import coopt
from coopt.plan.difference import difference_of
from coopt.plan.parts import line
from coopt.plan.schema import Plan
from coopt.report.comparison import difference_report
from coopt.report.words import rendered
from tests.changes import NOTHING_BUILT
from tests.conftest import ask
from tests.kinds import QUESTIONS, solved

PARTS = {
    "shared": ["parts.0.design.fabric.planes", "parts.0.workloads.0.mapping.micro_batch"],
    "partition": ["parts.1.design.gpus", "parts.0.power_w", "parts.1.workloads.0.mapping.tp"],
    "phased": [
        "parts.0.design.fabric.switch_count",
        "parts.0.workloads.0.mapping.tp",
        "couplings.growth.1.capex_usd",
        "couplings.growth.1.bought.0.count",
    ],
    "sites": ["parts.1.design.gpus", "couplings.ring.wan.0.channels", "parts.0.workloads.0.mapping.tp"],
    "direct": [f"parts.0.links.{key}" for key in ("stages", "bundles.1.links", "phases.0.pace_links", "panel")],
}


def text_of(before: Plan, after: Plan) -> str:
    return rendered(difference_report(difference_of(before, after)))


def test_a_bill_that_alone_lists_gpus_is_said_to() -> None:
    with_gpus = coopt.solve(ask(objective={"include": ["hb", "nic", "switch", "optics", "gpu"]}))
    without = coopt.solve(ask())
    assert "first bill includes GPUs" in text_of(with_gpus, without)
    assert "second bill includes GPUs" in text_of(without, with_gpus)
    assert "bill includes GPUs" not in text_of(without, coopt.solve(ask(network__max_tiers=1)))
    assert with_gpus.cost is not None
    of_two_kinds = (*with_gpus.cost.items, line("gpu", "another", 8, 1.0, 1.0))
    mixed = with_gpus.model_copy(update={"cost": with_gpus.cost.model_copy(update={"items": of_two_kinds})})
    assert "bill includes GPUs" not in text_of(with_gpus, mixed), "a line that both have is not listed"


def test_a_time_without_a_bound_is_no_number() -> None:
    free = coopt.solve(ask(objective={"minimize": "time"}, workload__0__max_iteration_time_s=None))
    (row,) = re.findall(r"bound_s +(.*)", text_of(coopt.solve(ask()), free))
    assert row.split() == ["1", "none"]


@pytest.mark.parametrize(("kind", "path"), [(kind, path) for kind, paths in PARTS.items() for path in paths])
def test_whatever_is_built_otherwise_is_listed(kind: str, path: str) -> None:
    _, plan = solved(kind)
    table: Any = plan.model_dump(mode="json", by_alias=True)
    here: Any = table
    *parents, last = path.split(".")
    for key in parents:
        here = here[int(key)] if isinstance(here, list) else here[key]
    here[last] = "another" if isinstance(here[last], str) else here[last] + 1
    (change,) = difference_of(plan, Plan.model_validate(table)).changes
    assert change.before != change.after == here[last]
    assert "".join(change.key.split()) in "".join(text_of(plan, Plan.model_validate(table)).split())


def test_the_share_that_trains_is_compared() -> None:
    ask_with = {"cluster__gpus": 64, "availability": {"rates": "llama-3", "spare_domains": 0}}
    bare = coopt.solve(ask(**ask_with))
    spared = coopt.solve(ask(**ask_with | {"availability": {"rates": "llama-3", "spare_domains": 1}}))
    found = {one.key: one for one in difference_of(bare, spared).changes}
    name = bare.workloads[0].name
    for share in ("goodput", "promised"):
        change = found[f"workloads[{name}].uptime.{share}"]
        assert isinstance(change.before, float)
        assert isinstance(change.after, float)
        assert change.before < change.after


def test_lines_of_one_item_at_several_prices_are_one_line() -> None:
    instance, plan = solved("partition")
    bought = [item for item in plan.cost.items if item.kind == "nic"] if plan.cost else []
    assert len({item.unit_usd for item in bought}) == 2
    first, second = instance.workload
    more = first.model_copy(update={"max_iteration_time_s": first.bound_s / 2})
    other = coopt.solve(instance.model_copy(update={"workload": (more, second)}))
    found = difference_of(plan, other)
    (nic,) = (line for line in found.bill if line.kind == "nic")
    assert nic.before == sum(item.count for item in bought)
    assert plan.cost is not None
    assert other.cost is not None
    assert sum(line.usd for line in found.bill) == pytest.approx(other.cost.capex_usd - plan.cost.capex_usd)
    assert sum(line.w for line in found.bill) == pytest.approx(other.cost.power_w - plan.cost.power_w)
    assert len({(line.kind, line.item) for line in found.bill}) == len(found.bill)


@pytest.mark.parametrize("kind", QUESTIONS)
def test_every_value_has_a_key_of_its_own_and_a_plan_does_not_differ_from_itself(kind: str) -> None:
    _, plan = solved(kind)
    keys = [change.key for change in difference_of(plan, plan.model_copy(update=NOTHING_BUILT)).changes]
    assert 20 < len(keys) == len(set(keys))
    found = difference_of(plan, plan)
    assert (found.changes, found.bill, len(text_of(plan, plan).splitlines())) == ((), (), 1)


@pytest.mark.parametrize("kind", ["worst-case", "fleet"])
def test_bills_at_other_prices_are_said_to_be(kind: str) -> None:
    _, plan = solved(kind)
    table = plan.model_dump(mode="json", by_alias=True)
    table["couplings"]["outlooks"]["aim"] = "regret"
    assert "worst prices" in " ".join(text_of(plan, Plan.model_validate(table)).split())
    assert "worst prices" not in text_of(plan, plan)


def changed(plan: Plan, **values: float) -> Plan:
    """The plan with other values at keys such as `cost__tco_usd`, each that much more."""
    table: Any = plan.model_dump(mode="json", by_alias=True)
    for path, more in values.items():
        name, key = path.split("__")
        table[name][key] += more
    return Plan.model_validate(table)


def first_sentence(before: Plan, after: Plan) -> str:
    return text_of(before, after).splitlines()[0]


def test_what_is_minimised_is_told_first() -> None:
    """As totals and regrets are that differ alone."""
    less = {"cost__tco_usd": -5e4, "cost__capex_usd": 2e4, "cost__power_w": -3e3}
    for minimize, figures in (
        ("tco", ["$50.0 k less", "$20.0 k more", "3.00 kW less"]),
        ("capex", ["$20.0 k more", "3.00 kW less"]),
    ):
        plan = coopt.solve(ask(objective={"minimize": minimize}))
        said = first_sentence(plan, changed(plan, **less))
        assert re.findall(r"\$?[\d.]+ k?W? ?(?:more|less)", said) == figures
        assert minimize == "capex" or "$50.0 k less" in first_sentence(plan, changed(plan, cost__tco_usd=-5e4))
    _, plan = solved("regret")
    said = first_sentence(plan, changed(plan, objective__value=1e3, cost__capex_usd=-2e4))
    assert all(words in said for words in ("$1.00 k more regret", "$20.0 k less"))
