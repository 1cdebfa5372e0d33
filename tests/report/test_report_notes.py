"""What a reader has to know is told with its figures and keys, and only where it is true."""

import io
import tomllib
from pathlib import Path
from typing import Any

import pytest

import coopt
from coopt.instance.catalog import find
from coopt.instance.couplings import Robust
from coopt.instance.evidence import longer
from coopt.instance.hardware import Optic, Switch
from coopt.instance.schema import Instance
from coopt.network.orders import costs_by_length, networks_of_design, networks_of_plan, order_notes_of_parts
from coopt.network.parts import cage_note
from coopt.network.plan_networks import baseline_of
from coopt.plan.couplings import PriceScenario
from coopt.plan.parts import WorkloadPlan
from coopt.plan.schema import Plan
from coopt.report.assumptions import rests_on
from coopt.report.building import building_notes
from coopt.report.catalog import STANDS, UNKNOWN, price_origins
from coopt.report.comparison import network_sentence
from coopt.report.explanation import verdict_headline
from coopt.report.facts import training_text
from coopt.report.faults import faults_report
from coopt.report.notes import (
    counting_sentence,
    first_sentences,
    idle_note,
    kept_free,
    margin_note,
    memory_note,
    reading_notes,
    remarks,
    study_notes,
    tp_across,
    turns_text,
)
from coopt.report.plan import plan_report
from coopt.report.screen import plan_screen
from coopt.report.time_errors import accuracy, certainty
from coopt.report.words import rendered
from coopt.solving.without_parts import plan_faults
from coopt.verifier.checks.verdict import SOLVERS_WORD, Check, UndecidedRival, Verdict
from tests.changes import with_part
from tests.conftest import ask, switch
from tests.kinds import solved

SLOW = {"workload__0__max_iteration_time_s": 100.0}
LARGER = {"network__hb_domains": "hgx-h100-8", "workload__0__max_iteration_time_s": 10.0}
NVL72: dict[str, Any] = {
    "network__hb_domains": "gb200-nvl72",
    "network__fabrics": "rail-only",
    "workload__0__max_iteration_time_s": 10.0,
}
TWIN_GPUS: dict[str, Any] = {
    "cluster__gpu": "gb200", "cluster__gpus": 576, "network__hb_domains": "gb200-nvl72", "network__nics": "cx8-800g",
    "network__nic_planes": 4, "network__switches": "102t", "network__optics": "800g-dr4", "network__fabrics": "clos",
    "network__oversubscription": 1.0, "workload__0__global_batch": 576, "workload__0__max_iteration_time_s": 10.0,
}  # fmt: skip


def text(**changes: object) -> str:
    instance = ask(**changes)
    plan = coopt.solve(instance)
    return "\n".join(reading_notes(instance, plan.parts))


def screen(**changes: object) -> str:
    instance = ask(**changes)
    return " ".join(rendered(plan_screen(instance, coopt.solve(instance))).split())


def run_of(instance: Instance, **changes: object) -> WorkloadPlan:
    (run,) = coopt.solve(instance).workloads
    return run.model_copy(update=changes)


def test_what_counts_and_what_does_not() -> None:
    for include, counted in ((["hb", "nic", "switch", "optics"], False), (["hb", "nic", "gpu"], True)):
        before, _, after = text(objective={"include": include}).partition("does not count")
        assert ("GPUs that train" in before, "GPUs that train" in after) == (counted, not counted)


def test_labour_for_retrofits_is_told_of_the_bill() -> None:
    instance, _ = solved("phased")
    assert "labour for retrofits" in counting_sentence(instance)
    assert "labour" not in counting_sentence(ask())
    assert "What stands" not in counting_sentence(ask())


@pytest.mark.parametrize(
    ("network", "counted"),
    [
        ({"network__optics": "400g-sr4"}, False),
        ({"network__optics": "400g-sr4", "network__fibre": "om4-mtp-8"}, True),
        ({"network__optics": "400g-199"}, None),  # with half a cable in its price
    ],
)
def test_fibre_between_modules_is_counted_or_left_out(network: dict[str, Any], counted: bool | None) -> None:
    sentence = counting_sentence(ask(**network))
    held, left_out = sentence.split(". It does not count ")
    assert ("fibre" in held, "fibre between modules" in left_out) == (counted is True, counted is False)


def test_what_stands_counts_with_its_power_alone() -> None:
    instance = coopt.load("instances/questions/given.toml")
    plan = coopt.solve(instance)
    assert plan.cost is not None
    assert counting_sentence(instance).endswith("not its price.")
    assert {origin.usd for origin in price_origins(instance, plan.cost.items)} == {STANDS}


