"""Units that the instance converts: days, tokens, bytes, ports, watts, shares; each by hand."""

import math
from typing import Any

import pytest

from coopt.instance.catalog import find, ports_of_modules
from coopt.instance.couplings import Discount, Limits, Prices, corners, part_of
from coopt.instance.designs import ByHbDomain, PublishedDesign
from coopt.instance.hardware import Gpu, Nic, Optic, Switch, mate
from coopt.instance.network import Hall, HallRows, SpareRates, WorkRates, not_counted
from coopt.instance.reserves import NO_MARGIN, Availability, Margin, largest_error
from coopt.instance.schema import Instance, seconds_weight
from coopt.instance.transformer import Transformer
from coopt.instance.variants import (
    after_a_loss,
    at_efficiency,
    at_prices,
    inside_first,
    keeping,
    required_bounds,
    with_scaled_bounds,
    years_of,
)
from coopt.instance.workload import LONGEST_S, Workload

DAY_S, YEAR_S = 24 * 60 * 60, 365 * 24 * 60 * 60
LLAMA: dict[str, Any] = {"name": "w", "model": "llama3-405b", "global_batch": 2048}
QUESTION: dict[str, Any] = {
    "schema": 1,
    "margin": "none",
    "name": "anchor",
    "cluster": {"gpu": "h100-sxm", "gpus": 16_384},
    "workload": LLAMA | {"train_days": 54.0, "train_tokens": 15.6e12},
    "network": {
        **{"hb_domains": "hgx-h100-8", "fabrics": "rail-only", "nics": "cx7-400g"},
        **{"switches": "64x400g", "optics": "400g-199"},
    },
}


def workload(**changes: Any) -> Workload:
    return Workload.model_validate(LLAMA | changes)


def question(**changes: Any) -> Instance:
    return Instance.model_validate(QUESTION | changes)


def test_llama_405b_sees_16_million_tokens_an_iteration() -> None:
    """arXiv 2407.21783, table 4: 16M tokens a batch, at sequences of 8,192."""
    assert workload(max_iteration_time_s=1).tokens_per_iteration == 2048 * 8192 == 2**24


def test_days_of_a_training_are_seconds_of_an_iteration() -> None:
    """15.6 T tokens in 54 days of 86,400 s: 929,827 iterations of 5.018 s."""
    one = workload(train_days=54, train_tokens=15.6e12)
    assert one.iterations == pytest.approx(15.6e12 / 2**24)
    assert one.required_s == pytest.approx(54 * DAY_S * 2**24 / 15.6e12) == pytest.approx(5.0176, rel=1e-4)
    assert one.bound_s == pytest.approx(one.required_s)
    assert one.calendar
    assert not workload(max_iteration_time_s=1).calendar
    assert workload(max_iteration_time_s=1).needed_tokens == 0
    assert one.duration(5.0176) == "54 days"
    assert one.duration(5.0176 * 10) == "540 days"
    assert one.duration(5.0176 * 13) == "702 days"
    assert one.duration(5.0176 * 73) == "10.8 years"
    assert one.in_own_units(5.0176).startswith("54 days")


def test_tokens_a_second_are_seconds_of_an_iteration() -> None:
    one = workload(min_tokens_per_s=2**21)
    assert one.required_s == pytest.approx(8.0, rel=1e-12)
    assert one.required_s >= 8.0  # a rate that a plan attains is one it meets
    assert one.in_own_units(8.0) == "2,097,152 tokens/s"
    assert workload(max_iteration_time_s=7.5).required_s == 7.5


def test_a_workload_without_a_bound_is_never_late() -> None:
    assert not workload().bounded
    assert workload().required_s == workload().bound_s >= 1e12


def test_a_margin_shortens_what_a_prediction_may_take() -> None:
    assert workload(max_iteration_time_s=6).with_margin(0.2).bound_s == pytest.approx(5.0)


