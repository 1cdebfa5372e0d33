"""What a reader has to know stands below the tables, and only where it is true."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

import coopt
from coopt.instance.catalog import find
from coopt.instance.hardware import Optic, Switch
from coopt.instance.reserves import known_error
from coopt.network.module_notes import too_many_modules
from coopt.network.orders import order_notes_of_parts
from coopt.network.part_networks import network_of
from coopt.network.plan_networks import baseline_of
from coopt.report.comparison import network_sentence
from coopt.report.plan import plan_report
from coopt.report.remarks import accuracy, first_sentences, memory_note, notes, study_notes
from coopt.report.screen import plan_screen
from coopt.report.tables import rendered
from tests.conftest import ask, switch


def text(**changes: object) -> str:
    instance = ask(**changes)
    plan = coopt.solve(instance)
    assert plan.design is not None
    return "\n".join(notes(instance, [plan.design], plan.workloads))


def test_what_counts_and_what_does_not() -> None:
    assert "Not counted: GPUs that train, servers" in text()
    everything = text(objective={"include": ["hb", "nic", "switch", "optics", "gpu"]})
    assert "GPUs that train. Not counted: servers" in everything


def test_a_figure_in_another_unit_is_named_with_the_range_of_the_catalog() -> None:
    """Terabytes in place of gigabytes, thousands of dollars; a price of 0, and figures like the catalog's, are none."""
    ours = {"extends": "h200", "name": "ours", "hbm_gb": 0.192, "usd": 0}
    optic = {"extends": "400g-sr4", "name": "quoted", "usd": 600_000, "w": 12}
    instance = ask(cluster__gpu=ours, network__optics=["400g-sr4", optic], network__switches="64x400g")
    told = [one for one in first_sentences(instance, coopt.solve(instance)) if "check its unit" in one]
    assert told == [
        "cluster.gpu: hbm_gb = 0.192 of ours is far from all of the catalog, which has 42.95 to 298.01 (10^9 bytes): "
        "check its unit.",
        "network.optics: usd = 600,000 of quoted is far from all of the catalog, which has 136 to 1,700 (USD): check "
        "its unit.",
    ]


def test_a_limit_on_power_in_another_unit_is_named() -> None:
    of_hall, of_kilowatts = (ask(limits={"power_mw": limit}) for limit in (5.0, 700_000.0))
    told = [list(first_sentences(one, coopt.solve(one))) for one in (of_hall, of_kilowatts)]
    assert "check its unit" not in " ".join(told[0])
    assert "limits.power_mw = 700,000 is more than 100 times the 0.0" in " ".join(told[1])
    assert "MW that this plan draws with its GPUs: check its unit, which is MW." in " ".join(told[1])


def test_a_box_with_fewer_cages_than_modules_is_named() -> None:
    box = {**switch(8, 900), "port_gbit_s": 800, "modes": [{"radix": 16, "port_gbit_s": 400}]}
    changes = {"cluster__gpus": 256, "network__switches": [box], "network__hb_domains": "hgx-h100-8"}
    said = "modules of 800 Gbit/s that serve 2 ports each, whose price may differ"
    assert said in text(**changes, network__fabrics="clos", workload__0__max_iteration_time_s=10.0)
    assert "has room for" not in text(network__hb_domains="hgx-h100-8")


def test_a_box_of_twin_ports_is_named() -> None:
    changes = {"cluster__gpus": 512, "network__hb_domains": "hgx-h100-8", "workload__0__max_iteration_time_s": 10.0}
    found = text(**changes, network__switches="qm9700", network__fabrics="rail-only")
    assert "modules for each qm9700 of tier 1, which has room for 32: order" in found
    assert "modules of 800 Gbit/s that serve 2 ports each, whose price" in found
    with pytest.raises(ValueError, match="cages = 3: needs a divisor of radix = 8"):
        ask(network__switches=[switch(8, 1) | {"cages": 3}])