def test_fibre_of_a_phase_has_the_price_of_the_catalog_by_the_factor_of_the_phase() -> None:
    changed = {"network.optics": "400g-sr4", "network.fibre": "om4-mtp-8"}
    question = coopt.load("instances/phased-128.toml", changed)
    plan = coopt.solve(question, reasons=False)
    assert plan.cost is not None
    origins = {origin.item: origin.usd for origin in price_origins(question, plan.cost.items)}
    for name in ("om4-mtp-8", "om4-mtp-8 (m)"):
        assert origins[f"{name}, 2028"] == f"0.5 times this price: {origins[f'{name}, 2026']}"


def test_what_stands_has_its_origin_where_nothing_like_it_is_listed() -> None:
    table = tomllib.loads(Path("instances/questions/given.toml").read_text("utf-8"))
    lists = {"hb_domains": "hgx-h100-8", "nics": "cx7-400g", "switches": "64x400g", "optics": "400g-199"}
    (workload,) = table["workload"]
    bounded = [{**workload, "max_iteration_time_s": 100.0}]
    question = coopt.load({**table, "workload": bounded, "network": {**lists, "fabrics": "clos"}})
    plan = coopt.solve(question)
    assert plan.cost is not None
    origins = price_origins(question, plan.cost.items)
    assert [origin.usd for origin in origins if origin.item == "qm9700"] == [STANDS]
    assert not any(UNKNOWN in origin for origin in origins)


def test_all_that_rests_on_the_solver_is_told() -> None:
    inside = Check(name="tp-inside-source", claimed=True, recomputed=SOLVERS_WORD, tolerance=None, ok=True, why="")
    rival = UndecidedRival(kind="capex", value=9e5, gap=0.1)
    for gap, checks, said in (
        (0.0, (), "the claim that the gap is 0.0% rests on"),
        (0.0, (inside,), "TP groups inside HB domains and the claim that the gap is 0.0% rest on"),
        (None, (inside,), "TP groups inside HB domains rests on"),
    ):
        text = verdict_headline(Verdict(accepted=True, checks=checks, gap=gap, undecided=rival))
        assert said in text
        assert ["gap is 10.0%" in text, "($900 k or more)" in text] == [True, True]


def test_interruptions_count_in_the_days_of_training_and_not_in_an_iteration() -> None:
    for changes, ends in ((SLOW, ""), ({"workload__0__train_tokens": 1e12, **SLOW}, ", if nothing fails.")):
        failing = ask(**changes, availability={"rates": "llama-3"})
        for instance, end in ((failing, ""), (ask(**changes), ends)):
            (run,) = coopt.solve(instance).workloads
            (said,) = certainty(instance, [run])
            assert said.endswith(end or "(95%).")
            is_slower = run.promised_s > run.iteration_time_s
            assert is_slower == (instance is failing)
            workload = instance.workload[0]
            longest = run.promised_s if ends else run.iteration_time_s
            least_s = longest * (1.0 + longer(run.error or 0.0, 0.8))
            assert (workload.duration(least_s) if ends else f"{least_s:.4g}"[:4]) in said


def test_what_a_plan_survives_is_told_on_the_first_screen() -> None:
    instance, plan = solved("worst-case")
    told = {fact.name: fact.shown for fact in rests_on(instance, plan)}
    assert ", 1.5 times as" in told["Losses"]
    instance, plan = solved("sites")
    survives = instance.model_copy(update={"robust": Robust(survive=("channel",))})
    assert plan.couplings.ring is not None
    for ring, shown in ((plan.couplings.ring, True), (plan.couplings.ring.model_copy(update={"wan": ()}), False)):
        built = plan.model_copy(update={"couplings": plan.couplings.model_copy(update={"ring": ring})})
        told = {fact.name: fact.shown for fact in rests_on(survives, built)}
        assert ("any one channel" in told.get("Losses", "")) == shown


@pytest.mark.parametrize("kind", ["partition", "phased", "sites"])
def test_of_several_networks_it_is_told_that_no_alternative_is_known(kind: str) -> None:
    def told(instance: Instance, plan: Plan) -> str | None:
        return {fact.name: fact.shown for fact in rests_on(instance, plan)}.get("Prices")

    instance, plan = solved(kind)
    shown = told(instance, plan) or ""
    listed = any(len(entries) > 1 for entries in instance.lists.values())
    assert ["not known" in shown, "no list leaves" in shown] == [listed, not listed]
    assert "coopt explain" in shown
    assert len(shown) <= 66  # one line beside the longest name
    assert told(instance, plan.model_copy(update={"status": "feasible"})) is None
    timed = plan.objective.model_copy(update={"kind": "time"})
    assert told(instance, plan.model_copy(update={"objective": timed})) is None
    assert not any("not known" in (told(*solved(other)) or "") for other in ("fleet", "regret", "direct", "switched"))
    assert told(*solved("direct")) is None  # the best of either kind is told elsewhere