def test_at_the_critical_batch_training_takes_twice_the_tokens() -> None:
    """1 + B / C (McCandlish et al., arXiv 1812.06162, equation 2.11)."""
    one = workload(train_days=54, train_tokens=1e12, critical_batch_tokens=2**24)
    assert (one.tokens_for_one, one.needed_tokens) == (2.0, 2e12)
    assert workload(train_days=54, train_tokens=1e12).needed_tokens == 1e12
    half = workload(train_days=54, train_tokens=1e12, critical_batch_tokens=2**25)
    assert half.tokens_for_one == 1.5
    assert seconds_weight(question(), "time") == pytest.approx(15.6e12 / 2**24)
    assert seconds_weight(question(), "capex") == 1.0


def test_a_site_trains_its_share_of_a_batch_in_the_time_of_the_whole() -> None:
    quarter = part_of(workload(train_days=54, train_tokens=15.6e12), 1, 4)
    assert quarter.global_batch == 512
    assert quarter.required_s == pytest.approx(5.0176, rel=1e-4)


def test_memory_is_kept_free_in_bytes_of_ten_to_the_ninth() -> None:
    gpu = find("gpu", "mi300x")
    assert isinstance(gpu, Gpu)
    assert gpu.usable_bytes == 192e9
    assert gpu.with_memory_margin(0.25).usable_bytes == 144e9
    assert gpu.with_memory_margin(0.25).whole_gb(144e9) == 192.0
    assert (gpu.unpriced.usd, gpu.unpriced.w, gpu.unpriced.hbm_gb) == (0.0, 0.0, 192.0)


def test_a_share_of_ports_is_kept_free_in_whole_cages() -> None:
    """90% of 64 ports are 57, which are 14 cages of 4; small boxes lose single ports; 2 are the least."""
    box = Switch.model_validate({"name": "s", "radix": 64, "port_gbit_s": 400, "usd": 1, "w": 1})
    spared = box.with_port_margin(0.1)
    assert (spared.radix, spared.free_ports) == (56, 8)
    assert box.free_ports == 0
    assert box.model_copy(update={"radix": 40}).with_port_margin(0.1).radix == 36
    assert box.model_copy(update={"radix": 32}).with_port_margin(0.05).radix == 28
    assert box.model_copy(update={"radix": 16}).with_port_margin(0.1).radix == 14
    assert box.model_copy(update={"radix": 3}).with_port_margin(0.3).radix == 2
    with pytest.raises(ValueError, match=r"margin\.ports = 0\.3: .*'s' .*1 port, .* 2$"):
        box.model_copy(update={"radix": 2}).with_port_margin(0.3)
    assert spared.cage_gbit_s == 400
    assert spared.model_dump()["radix"] == 64


def test_modules_fill_cages_and_cages_fill_ports() -> None:
    """QM9700: 32 twin-port cages of 800 Gbit/s; SN5600: 64 cages of 800 Gbit/s, run at 400 with 128 ports."""
    switches = {name: find("switch", name) for name in ("qm9700", "51t", "128x400g")}
    quantum, spectrum, at_400 = switches.values()
    assert isinstance(quantum, Switch)
    assert isinstance(spectrum, Switch)
    assert isinstance(at_400, Switch)
    assert (quantum.cage_gbit_s, spectrum.cage_gbit_s) == (800, 800)
    assert [ports_of_modules(quantum, links) for links in (1, 2, 4)] == [32, 64, 64]
    assert [ports_of_modules(at_400, links) for links in (1, 2)] == [64, 128]


def test_products_of_one_lane_rate_and_protocol_mate() -> None:
    parts: dict[str, Any] = {"nic": "cx7-400g", "switch": "qm9700", "optic": "800g-sr8"}
    nic, switch, optic = (find(kind, name) for kind, name in parts.items())
    assert isinstance(nic, Nic)
    assert isinstance(switch, Switch)
    assert isinstance(optic, Optic)
    assert mate(nic, optic, switch)
    assert not mate(nic, switch.model_copy(update={"lane_gbit_s": 200.0}))
    assert not mate(switch, switch.model_copy(update={"protocol": "ethernet"}))
    dr8, sr4 = find("optic", "800g-dr8"), find("optic", "400g-sr4")
    assert isinstance(dr8, Optic)
    assert isinstance(sr4, Optic)
    assert (optic.meets(sr4), optic.meets(dr8), dr8.meets(dr8)) == (True, False, True)