def test_modules_of_both_sides_of_a_leaf_are_counted_in_whole_cages() -> None:
    """Three links down and one up take two and one cage of two ports each, of which a box has two."""
    optics = [
        {"name": "near", "gbit_s": 400, "reach_m": 60, "usd": 1, "w": 1},
        {"name": "far", "gbit_s": 400, "reach_m": 500, "usd": 1000, "w": 1},
    ]
    known = {optic["name"]: Optic.model_validate(optic) for optic in optics}
    box = Switch.model_validate(switch(4, 900) | {"cages": 2})
    sides = [(3, known["near"]), (1, known["far"])]
    assert "would still be 3: links of its two sides share no module" in too_many_modules(box, 1, 4, 2, 2, sides)
    alike = [(3, known["near"]), (1, known["near"])]
    assert "order 2 modules of 800 Gbit/s that serve 2 ports each" in too_many_modules(box, 1, 4, 2, 2, alike)


def test_modules_that_fill_a_cage_are_named_where_the_catalog_has_them() -> None:
    known, box = find("optic", "400g-sr4"), find("switch", "qm9700")
    assert isinstance(known, Optic)
    assert isinstance(box, Switch)
    found = too_many_modules(box, 1, 64, 32, 2, [(64, known)])
    assert "order 32 modules of 800 Gbit/s that serve 2 ports each (of the catalog: 800g-sr8), whose price" in found


def test_modules_that_break_out_are_counted_too() -> None:
    """A leaf of 512 ports of 200G, whose 64 cages take 1.6T, cannot take modules of 800G alone."""
    changes = {"cluster__gpu": "gb200", "cluster__gpus": 576, "network__hb_domains": "gb200-nvl72"}
    changes |= {"network__nics": "cx8-800g", "network__nic_planes": 4, "network__switches": "102t"}
    changes |= {"network__optics": "800g-dr4", "network__fabrics": "clos", "network__oversubscription": 1.0}
    changes |= {"workload__0__global_batch": 576, "workload__0__max_iteration_time_s": 10.0}
    found = text(**changes)
    assert "for each 102t of tier 1, which has room for 64: order" in found
    assert "modules of 1600 Gbit/s that serve 8 ports each" in found


def test_the_hall_is_told_with_cables_that_are_too_long_for_their_optics() -> None:
    changes = {"cluster__gpus": 256, "network__hb_domains": "hgx-h100-8", "workload__0__max_iteration_time_s": 10.0}
    found = text(**changes, network__fabrics="clos")
    assert "The hall: 8 racks in 1 row, 5 m by 3 m, with 4" in found
    assert "kW of GPUs, servers and NICs in each" in found
    assert "below tier 1" in found
    assert "are longer than" not in found
    short = {"name": "short", "gbit_s": 400, "reach_m": 6, "usd": 1, "w": 1}
    near = {"network__optics": [short], "network__link_reach_m": [6.0, 6.0, 6.0]}
    assert "cables below tier 1 are longer than the 6 m that short reaches: order ends" in text(**changes, **near)
    assert "are longer than" not in text(**changes, **near, network__hall={"rise_m": 0.1, "rack_pitch_m": 0.1})


def test_what_joins_no_rails_and_fills_all_domains_alike_is_said() -> None:
    changes = {"network__hb_domains": "gb200-nvl72", "network__fabrics": "rail-only", "cluster__gpus": 128}
    found = text(**changes, workload__0__max_iteration_time_s=10.0)
    assert "No switch joins two rails" in found
    assert "domain_fill" not in found
    changes |= {"cluster__gpus": 1000, "workload__0__global_batch": 1000, "workload__0__max_iteration_time_s": 10.0}
    assert "network.domain_fill = 'any' 14 to 20 of them may do" in text(**changes, network__domain_fill="even")
    assert "domain_fill" not in text(**changes)
    needs = "as options.collectives but 'levels' need them so; filled unevenly, 14 to 20 of them might do"
    assert needs in text(**changes, workload__0__options={"collectives": "fastest"})