def test_what_prices_may_do_to_a_plan_of_least_regret_is_told() -> None:
    instance, plan = solved("regret")
    assert plan.couplings.outlooks is not None

    def told(*regrets: float) -> str:
        factors = ({"nic": 2.0, "hb": 1.0}, {"nic": 0.5, "hb": 1.0})
        turns = tuple(
            PriceScenario(factors=of, value=9.0 + regret, best=9.0) for of, regret in zip(factors, regrets, strict=True)
        )
        outlooks = plan.couplings.outlooks.model_copy(update={"turns": turns})  # type: ignore[union-attr]
        built = plan.model_copy(update={"couplings": plan.couplings.model_copy(update={"outlooks": outlooks})})
        (said,) = [fact.shown for fact in rests_on(instance, built) if fact.name == "Prices"]
        return said

    assert "at nic x 0.5" in told(1.0, 3.0)
    assert "$3.00 cheaper" in told(1.0, 3.0)
    assert "no plan is cheaper" in told(0.0, 0.0)


def test_nothing_is_kept_free_of_times_where_none_has_a_bound() -> None:
    instance = ask(margin={"ports": 0.0}, objective={"minimize": "time"}, workload__0__max_iteration_time_s=None)
    assert not kept_free(instance, instance.kept_margin)
    assert not margin_note(instance, coopt.solve(instance))


def test_tp_groups_across_domains_have_their_reason_each() -> None:
    one = ask().workload[0].model_dump(mode="json")
    rows = [one | {"name": "free", "allow_tp_across": True}, one | {"name": "forced", "allow_tp_across": None}]
    instance = ask(workload=rows)
    runs = [run_of(ask(), name=row["name"], placement={"tp": (4, 2)}) for row in rows]
    forced, free = tp_across(instance, runs, none_inside=True)
    assert [" of forced span" in forced, "because no plan" in forced] == [True, True]
    assert [" of free span" in free, "allow_tp_across = false" in free] == [True, True]
    (only,) = tp_across(instance, runs, none_inside=False)
    assert "of free, forced span" in only


def test_a_figure_in_another_unit_is_named_with_the_range_of_the_catalog() -> None:
    """Terabytes in place of gigabytes, thousands of dollars; a price of 0, and figures like the catalog's, are none."""
    ours = {"extends": "h200", "name": "ours", "hbm_gb": 0.192, "usd": 0}
    optic = {"extends": "400g-sr4", "name": "quoted", "usd": 6_000_000, "w": 12}
    instance = ask(cluster__gpu=ours, network__optics=["400g-sr4", optic], network__switches="64x400g")
    told = [one for one in first_sentences(instance, coopt.solve(instance)) if "its unit" in one]
    expected = [("hbm_gb = 0.192", "42.95 to 298.01 (10^9 bytes)"), ("usd = 6,000,000", "136 to 9,000 (USD)")]
    for said, figures in zip(told, expected, strict=True):
        assert all(figure in said for figure in figures)
    for limit, far in ((5.0, False), (700_000.0, True)):
        instance = ask(limits={"power_mw": limit})
        said = " ".join(first_sentences(instance, coopt.solve(instance)))
        assert ("limits.power_mw = 700,000" in said) == ("its unit" in said) == far


def test_a_limit_on_power_that_leaves_out_what_draws_most_says_so_first() -> None:
    whole = {"include": ["gpu", "host", "hb", "nic", "switch", "optics"]}
    drawn_mw = coopt.solve(ask(objective=whole, network__hb_domains="hgx-h100-8")).cost.power_w / 1e6
    for limit_mw, objective, warned in ((0.99, None, True), (1.01, None, False), (1.0, whole, False)):
        asked = {"objective": objective} if objective else {}
        instance = ask(limits={"power_mw": drawn_mw * limit_mw}, network__hb_domains="hgx-h100-8", **asked)
        said = " ".join(first_sentences(instance, coopt.solve(instance)))
        assert (f"{drawn_mw:.4g} MW" in said) == ('"gpu" and "host"' in said) == warned
    bare = {"host_w_per_gpu": None, "host_usd_per_gpu": None, "extends": "hgx-h100-8", "name": "bare"}
    instance = ask(limits={"power_mw": drawn_mw / 2}, network__hb_domains=bare)
    said = " ".join(first_sentences(instance, coopt.solve(instance)))
    assert ('"gpu"' in said, '"host"' in said) == (True, False)