def test_labour_and_support_are_shares_of_the_purchase() -> None:
    """10% once and 5% in each of 4 years: 1.3 times the price; 100 USD of labour and 200 of support on 1,000."""
    terms = question(objective={"labour_share": 0.1, "support_share": 0.05, "years": 4}).objective
    assert terms.owned_share == pytest.approx(1.3)
    rates = WorkRates(labour_share=0.1, support_share=0.05, years=4)
    assert dict(rates.due(1000.0)) == {"labour to install": 100.0, "support, 4 years": pytest.approx(200.0)}
    assert dict(WorkRates().due(1000.0)) == {}


def test_limits_are_megawatts_dollars_and_racks() -> None:
    limits = Limits(power_mw=1.5, capex_usd=2e6, racks=10)
    assert limits.sums == {"power": 1.5e6, "capex": 2e6}
    against = limits.against(usd=1e6, w=3e6, racks=4)
    assert against == {"power_mw": (3.0, 1.5), "capex_usd": (1e6, 2e6), "racks": (4, 10)}


def test_discounts_take_shares_off_in_whole_cents() -> None:
    table = {"kind": "nic", "item": "n", "from": [10, 100], "off": [0.1, 1 / 3]}
    assert Discount.model_validate(table).prices(1750.0) == (1575.0, 1166.67)


def test_prices_in_doubt_have_two_ends_a_kind() -> None:
    prices = Prices(hb=(0.5, 2.0), gpu=(1.0, 3.0))
    assert len(corners(prices)) == 4
    assert prices.worst == {"hb": 2.0, "nic": 1.0, "switch": 1.0, "optics": 1.0, "gpu": 3.0}
    dear = at_prices(question(), {"hb": 2.0, "nic": 3.0, "switch": 4.0, "optics": 5.0, "gpu": 6.0})
    network = dear.network
    prices_then = (network.nics[0].usd, network.switches[0].usd, network.optics[0].usd, dear.cluster.gpu.usd)
    assert prices_then == (3 * 1750, 4 * 64 * 694, 5 * 199, 6 * 30_000)


def test_an_efficiency_factor_scales_peaks_and_memory_and_no_links() -> None:
    before = question().cluster.gpu.efficiency
    after = at_efficiency(question(), 0.9).cluster.gpu.efficiency
    assert (after.gemm, after.hbm, after.attention) == pytest.approx((0.9 * 0.685, 0.9 * 0.604, 0.9 * 0.62))
    assert after.fp8 is not None
    assert (after.fp8.gemm, after.fp8.hbm, after.fp8.kernel_s) == pytest.approx((0.9 * 0.626, 0.9 * 0.588, 7.24e-6))
    assert (after.hb, after.rail, after.send, after.latency_s) == (before.hb, before.rail, before.send, 4.9e-6)
    assert before.largest_share == 0.685


def test_bounds_grow_while_a_part_is_lost() -> None:
    (longer,) = after_a_loss(question(), 1.5).workload
    assert longer.bound_s == pytest.approx(1.5 * 5.0176, rel=1e-4)


def test_a_phase_lasts_until_the_next_and_the_last_one_for_its_years() -> None:
    phases = [{"year": 2026, "gpus": 8192}, {"year": 2028.5, "gpus": 16_384}]
    grows = question(phase=phases, objective={"years": 5})
    assert (years_of(grows, 0), years_of(grows, 1)) == (2.5, 5.0)
    assert years_of(question(), 0) == 4.0