def test_many_idle_gpus_are_told_on_the_first_screen() -> None:
    """1,000 GPUs take 20 domains of 72 where as many train in each, and 14 where they need not."""
    changes = {"network__hb_domains": "gb200-nvl72", "network__fabrics": "rail-only", "cluster__gpus": 1000}
    changes |= {"workload__0__global_batch": 1000, "workload__0__max_iteration_time_s": 10.0}
    found = screen(**changes, network__domain_fill="even")
    assert "30.6% of the GPUs of HB domains stand idle: 14 of the 20 domains would hold those that train" in found
    assert "stand idle" not in screen(**changes)


def test_idle_gpus_are_told_with_the_key_that_tries_more_numbers_of_domains() -> None:
    """TP groups of 16 fill 36 domains of 72 with 64 GPUs each; numbers from 33 to 35 are not tried."""
    changes = {"network__hb_domains": "gb200-nvl72", "network__fabrics": "rail-only", "cluster__gpus": 2304}
    changes |= {"workload__0__global_batch": 2304, "workload__0__max_iteration_time_s": 10.0}
    changes |= {"workload__0__mapping": {"tp": 16, "pp": 1}, "workload__0__allow_tp_across": False}
    tries = "network.domain_fill = 'any' tries more numbers of them"
    assert tries in screen(**changes)
    assert tries not in screen(**changes, network__domain_fill="any")


def test_memory_that_is_all_but_full_is_told_unless_some_was_asked_for() -> None:
    instance = ask()
    (run,) = coopt.solve(instance).workloads
    full = run.model_copy(update={"memory_gib": 0.996 * run.memory_limit_gib})
    (found,) = memory_note(instance, [run, full])
    assert found.startswith("Of a GPU's memory 0.4% (w) would stay free")
    assert not list(memory_note(instance, [run]))
    assert not list(memory_note(ask(margin={"memory": 0.01}), [full]))


def screen(**changes: object) -> str:
    instance = ask(**changes)
    return " ".join(rendered(plan_screen(instance, coopt.solve(instance))).split())


def test_a_free_interconnect_is_named() -> None:
    assert "hgx-h100-8 is part of its servers' price" in text(network__hb_domains="hgx-h100-8")
    assert "servers' price" not in text(network__hb_domains="h100-hb16")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"cluster__gpu": "h200", "network__hb_domains": "hgx-h100-8"},
            ["This is a study: hgx-h100-8 is sold with h100-sxm, not with h200."],
        ),
        (
            {"network__hb_domains": "h100-hb16"},
            ["This is a study: nobody sells h100-hb16, whose size and price are assumed."],
        ),
        ({"network__hb_domains": "hgx-h100-8"}, []),
    ],
)
def test_hardware_that_nobody_combines_or_sells_makes_a_study(changes: dict[str, object], said: list[str]) -> None:
    instance = ask(**changes)
    plan = coopt.solve(instance)
    assert list(study_notes(instance, map(network_of, plan.parts))) == said
    for report in (plan_report, plan_screen):
        before, _, _ = rendered(report(instance, plan), io.StringIO()).partition("Decision")
        assert ("study" in before) == bool(said)


def test_taking_turns_is_said_for_several_workloads() -> None:
    one = ask().workload[0].model_dump(mode="json")
    assert "Workloads take turns" in text(workload=[one, one | {"name": "other"}])
    assert "turns" not in text()


def test_times_are_estimates_of_a_known_error() -> None:
    wide = text(workload__0__max_iteration_time_s=100.0)
    assert "on published runs of dense models that were left out of the fit they are off by 7.3% on average." in wide
    narrow = text(workload__0__max_iteration_time_s=100.0, workload__0__precision="fp8")
    assert (
        "on published fp8 runs of hopper GPUs that were left out of the fit they are off by 7.6% on average." in narrow
    )


def test_no_error_is_claimed_for_hardware_that_nobody_measured() -> None:
    changes = {"workload__0__max_iteration_time_s": 100.0}
    cheap = text(**changes, cluster__gpu={"extends": "h100-sxm", "name": "ours", "usd": 20_000})
    assert "dense models that were left out of the fit" in cheap
    faster = {"extends": "h100-sxm", "name": "ours", "bf16_tflop_s": 2000}
    assert "no published runs tell how far they are off on ours" in text(**changes, cluster__gpu=faster)
    own = faster | {"efficiency": find("gpu", "h100-sxm").efficiency.model_dump() | {"gemm": 0.5, "error": 0.03}}
    assert "on the runs that ours was fitted to they are off by 3.0%" in text(**changes, cluster__gpu=own)