def test_a_site_that_cannot_feed_servers_which_are_left_out_says_so_first() -> None:
    counted = ["gpu", "hb", "nic", "switch", "optics"]
    for include, warned in ((counted, True), ([*counted, "host"], False)):
        instance = coopt.load("instances/questions/two-sites.toml", {"objective.include": include})
        plan = coopt.solve(instance, reasons=False)
        said = " ".join(first_sentences(instance, plan))
        assert ("of 2.60 MW" in said) == ('"host"' in said) == warned
        if warned:
            (site,) = plan.couplings.sites
            drawn_w = site.facility_w + 1.2 * 2048 * 552.5
            assert f"cooling, north draws {drawn_w / 1e6:.2f} MW of" in said


@pytest.mark.parametrize(
    ("changes", "figures"),
    [
        ({"network__switches": [{**switch(8, 900), "port_gbit_s": 800, "modes": [{"radix": 16, "port_gbit_s": 400}]}],
          "cluster__gpus": 256, "network__fabrics": "clos", **LARGER}, ["800 Gbit/s", "2 ports"]),
        ({"cluster__gpus": 512, "network__switches": "qm9700", "network__fabrics": "rail-only", **LARGER},
         ["qm9700 of tier 1 has only 32 cages", "800 Gbit/s", "2 ports"]),
        (TWIN_GPUS, ["102t of tier", "has only 64", "1600 Gbit/s", "8 ports", "for 800g-dr4 (4 links on 1"]),
    ],
    ids=["modes", "twin ports", "breakout"],
)  # fmt: skip
def test_a_box_with_fewer_cages_than_modules_is_named(changes: dict[str, Any], figures: list[str]) -> None:
    """Modules that break out say that their fibres are split; a free interconnect is named."""
    found, plain = text(**changes), text(network__hb_domains="hgx-h100-8")
    assert all(figure in found for figure in figures)
    assert [words in plain for words in ("Not orderable", "splitter", "counts as $0")] == [False, False, True]
    assert "counts as $0" not in text(network__hb_domains="h100-hb16")


def test_modules_of_both_sides_of_a_leaf_are_counted_in_whole_cages() -> None:
    """Three links down and one up take two and one cage of two ports each, of which a box has two."""
    table = {"gbit_s": 400, "reach_m": 60, "usd": 1, "w": 1}
    near, far = (Optic.model_validate(table | {"name": name}) for name in ("near", "far"))
    box = Switch.model_validate(switch(4, 900) | {"cages": 2})
    assert ": 3 are needed" in str(cage_note(box, 1, 400.0, [(3, near), (1, far)]))
    assert "Buy 2 modules" in str(cage_note(box, 1, 400.0, [(3, near), (1, near)]))
    assert cage_note(box, 1, 400.0, [(1, near), (1, far)]) is None
    with pytest.raises(ValueError, match=r"cages = 3: .* radix = 8"):
        ask(network__switches=[switch(8, 1) | {"cages": 3}])
    known, sold = find("optic", "400g-sr4"), find("switch", "qm9700")
    assert isinstance(known, Optic)
    assert isinstance(sold, Switch)
    found = str(cage_note(sold, 1, 400.0, [(64, known)]))  # the catalog has modules that fill a cage
    assert all(words in found for words in ("Buy 32 modules", "800g-sr8"))


def test_a_box_at_one_rate_has_the_cages_of_the_box() -> None:
    """A rail of 128 ends fills a switch, which is sold with 64 cages of 800 Gbit/s."""
    changes = {"network__switches": "128x400g", "network__optics": "400g-sr4", "network__fabrics": "rail-only"}
    instance = ask(**changes, **LARGER, cluster__gpus=1024, workload__0__global_batch=1024, network__nics="cx7-400g")
    plan = coopt.solve(instance)
    assert plan.design is not None
    said = " ".join(order_notes_of_parts(instance, {"network": plan.design}))
    assert "Buy 64 modules" in said