def test_ports_out_at_a_time_are_rates_a_year_times_hours_of_repair() -> None:
    """An optic of 0.00327 failures in 8,760 h is out for 24 h each time; one that flaps 12 times a year for 10 s."""
    rates = {"extends": "llama-3", "flap": {"per_year": 12.0}}
    availability = Availability.model_validate({"rates": rates})
    whole, split = (availability.outages(keeps_ports=keeps) for keeps in (False, True))
    assert whole.end == pytest.approx(12 * 10 / YEAR_S)
    assert whole.leaf == 0.0
    assert split.end == pytest.approx(12 * 10 / YEAR_S + 0.00327 * 24 / 8760)
    assert split.leaf == pytest.approx(0.0061 * 24 / 8760)
    assert availability.deviations == 0.0
    certain = availability.model_copy(update={"confidence": 0.975})
    assert certain.deviations == pytest.approx(1.959964, rel=1e-6)  # the normal law
    assert (availability.spares[0], availability.spares[-1]) == (0, 4096)


def test_the_mean_size_of_an_error_is_a_share_of_a_standard_error() -> None:
    """sqrt(2 / pi) of it, by the normal law of logarithms."""
    gpu, dense = question().cluster.gpu, question().workload[0]
    error = largest_error(gpu, dense, 64) * math.sqrt(math.pi / 2)
    assert Margin().time_share(gpu, dense, 64) == pytest.approx(math.expm1(error), rel=1e-9)
    sure = Margin(confidence=0.975)
    assert sure.time_share(gpu, dense, 64) == pytest.approx(math.expm1(1.959964 * error), rel=1e-6)
    assert Margin(time=0.1).time_share(gpu, dense, 64) == 0.1
    no_margin, margin = question(), question(margin={"time": 0.25, "memory": 0.1, "ports": 0.1})
    assert (no_margin.workload[0].time_margin, no_margin.cluster.gpu.memory_margin) == (0.0, 0.0)
    assert (margin.workload[0].time_margin, margin.cluster.gpu.memory_margin) == (0.25, 0.1)
    assert margin.network.switches[0].radix == 56


def test_cables_go_up_along_and_across_and_down() -> None:
    """Racks 3 and 45 of rows of 20: 2 places of 0.6 m aside, 2 rows of 3 m across, 2.5 m up and down."""
    rows = HallRows()
    assert rows.cable_m(3, 45) == pytest.approx(2 * 2.5 + 2 * 0.6 + 2 * 3.0)
    assert rows.cable_m(7, 7) == 2.0
    hall = Hall(racks_per_domain=0.25)
    assert [hall.rack_of(domain) for domain in (0, 3, 4)] == [0, 0, 1]
    assert Hall(racks_per_domain=5).rack_of(1) == 7  # the middle one of racks 5 to 9


def test_what_changes_no_plan_is_no_part_of_a_question() -> None:
    """How it is searched, how racks stand and what lies in store; sites and phases settle ends of links and fill."""
    same = question(), question(solver={"threads": 2}), question(objective={"minimize": "tco"})
    same += tuple(
        question(network=QUESTION["network"] | table) for table in ({"hall": {"rise_m": 9}}, {"spares": {"nic": 0.5}})
    )
    assert len({one.sha256 for one in same}) == 1
    assert question(objective={"years": 3}).sha256 != same[0].sha256
    survives = [
        question(robust={"survive": ["nic"]}, network=QUESTION["network"] | table)
        for table in ({}, {"domain_fill": "even"}, {"link_ends": "same"})
    ]
    assert len({one.sha256 for one in survives}) == 1
    assert question().efficiencies == (1.0, 1.0)


def test_tp_groups_extend_over_domains_where_nothing_inside_is_enough() -> None:
    for inside_is_enough in (True, False):
        asked: list[bool | None] = []

        def answer(variant: Instance, asked: list[bool | None] = asked) -> bool | None:
            asked.append(variant.workload[0].allow_tp_across)
            return asked[-1]

        found, across = inside_first(question(), answer, lambda answer, enough=inside_is_enough: enough)
        assert (found, across) == (not inside_is_enough, not inside_is_enough)
        assert asked == [False, True][: 1 if inside_is_enough else 2]