def test_a_bound_nearer_than_the_error_is_named() -> None:
    time = coopt.solve(ask()).workloads[0].iteration_time_s
    near = ask(workload__0__max_iteration_time_s=1.02 * time)
    (run,) = coopt.solve(near).workloads
    growth = f"{100 * (run.bound_s / run.iteration_time_s - 1):.1f}%"
    assert f"; an iteration more than {growth} longer exceeds its bound." in text(
        workload__0__max_iteration_time_s=1.02 * time
    )
    one = near.workload[0].model_dump(mode="json")
    two = text(workload=[one, one | {"name": "other", "max_iteration_time_s": 100.0}])
    assert f"; iterations more than {growth} (w) longer exceed their bounds." in two


def test_a_bound_is_near_where_time_and_error_exceed_it_together() -> None:
    instance = ask(workload__0__max_iteration_time_s=100.0)
    (run,) = coopt.solve(instance).workloads
    known = known_error(instance.cluster.gpu, instance.workload[0])
    assert known is not None
    for room, near in ((0.99, True), (1.01, False)):  # of the error, as a share of the time
        bound_s = run.iteration_time_s * (1.0 + room * known.error)
        (sentence,) = accuracy(instance, [run.model_copy(update={"bound_s": bound_s})])
        assert ("exceeds its bound" in sentence) == near


@pytest.mark.parametrize(("room", "told"), [(0.0, "0.1%"), (7.8e-6, "0.1%"), (0.0042, "0.4%")])
def test_a_bound_that_is_all_but_met_is_told_in_tenths_of_a_percent(room: float, told: str) -> None:
    """A way out that was tried has room for rounding only, and 0.00078% says no more than that."""
    instance = ask(workload__0__max_iteration_time_s=100.0)
    (run,) = coopt.solve(instance).workloads
    (sentence,) = accuracy(instance, [run.model_copy(update={"bound_s": run.iteration_time_s * (1.0 + room)})])
    assert f"; an iteration more than {told} longer exceeds its bound." in sentence


def test_what_a_margin_keeps_free_is_there_for_the_error() -> None:
    for share, near in (("model", False), (0.02, True)):
        instance = ask(workload__0__max_iteration_time_s=100.0, margin={"time": share})
        (run,) = coopt.solve(instance).workloads
        (sentence,) = accuracy(instance, [run.model_copy(update={"bound_s": run.iteration_time_s})])
        assert ("; an iteration more than 2.0% longer exceeds its bound" in sentence) == near


def test_without_a_known_error_the_origin_of_the_efficiencies_is_said() -> None:
    assert "the efficiencies of mi300x are not fitted" in text(
        cluster__gpu="mi300x", network__hb_domains="hgx-mi300x-8"
    )


def test_the_model_line_says_what_is_trained() -> None:
    from coopt.report.parts import training_text

    assert (
        training_text(ask().workload[0])
        == "small (1.82 billion parameters) in bf16, 64 sequences of 2,048 tokens an iteration, software megatron-core"
    )


def test_switches_and_optics_are_compared_alone() -> None:
    instance = coopt.load(Path(__file__).parents[2] / "instances" / "rail-only-gpt-1t.toml")
    plan = coopt.solve(instance)
    baseline = baseline_of(instance, plan)
    assert baseline is not None
    assert plan.cost is not None
    sentence = network_sentence(plan.cost, baseline.cost)
    assert sentence == "Switches and optics alone cost $35.8 M against $94.3 M, 62.1% less."
    assert network_sentence(plan.cost, plan.cost) == ""