def test_the_hall_is_told_with_cables_that_are_too_long_for_their_optics() -> None:
    changes = LARGER | {"cluster__gpus": 256, "network__fabrics": "clos"}
    found = text(**changes)
    assert all(figure in found for figure in ("8 racks", "by 3 m", "below tier 1"))
    short = {"name": "short", "gbit_s": 400, "reach_m": 6, "usd": 1, "w": 1}
    near = {"network__optics": [short], "network__link_reach_m": [6.0, 6.0, 6.0]}
    assert "(6 m) is too short" not in found
    assert "(6 m) is too short" in text(**changes, **near)
    assert "(6 m) is too short" not in text(**changes, **near, network__hall={"rise_m": 0.1, "rack_pitch_m": 0.1})


def _found(instance: Instance, part: str) -> list[str]:
    plan = coopt.solve(instance)
    return [note for note in (*first_sentences(instance, plan), *remarks(instance, plan)) if part in note]


TWIN_PORTS: dict[str, Any] = LARGER | {
    "network__nics": "cx7-400g",
    "network__switches": "qm9700",
    "network__optics": ["400g-sr4", "800g-sr8", "800g-dr8"],
    "network__fabrics": "clos",
    "network__oversubscription": 1.0,
    "network__buildable": True,
}


def test_what_cables_as_long_as_in_the_hall_save_is_told_with_the_key() -> None:
    changes = TWIN_PORTS | {"cluster__gpus": 512, "workload__0__global_batch": 512}
    instance, laid = ask(**changes), ask(**changes, network__cables="hall")
    plan, best = coopt.solve(instance), coopt.solve(laid)
    assert plan.design is not None
    costs = costs_by_length(instance, networks_of_design(instance, plan.design))
    assert costs is not None
    (now,), (then,) = costs.now, costs.then
    assert now == plan.cost
    # spines are 800g-dr8 at both ends, though near enough for 800g-sr8
    assert then.capex_usd == plan.cost.capex_usd - 512 * 400
    assert best.cost.capex_usd <= then.capex_usd
    (note,) = _found(instance, "hall")
    assert "cost $205 k less (network.cables = 'hall')" in note
    assert not _found(laid, "hall")
    told = ask(**changes, network__link_reach_m=[50.0, 100.0, 500.0])
    assert "link_reach_m" in _found(told, "hall")[0]


def test_what_cables_as_long_as_in_the_hall_save_is_told_of_islands() -> None:
    """Each island stands in the hall as if it were alone."""
    table = ask(**TWIN_PORTS, cluster__gpus=1024, sharing={"mode": "partition"}).model_dump(by_alias=True)
    (workload,) = table["workload"]
    asked = [workload | {"name": name, "global_batch": 512, "gpus": [512]} for name in ("a", "b")]
    instance = Instance.model_validate(table | {"workload": asked})
    plan = coopt.solve(instance, reasons=False)
    costs = costs_by_length(instance, networks_of_plan(instance, plan))
    assert costs is not None
    assert sum(cost.capex_usd for cost in costs.now) == plan.cost.capex_usd
    best = coopt.solve(Instance.model_validate(table | {"workload": asked}).having(network={"cables": "hall"}))
    assert best.cost.capex_usd <= plan.cost.capex_usd - costs.saved("capex") < plan.cost.capex_usd
    (note,) = [note for note in remarks(instance, plan) if "hall" in note]
    assert "cost $410 k less (network.cables = 'hall'" in note
    phases = [{"year": 2026, "gpus": 512, "workloads": ["a"]}, {"year": 2028, "gpus": 1024, "workloads": []}]
    grown = Instance.model_validate(table | {"workload": asked, "phase": phases})
    assert [note for note in remarks(grown, coopt.solve(grown, reasons=False)) if "cables = 'hall'" in note]


def test_what_cables_as_long_as_in_the_hall_save_is_told_of_networks_that_grow() -> None:
    phases = [{"year": 2026, "gpus": 256}, {"year": 2028, "gpus": 512}]
    changes = TWIN_PORTS | {"cluster__gpus": 512, "workload__0__global_batch": 512, "phase": phases}
    plan = coopt.solve(ask(**changes), reasons=False)
    (note,) = [note for note in remarks(ask(**changes), plan) if "hall" in note]
    assert "network.cables = 'hall'" in note
    by_length = coopt.solve(ask(**changes, network__cables="hall"), reasons=False)
    assert by_length.cost.capex_usd <= plan.cost.capex_usd - 512 * 400


def test_a_rack_that_is_cabled_to_as_many_leaves_as_it_has_gpus_is_told() -> None:
    small = [switch(8, 900)]
    changes = NVL72 | {"network__hb_domains": "gb200-nvl72", "cluster__gpus": 144 * 8, "network__switches": small}
    changes |= {"workload__0__global_batch": 144 * 8, "network__max_tiers": 2}
    assert "72 leaf switches" in text(**changes)
    assert "is cabled to" not in text(**LARGER, network__fabrics="rail-optimized", cluster__gpus=256)