def test_without_a_margin_nothing_is_kept_free() -> None:
    bare = keeping(question(margin={"time": 0.25, "memory": 0.1, "ports": 0.1}), NO_MARGIN)
    kept = (bare.workload[0].time_margin, bare.cluster.gpu.memory_margin, bare.network.switches[0].radix)
    assert (*kept, bare.margin) == (0.0, 0.0, 64, NO_MARGIN)


def test_flows_that_are_sprayed_reach_a_share_of_links_and_pinned_ones_all() -> None:
    disciplines = {
        ("loads", "spray"): ("loads", "spray", 0.98),
        ("loads", "pinned"): ("loads", "pinned", 1.0),
        ("ratio", "spray"): ("ratio", 1.0, 1.0),
        ("loads", 1.3): ("loads", 1.3, 1.0),
    }
    for (charge, routing), expected in disciplines.items():
        network = question(network=QUESTION["network"] | {"charge": charge, "routing": routing}).network
        assert network.discipline == expected


def test_a_hybrid_predicts_further_tokens_by_a_layer_of_attention_and_experts() -> None:
    hybrid, dense = find("model", "nemotron-3-super"), find("model", "llama3-405b")
    assert isinstance(hybrid, Transformer)
    assert isinstance(dense, Transformer)
    one = hybrid.prediction
    assert (one.layers, one.mamba_layers, one.with_attention, one.with_ffn) == (1, 0, 1, 1)
    assert (one.dense_layers, one.window, one.window_layers, one.experts) == (0, 0, 0, 512)
    assert dense.prediction == dense


def test_spares_and_freight_are_no_part_of_a_purchase_unless_asked_for() -> None:
    assert [SpareRates(nic=0.1).of(kind) for kind in ("nic", "switch", "hb")] == [0.1, 0.0, 0.0]
    assert WorkRates().years == 4.0
    every = WorkRates(labour_share=0.1, support_share=0.1), SpareRates(optics=0.1)
    assert not_counted([every[0]], [every[1]]) == "freight"
    assert not_counted([WorkRates()], [SpareRates()]) == "installation, support, freight and spare parts"


def test_a_design_of_its_own_leaves_out_one_port_and_one_plane() -> None:
    tier = {"ports": 64, "switch": "64x400g"}
    table = {"id": "d", "domains": 8, "gpus_per_domain": 8, "fabric": "clos", "tiers": [tier]}
    design = PublishedDesign.model_validate(table)
    assert (design.nic_ports, design.planes, design.gpus_per_cage, design.gpus) == (1, 1, 1, 64)
    assert ByHbDomain(per_hb_domain=2).more == 0
    fibred = PublishedDesign.model_validate(table | {"fibre": "om4-mtp-8"})
    usd = [fibred.at_prices(factors).fibre[0].usd for factors in ({}, {"nic": 2.0}, {"optics": 2.0})]
    assert usd == [78.0, 78.0, 2 * 78.0]
    (first,) = design.at_prices({"nic": 2.0}).tiers
    assert first.switch is not None
    assert first.switch.usd == 64 * 694


def test_bounds_in_turn_are_longer_in_days_up_to_the_longest() -> None:
    several = [LLAMA | {"name": name, "train_tokens": 15.6e12} for name in "ab"]
    asked = question(workload=several, limits={"train_days_total": 100.0})
    scaled = [with_scaled_bounds(asked, pace).limits.train_days_total for pace in (1.5, 1e15)]
    assert scaled == [150.0, pytest.approx(LONGEST_S / DAY_S)]


def test_a_phase_that_names_no_bound_keeps_that_of_the_workload() -> None:
    (bound,) = required_bounds(question())
    assert (bound.key, bound.number, bound.phases) == ("workload[0].train_days", 54.0, frozenset({0}))