@pytest.mark.parametrize(
    ("bound", "says"),
    [
        ({"min_tokens_per_s": 1e6}, "Bound"),
        ({"train_days": 30.0, "train_tokens": 1e12}, "30 days for 1 trillion tokens"),
        ({"train_days": 1.0, "train_tokens": 2.5e9}, "1 days for 2.5 billion tokens"),
    ],
)
def test_a_bound_is_repeated_in_its_own_units(bound: dict[str, float], says: str) -> None:
    from coopt.report.parts import workload_rows

    workload = ask().workload[0].model_dump(mode="json") | {"max_iteration_time_s": None} | bound
    instance = ask(workload=[workload])
    plan = coopt.solve(instance)
    rows = dict(workload_rows(plan.workloads[0], instance.workload[0]))
    assert says in f"Bound {rows['Bound']}"
    assert "this plan" in rows["Bound"]
    assert rows["Bound"].endswith("tokens if nothing fails") == ("train_days" in bound)


def test_a_workload_that_leaves_the_choice_is_told_what_collectives_run_by() -> None:
    from coopt.report.parts import workload_rows

    asked = {"workload__0__mapping": {"tp": 1, "pp": 1, "dp": 64, "zero": 1}, "network__hb_domains": "hgx-h100-8"}
    named = {}
    for how in ("levels", "fastest"):
        instance = ask(**asked, workload__0__options={"collectives": how}, workload__0__max_iteration_time_s=5.0)
        named[how] = dict(workload_rows(coopt.solve(instance).workloads[0], instance.workload[0])).get("Collectives")
    assert named == {"levels": None, "fastest": "DP: ring through all ranks"}


def test_a_limit_on_power_that_leaves_out_what_draws_most_says_so_first() -> None:
    whole = {"include": ["gpu", "host", "hb", "nic", "switch", "optics"]}
    drawn_mw = coopt.solve(ask(objective=whole, network__hb_domains="hgx-h100-8")).cost.power_w / 1e6
    for limit_mw, warned in ((drawn_mw * 0.99, True), (drawn_mw * 1.01, False)):
        instance = ask(limits={"power_mw": limit_mw}, network__hb_domains="hgx-h100-8")
        said = list(first_sentences(instance, coopt.solve(instance)))
        assert len(said) == warned
        if warned:
            assert f"With its GPUs and servers this plan draws {drawn_mw:.4g} MW, more than limits.power_mw" in said[0]
            assert 'add "gpu" and "host" there' in said[0]
    instance = ask(limits={"power_mw": drawn_mw}, objective=whole, network__hb_domains="hgx-h100-8")
    assert list(first_sentences(instance, coopt.solve(instance))) == []


def test_modules_that_break_out_say_that_their_fibres_are_split() -> None:
    changes = {"cluster__gpu": "gb200", "cluster__gpus": 576, "network__hb_domains": "gb200-nvl72"}
    changes |= {"network__nics": "cx8-800g", "network__nic_planes": 4, "network__switches": "102t"}
    changes |= {"network__optics": "800g-dr4", "network__fabrics": "clos", "network__oversubscription": 1.0}
    found = text(**changes, workload__0__global_batch=576, workload__0__max_iteration_time_s=10.0)
    assert "no cables or panels that split fibres, which 800g-dr4 (4 links each) may need, unless" in found
    assert "is the end of" not in text(network__hb_domains="hgx-h100-8")


def test_a_box_at_one_rate_has_the_cages_of_the_box() -> None:
    """A rail of 128 ends fills a switch, which is sold with 64 cages of 800 Gbit/s."""
    changes = {"network__switches": "128x400g", "network__optics": "400g-sr4", "network__fabrics": "rail-only"}
    changes |= {"network__hb_domains": "hgx-h100-8", "network__nics": "cx7-400g"}
    instance = ask(**changes, cluster__gpus=1024, workload__0__global_batch=1024, workload__0__max_iteration_time_s=9.0)
    plan = coopt.solve(instance)
    assert plan.design is not None
    notes = " ".join(order_notes_of_parts(instance, {"network": plan.design}))
    assert "for each 128x400g of tier 1, which has room for 64: order 64 modules of 800 Gbit/s" in notes