def test_a_nic_without_an_ethernet_port_of_the_rate_of_its_links_is_told() -> None:
    wide = TWIN_PORTS | {"network__nics": "cx8-800g", "network__optics": "800g-dr8", "cluster__gpus": 64}
    (note,) = _found(ask(**(wide | {"network__switches": "64x800g"})), "Ethernet port")
    assert "400 Gbit/s at most" in note
    assert "network.nic_planes = 2" in note
    planes = {"network__switches": "51t", "network__nic_planes": 2}
    assert not _found(ask(**(wide | planes)), "Ethernet port")
    infiniband = {"network__switches": "144x800g", "network__optics": "800g-dr4"}
    assert not _found(ask(**(wide | infiniband)), "Ethernet port")


def test_what_no_bill_has_of_a_network_that_stands_is_told() -> None:
    tier = {"ports": 64, "down": 32, "switch": "qm9700", "optic": "800g-sr8"}
    stands = {"id": "ours", "domains": 32, "gpus_per_domain": 8, "fabric": "clos", "nic": "cx7-400g"} | {
        "tiers": [tier | {"optic_below": "400g-sr4"}, tier | {"down": 64}]
    }
    changes = TWIN_PORTS | {"cluster__gpus": 512, "workload__0__global_batch": 512}
    grown = ask(**changes, existing=[stands])
    (said,) = _found(grown, "existing")
    assert "(2 tiers, clos) is rewired" in said
    assert "fibre" not in said
    fibred = ask(**changes, existing=[stands], network__fibre=["om4-mtp-8", "os2-mtp-8"])
    assert "counts as bought anew" in _found(fibred, "existing")[0]
    (note,) = _found(grown, "hall")
    assert "network.cables = 'hall'" in note
    plan = coopt.solve(grown)
    shorter = coopt.solve(ask(**changes, existing=[stands], network__cables="hall"))
    assert plan.design is not None
    costs = costs_by_length(grown, networks_of_design(grown, plan.design))
    assert costs is not None
    (then,) = costs.then
    assert shorter.cost.capex_usd <= then.capex_usd < plan.cost.capex_usd
    kept = ask(**(changes | {"cluster__gpus": 256}), existing=[stands], network__link_reach_m=[50.0, 50.0, 500.0])
    assert not _found(kept, "rewired")


def test_rails_that_are_not_joined_and_domains_filled_alike_are_said() -> None:
    found = text(**NVL72, cluster__gpus=128)
    assert "share a switch" in found
    assert "domain_fill" not in found
    apart = {"cluster__gpus": 512, "network__switches": "qm9700", "network__fabrics": "rail-only", **LARGER}
    assert "traffic between rails is forwarded" in text(**apart)
    instance = ask(**apart)
    core = {"mode": "partition", "core": {"switch": "128x400g", "gbit_s_per_gpu": 25.0}}
    notes = building_notes(instance.having(sharing=core), coopt.solve(instance).design)
    assert any("Only the core can connect rails" in note for note in notes)
    changes = NVL72 | {"cluster__gpus": 1000, "workload__0__global_batch": 1000}
    even = text(**changes, network__domain_fill="even")
    assert all(figure in even for figure in ("the 20", "14 could"))
    assert "domain_fill" not in text(**changes)
    found = text(**changes, workload__0__options={"collectives": "fastest"})
    assert "options.collectives" in found
    assert "the 20" in found


def test_many_idle_gpus_are_told_on_the_first_screen() -> None:
    """1,000 GPUs take 20 domains of 72 where as many train in each, and 14 where they need not.

    TP groups of 16 fill 36 domains of 72 with 64 of 2,304 GPUs each; numbers from 33 to 35 are not tried.
    """
    changes = NVL72 | {"cluster__gpus": 1000, "workload__0__global_batch": 1000}
    found = screen(**changes, network__domain_fill="even")
    assert all(figure in found for figure in ("30.6% of the", "14 of the", "20 domains", "network.domain_fill"))
    assert "stand idle" not in screen(**changes)
    changes |= {"cluster__gpus": 2304, "workload__0__global_batch": 2304, "workload__0__mapping": {"tp": 16, "pp": 1}}
    for fill, told in ({}, True), ({"network__domain_fill": "any"}, False):
        said = screen(**changes, workload__0__allow_tp_across=False, **fill)
        assert ("network.domain_fill = 'any' tries" in said) == told


def test_what_to_order_otherwise_is_told_once() -> None:
    """Where racks of all networks are placed together, their modules are counted."""
    instance = ask(**TWIN_GPUS, robust={"survive": "leaf", "slower": 1.5})
    plan = coopt.solve(instance)
    assert rendered(plan_report(instance, plan), io.StringIO()).count("splitters") == 1
    assert "splitters" in "\n".join(reading_notes(instance, plan.parts))


def test_gpus_that_divide_evenly_among_fewer_domains_were_tried_there() -> None:
    """1,008 GPUs are 14 domains of 72, whatever stands by in 18 of them."""
    instance = ask(**NVL72, cluster__gpus=1008, workload__0__global_batch=1008, network__domain_fill="even")
    plan = coopt.solve(instance)
    assert plan.design is not None
    domain = plan.design.hb_domain.model_copy(update={"count": 18, "active": 56})
    spread = with_part(plan, design=plan.design.model_copy(update={"hb_domain": domain}))
    (said,) = idle_note(instance, spread)
    assert ("22.2%" in said, "(network.domain_fill)" in said) == (True, False)
    assert "14 could" not in " ".join(building_notes(instance, spread.design))


def test_memory_that_is_all_but_full_is_told_unless_some_was_asked_for() -> None:
    instance = ask()
    run = run_of(instance)
    full = run.model_copy(update={"memory_gib": 0.996 * run.memory_limit_gib})
    (found,) = memory_note(instance, [run, full])
    assert "Only 0.4% of GPU memory" in found
    assert not list(memory_note(instance, [run]))
    assert not list(memory_note(ask(margin={"memory": 0.01}), [full]))


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"cluster__gpu": "h200", "network__hb_domains": "hgx-h100-8"}, ["hgx-h100-8", "h100-sxm", "h200"]),
        ({"network__hb_domains": "h100-hb16"}, ["h100-hb16"]),
        ({"network__hb_domains": "hgx-h100-8"}, []),
    ],
)
def test_hardware_that_nobody_combines_or_sells_makes_a_study(changes: dict[str, object], named: list[str]) -> None:
    instance = ask(**changes)
    plan = coopt.solve(instance)
    said = " ".join(study_notes(instance, plan.parts))
    assert bool(said) == bool(named)
    assert all(name in said for name in named)
    for report in (plan_report, plan_screen):
        before, _, _ = rendered(report(instance, plan), io.StringIO()).partition("Decision")
        assert " ".join(before.split()).endswith(said)


def test_several_workloads_take_turns_or_run_side_by_side() -> None:
    one = ask().workload[0].model_dump(mode="json")
    two = {"workload": [one, one | {"name": "other"}]}
    turns = turns_text(ask(**two))
    aside = turns_text(ask(**two, sharing={"mode": "partition"}))
    assert turns != aside
    assert turns in text(**two)
    assert turns not in text()
    dated = [row | {"max_iteration_time_s": None, "train_days": 9, "train_tokens": 1e9} for row in two["workload"]]
    instance = ask(workload=dated)
    plan = coopt.solve(instance)
    days = sum(w.iterations * run.iteration_time_s / 86400 for w, run in zip(instance.workload, plan.runs, strict=True))
    assert turns_text(instance, plan.runs).startswith(f"{turns} ")
    assert f"{days:,.4g} days" in turns_text(instance, plan.runs)


@pytest.mark.parametrize(
    ("changes", "unmeasured"),
    [
        ({}, ""),
        ({"workload__0__precision": "fp8"}, ""),
        ({"cluster__gpu": {"extends": "h100-sxm", "name": "ours", "usd": 20_000}}, ""),
        ({"cluster__gpu": {"extends": "h100-sxm", "name": "ours", "bf16_tflop_s": 2000}}, "on ours (own)"),
        ({"cluster__gpu": "mi300x", "network__hb_domains": "hgx-mi300x-8"}, "on mi300x"),
    ],
)
def test_times_are_estimates_by_the_nearest_run(changes: dict[str, Any], unmeasured: str) -> None:
    instance = ask(**SLOW, **changes)
    plan = coopt.solve(instance)
    (run,), (said,) = plan.runs, accuracy(instance, plan.runs)
    assert f"off by {100 * run.error:.1f}%" in said
    assert run.nearest[0].id in said
    assert not [*accuracy(instance, [older := run.model_copy(update={"error": None})]), *certainty(instance, [older])]
    told = [fact.shown for fact in rests_on(instance, plan) if fact.name == "Unmeasured"]
    assert told == ([f"The model was compared with no run {unmeasured}."] if unmeasured else [])


def test_a_bound_nearer_than_the_error_is_named() -> None:
    time = run_of(ask()).iteration_time_s
    near = ask(workload__0__max_iteration_time_s=1.02 * time)
    run = run_of(near)
    growth = f"{100 * (run.bound_s / run.iteration_time_s - 1):.1f}%"
    (said,) = accuracy(near, [run])
    assert growth in said
    one = near.workload[0].model_dump(mode="json")
    two = ask(workload=[one, one | {"name": "other", "max_iteration_time_s": 100.0}])
    (said,) = accuracy(two, coopt.solve(two).runs)
    assert f"{growth} (w)" in said
    later = [run, run.model_copy(update={"error": 0.5, "slack": 0.9})]  # as in another phase
    (said,) = accuracy(near, later)
    assert [f"{100 * run.error:.1f}% to 50.0% on" in said, growth in said] == [True, True]


def test_a_bound_is_near_where_time_and_error_exceed_it_together() -> None:
    """An error may be stated of one's own runs; what a margin keeps free is there for it."""
    instance = ask(**SLOW)
    run = run_of(instance)
    for share, near in ((0.99, True), (1.01, False)):
        bound_s = run.iteration_time_s * (1.0 + share * run.error)
        (sentence,) = accuracy(instance, [run.model_copy(update={"bound_s": bound_s})])
        assert ("its bound" in sentence) == near
    for kept, near in (("model", False), (0.02, True)):
        (said,) = accuracy(
            ask(**SLOW, margin={"time": kept}), [run.model_copy(update={"bound_s": run.iteration_time_s})]
        )
        assert (" 2.0% longer" in said) == near
    own = find("gpu", "h100-sxm").efficiency.model_dump() | {"gemm": 0.5, "error": 0.03}
    stated = ask(**SLOW, cluster__gpu={"extends": "h100-sxm", "name": "x", "bf16_tflop_s": 2000, "efficiency": own})
    assert "3.0%" in next(iter(accuracy(stated, coopt.solve(stated).runs)))


def test_a_bound_that_is_all_but_met_is_told_in_tenths_of_a_percent() -> None:
    """A way out that was tried has room for rounding only, and 0.00078% says no more than that."""
    instance = ask(**SLOW)
    run = run_of(instance)
    for room, told in ((0.0, "0.1%"), (7.8e-6, "0.1%"), (0.0042, "0.4%")):
        (said,) = accuracy(instance, [run.model_copy(update={"bound_s": run.iteration_time_s * (1.0 + room)})])
        assert f" {told} longer" in said


def test_the_model_line_says_what_is_trained() -> None:
    said = training_text(ask().workload[0])
    assert all(
        part in said for part in ("small", "1.82 billion", "bf16", "64 sequences", "2,048 tokens", "megatron-core")
    )


def test_switches_and_optics_are_compared_alone() -> None:
    instance = coopt.load(Path(__file__).parents[2] / "instances" / "rail-only-gpt-1t.toml")
    plan = coopt.solve(instance)
    baseline = baseline_of(instance, plan)
    assert baseline is not None
    assert plan.cost is not None
    sentence = network_sentence(plan.cost, baseline.cost)
    assert all(figure in sentence for figure in ("$35.8 M", "$94.3 M", "62.1% less"))
    assert network_sentence(plan.cost, plan.cost) == ""


def test_spare_domains_take_over_links_where_there_are_some() -> None:
    alone: dict[str, Any] = {"cluster__gpus": 8, "network__hb_domains": "hgx-h100-8", "workload__0__global_batch": 8}
    for changes, shown in (({}, True), (alone | SLOW, False)):
        instance = ask(**changes)
        said = rendered(faults_report(plan_faults(instance, coopt.solve(instance))))
        assert ("the failed domain" in " ".join(said.split())) == shown


def test_a_switch_that_draws_more_than_its_rack_may_with_its_optics_is_told() -> None:
    """What is refused is a switch that does so by itself."""
    for cap_kw, is_told in ((0.8, True), (3.0, False)):
        parts = {"nics": "cx7-400g", "switches": "qm9700", "optics": "400g-dr4", "hb_domains": "hgx-h100-8"}
        hall = {"network__hall": {"switch_rack_kw": cap_kw}, "cluster__gpus": 512, "network__nics_per_gpu": 1}
        instance = ask(**hall, **{f"network__{key}": name for key, name in parts.items()})
        notes = " ".join(building_notes(instance, coopt.solve(instance).design))
        assert (f"more than network.hall.switch_rack_kw = {cap_kw:g}" in notes) == is_told
