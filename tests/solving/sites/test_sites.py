"""Clusters at several sites: the optimum is that of enumeration, plans pass the verifier, mutants do not."""

import math
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings

import coopt
from coopt.columns.feasible import _feasible_mappings
from coopt.instance.schema import Instance
from coopt.instance.texts import InstanceError, both
from coopt.network.borders import channel_end, link_counts
from coopt.network.cores import core_switch
from coopt.network.family import Family
from coopt.network.laying import laid_each
from coopt.network.optics import measures_of
from coopt.plan.schema import Plan
from coopt.report.plan import plan_report
from coopt.report.words import rendered
from coopt.solving.runs import backend_of
from coopt.solving.sites.answer import search_rings
from coopt.solving.sites.arrays import least_with, promising, ring_problems
from coopt.solving.sites.options import networks, offers
from coopt.verifier.couplings.ring import channel_end as checked_end
from tests.changes import with_couplings
from tests.conftest import example_count, question, switch
from tests.solving.sites.oracle import instances


@settings(max_examples=example_count(40))
@given(instance=instances())
def test_no_ring_with_so_many_shares_is_worth_less_than_their_bound(instance: Instance) -> None:
    measures = measures_of(instance)
    listed = [networks(instance, shares, measures) for shares in range(1, instance.cluster.shares + 1)]
    options = {one.shares: offers(one, lambda: None).options for one in listed}
    least, backend = least_with(instance, listed), backend_of(instance.solver)
    for problem in ring_problems(instance, [option for some in options.values() for option in some]):
        found = search_rings(instance, [problem], backend, deadline=math.inf)
        taken = [option.shares for option in found.found.options] if found.found else []
        assert all(least[n] <= found.value * (1 + 1e-9) for n in taken)


def test_what_is_kept_for_the_next_question_changes_no_answer() -> None:
    """Of questions that differ in a price, a bound and a product, asked in turn."""
    changes: list[dict[str, Any]] = [
        {},
        {"network__switches": [switch(16, 500)]},
        {"workload__0__max_iteration_time_s": 9.0},
    ]
    changes += [{"network__nics": "cx7-400g"}, {}]
    questions = [Instance.model_validate(apart(**change)) for change in changes]
    kept = [coopt.solve(one) for one in questions]
    for one, plan in zip(questions, kept, strict=True):
        _feasible_mappings.cache_clear()
        again = coopt.solve(one)
        assert (again.objective, again.parts, again.couplings) == (plan.objective, plan.parts, plan.couplings)
        assert again.solver.columns_kept == plan.solver.columns_kept


def test_numbers_of_shares_are_listed_by_their_bounds_until_none_is_below_the_best() -> None:
    least = {1: 5.0, 2: 3.0, 3: 3.0, 4: math.inf}
    assert promising(least, {}, math.inf) == [2, 3]
    assert promising(least, {2: None, 3: None}, math.inf) == [1, 4]
    assert promising(least, {2: None, 3: None}, 4.0) == []
    assert promising(least, {2: None, 3: None}, 5.5) == [1]
    assert promising(least, least, math.inf) == []


LINK = {"between": ["east", "west"], "gbit_s": 100, "usd": 2000, "w": 50, "latency_ms": 1, "most": 9}


def apart(**changes: Any) -> dict[str, Any]:
    """64 GPUs at two sites, neither of which can feed all of them."""
    sites = [{"name": "east", "power_mw": 0.03}, {"name": "west", "power_mw": 0.04, "pue": 1.1, "usd_per_kwh": 0.05}]
    table = {
        "cluster": {"gpu": "h100-sxm", "gpus": 64, "shares": 4}, "site": sites, "wan": [LINK],
        "objective": {"minimize": "tco", "include": ["gpu", "hb", "nic", "switch", "optics"]},
        "network__switches": [switch(16, 11000)],
    }  # fmt: skip
    return question(**(table | changes))


@pytest.fixture(scope="module")
def answered() -> tuple[Instance, Plan]:
    instance = Instance.model_validate(apart())
    return instance, coopt.solve(instance)


def test_both_sites_are_needed_joined_and_told(answered: tuple[Instance, Plan]) -> None:
    _, plan = answered
    assert plan.status == "optimal"
    ring = plan.couplings.ring
    assert sum(ring.site_shares) == 4
    assert len(ring.sites) == len(plan.parts) == 2
    (link,), (exchange,) = ring.wan, ring.exchanges
    assert 1 <= link.channels <= 9
    rate = link.channels * link.gbit_s * 1e9 / 8
    assert exchange.exchange_s == pytest.approx(2 * link.latency_s + exchange.sent_bytes / rate)
    for part, site in zip(plan.parts, plan.couplings.sites, strict=True):
        (run,) = part.workloads
        assert run.breakdown_s["wan"] == pytest.approx(exchange.exchange_s)
        assert sum(run.breakdown_s.values()) == pytest.approx(run.iteration_time_s)
        assert site.facility_w <= site.facility_limit_w
    text, told = rendered(plan_report(*answered)), ("GPUs at", "wide-area channel", "Wide-area links, each way")
    assert [words for words in (*told, "gradients between sites", "4 years of power") if words not in text] == []


def test_an_exchange_of_no_workload_is_rejected(answered: tuple[Instance, Plan]) -> None:
    instance, plan = answered
    ring = plan.couplings.ring
    (exchange,) = ring.exchanges
    more = (exchange, exchange.model_copy(update={"workload": "nobody's"}))
    wrong = with_couplings(plan, ring=ring.model_copy(update={"exchanges": more}))
    assert not coopt.verify(instance, wrong).accepted


POWERS = ("site__0__power_mw", "site__1__power_mw")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (dict.fromkeys(POWERS, 0.016), "2 of 4 shares"),
        (dict.fromkeys(POWERS, 0.001), "(4 in all) draw 0.0112"),
        ({"wan": [LINK | {"most": 1, "gbit_s": 1, "w": 0}]}, "with more channels (wan.most) there is a plan"),
        (
            {"workload__0__max_iteration_time_s": 0.01},
            "3 of 4 shares, the most that any site can feed: workload 'w': the fastest design",
        ),
    ],
)
def test_why_no_sites_will_do_is_said(changes: dict[str, Any], said: str) -> None:
    plan = coopt.solve(Instance.model_validate(apart(**changes)))
    assert plan.status == "infeasible"
    assert said in " ".join(plan.explanation)


def test_a_site_that_could_train_alone_with_more_power_is_named() -> None:
    table = apart(cluster={"gpu": "h100-sxm", "gpus": 64, "shares": 2}, workload__0__max_iteration_time_s=1.5)
    for site in table["site"]:
        site["power_mw"] = 0.04
    table["wan"][0] |= {"latency_ms": 10_000}
    plan = coopt.solve(Instance.model_validate(table))
    assert plan.status == "infeasible"
    assert (
        plan.explanation[0]
        == "no choice of sites meets all limits at once, but with more power at east there is a plan"
    )
    table["site"][0]["power_mw"] = 1.0
    assert coopt.solve(Instance.model_validate(table)).status == "optimal"


def test_what_looks_at_one_network_asks_for_the_site(answered: tuple[Instance, Plan]) -> None:
    instance, plan = answered
    refusal = r"evaluate is for one network, needs an instance without \[\[site\]\]"
    with pytest.raises(InstanceError, match=refusal):
        coopt.evaluate(instance)
    with pytest.raises(InstanceError, match="needs --part with one of 'east', 'west'"):
        coopt.faults(instance, plan)


@pytest.mark.parametrize("watts", [9.1, 33.3, 77.7])
def test_a_power_limit_that_is_just_reached_is_kept(watts: float) -> None:
    table = apart(network__optics=[{"name": "o", "gbit_s": 400, "reach_m": 500, "usd": 300, "w": watts}])
    table["site"][0] |= {"pue": 1.131, "power_mw": 0.06}
    table["site"][1] |= {"pue": 1.57, "power_mw": 0.06}
    first = coopt.solve(Instance.model_validate(table))
    assert len(first.couplings.sites) == 2
    for site in first.couplings.sites:
        (row,) = (row for row in table["site"] if row["name"] == site.site)
        row["power_mw"] = math.nextafter(site.facility_w / 1e6, math.inf)
    again = coopt.solve(Instance.model_validate(table))
    assert again.objective.value == pytest.approx(first.objective.value, rel=1e-12)


SHARED_OUT = {"cluster": {"gpu": "h100-sxm", "gpus": 96, "shares": 3}, "workload__0__global_batch": 96}
ROUND = [LINK | {"between": pair, "gbit_s": 10 + 5 * n} for n, pair in enumerate((["a", "b"], ["b", "c"], ["a", "c"]))]


@pytest.mark.parametrize("mode", ["sync", "overlap"])
@pytest.mark.parametrize("around", [False, True])
def test_a_lost_channel_slows_every_site_by_what_the_verifier_recomputes(around: bool, mode: str) -> None:
    table = apart(wan=[LINK | {"gbit_s": 12}], workload__0__options={"dp_mode": mode})
    if around:
        sites = [{"name": name, "power_mw": 0.036} for name in "abc"]
        table = apart(**SHARED_OUT, site=sites, wan=ROUND, workload__0__options={"dp_mode": mode})
    instance = Instance.model_validate(table)
    plan = coopt.solve(instance)
    ring = plan.couplings.ring
    assert len(ring.sites) == 2 + around
    slower = 0
    for n, link in enumerate(ring.wan):
        left = link.channels - 1
        fewer = {"channels": left, "usd": link.usd / link.channels * left, "w": link.w / link.channels * left}
        less = ring.model_copy(update={"wan": (*ring.wan[:n], link.model_copy(update=fewer), *ring.wan[n + 1 :])})
        checks = coopt.verify(instance, with_couplings(plan, ring=less)).checks
        seconds = [check for check in checks if check.name == "iteration-time"]
        for part, check in zip(plan.parts, seconds, strict=True):
            found = coopt.faults(instance, plan, part=part.name).faults
            (fault,) = (one for one in found if one.part == f"channel between {both(link.between)}")
            (run,) = fault.workloads
            assert fault.count == link.channels > 1
            assert run.iteration_time_s == pytest.approx(check.recomputed, rel=1e-9)
            assert run.within_bound == (check.recomputed <= run.bound_s * (1 + 1e-9))
            slower += fault.effect == "slower"
    assert slower


def test_without_its_only_channel_training_stops(answered: tuple[Instance, Plan]) -> None:
    instance, plan = answered
    assert plan.couplings.ring.wan[0].channels == 1
    for part in plan.parts:
        found = coopt.faults(instance, plan, part=part.name).faults
        assert [one.effect for one in found if one.part.startswith("channel between")] == ["stops"]


LOST_CHANNEL = {"survive": "channel", "slower": {"channel": 1.1}}


def test_a_plan_that_survives_the_loss_of_a_channel_lights_what_the_longer_bound_needs_and_one_more() -> None:
    slow = [LINK | {"gbit_s": 12}]
    plain = coopt.solve(Instance.model_validate(apart(wan=slow)))
    strict, longer = (
        Instance.model_validate(apart(wan=slow, robust=LOST_CHANNEL | {"slower": {"channel": by}})) for by in (1, 1.1)
    )
    plan = coopt.solve(strict)
    (bare,), (link,) = plain.couplings.ring.wan, plan.couplings.ring.wan
    assert (bare.channels > 1, link.channels) == (True, bare.channels + 1)
    exchange, steps_s = plan.couplings.ring.exchanges[0], 2 * link.latency_s
    rate_left = (link.channels - 1) * link.gbit_s * 1e9 / 8
    assert exchange.without_channel_s == pytest.approx(steps_s + exchange.sent_bytes / rate_left)
    assert coopt.solve(longer).objective.value < plan.objective.value
    found = coopt.faults(strict, plan, part="east").faults
    (fault,) = (one for one in found if one.part.startswith("channel between"))
    assert (fault.slower, fault.workloads[0].within_bound) == (1.0, True)
    (fault,) = (one for one in coopt.faults(strict, plain, part="east").faults if one.part == fault.part)
    assert not fault.workloads[0].within_bound
    assert "without any one channel" in rendered(plan_report(strict, plan))


@pytest.mark.parametrize("channels", [1, 3])
def test_a_plan_that_does_not_survive_the_loss_of_a_channel_is_rejected(channels: int) -> None:
    instance = Instance.model_validate(apart(wan=[LINK | {"gbit_s": 12}], robust=LOST_CHANNEL))
    plan = coopt.solve(instance)
    ring = plan.couplings.ring
    (link,) = ring.wan
    assert link.channels > channels
    fewer = link.model_copy(update={"channels": channels, "usd": channels * 2000.0, "w": channels * 50.0})
    verdict = coopt.verify(instance, with_couplings(plan, ring=ring.model_copy(update={"wan": (fewer,)})))
    assert "survives" in [check.name for check in verdict.failures]


def test_a_factor_for_all_losses_leaves_the_identity_of_a_question_without_channels() -> None:
    robust = {"survive": "nic", "slower": 1.25}
    each = dict.fromkeys(("nic", "leaf", "plane", "domain"), 1.25)
    one, old = (Instance.model_validate(question(robust=robust | {"slower": by})) for by in (1.25, each))
    assert one.sha256 == old.sha256


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (question(robust=LOST_CHANNEL), r"robust\.survive = 'channel': applies to channels between sites"),
        (apart(wan=[], robust=LOST_CHANNEL), r"robust\.survive = 'channel': .* \[\[wan\]\]"),
        (apart(robust={"survive": ["channel", "nic"]}), r"robust\.survive = 'nic'"),
        (apart(robust={"slower": {"channel": 2}}), r"robust\.slower\.channel = 2: .* needs 'channel'"),
    ],
)
def test_the_loss_of_channels_that_nobody_has_is_refused(table: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Instance.model_validate(table)


FAR = [
    {"name": "near", "gbit_s": 400, "reach_m": 4e4, "usd": 3000, "w": 15},
    {"name": "far", "gbit_s": 400, "reach_m": 1.2e5, "usd": 4000, "w": 19},
    {"name": "farther", "gbit_s": 400, "reach_m": 8e5, "usd": 6000, "w": 21},
]
CORE = {"switch": "16-port", "optic": "400g-199", "gbit_s_per_gpu": 1}


def bordered(**changes: Any) -> dict[str, Any]:
    """The two sites, whose six channels of 80 km end in a border each."""
    link = LINK | {"gbit_s": 12, "km": 80, "optics": FAR}
    table = apart(**{"wan": [link], "sharing": {"core": CORE}} | changes)
    for site in table["site"]:
        site["power_mw"] *= 1.2
    return table


@cache
def with_borders() -> tuple[Instance, Plan]:
    instance = Instance.model_validate(bordered())
    return instance, coopt.solve(instance)


def test_channels_end_in_ports_and_modules_that_are_bought() -> None:
    instance, plan = with_borders()
    (link,), borders = plan.couplings.ring.wan, plan.couplings.cores
    assert (link.optic, link.modules) == ("far", 2 * link.channels)
    assert [border.site for border in borders] == ["east", "west"]
    for border, part in zip(borders, plan.parts, strict=True):
        core, leaves = border.core, part.design.fabric.tier[0].switches
        (joined,) = core.islands
        assert core.channel_ports == link.channels <= core.ports == joined.per_leaf * leaves
        assert core.switches == math.ceil((core.ports + core.channel_ports) / 16)
    counts = {item.item: item.count for item in plan.cost.items}
    fabrics = [part.design.fabric for part in plan.parts]
    ends = sum(2 * border.core.ports for border in borders) + sum(fabric.transceiver_count for fabric in fabrics)
    boxes = sum(border.core.switches for border in borders) + sum(fabric.switch_count for fabric in fabrics)
    assert (counts["far"], counts["400g-199"], counts["16-port"]) == (link.modules, ends, boxes)
    assert coopt.verify(instance, plan).accepted
    shown = rendered(plan_report(instance, plan))
    assert re.search(r"Border switches\n\n.* links from each leaf .*\n.*\n +east .* 3 by 400g-199 ", shown)
    bare = [border.core.islands[0].model_copy(update={"per_leaf": 0}) for border in borders]
    cores = [border.core.model_copy(update={"islands": (links,)}) for border, links in zip(borders, bare, strict=True)]
    leafless = tuple(border.model_copy(update={"core": core}) for border, core in zip(borders, cores, strict=True))
    assert re.search(
        r"\n +east +1 x 16-port +- ", rendered(plan_report(instance, with_couplings(plan, cores=leafless)))
    )
    plain = rendered(plan_report(*solved_without(instance)))
    assert ["optics of channels" in " ".join(text.split()) for text in (shown, plain)] == [False, True]


def solved_without(instance: Instance) -> tuple[Instance, Plan]:
    """The question without borders, with its answer."""
    table = instance.model_dump(by_alias=True) | {"sharing": {}}
    for link in table["wan"]:
        link |= {"km": None, "optics": ()}
    plain = Instance.model_validate(table)
    return plain, coopt.solve(plain)


def test_a_lost_link_into_a_border_counts_where_channels_need_all_of_them() -> None:
    instance, plan = with_borders()
    with pytest.raises(InstanceError, match=r"core at wast: .*'east', 'west'; .*at east' .*at west'"):
        coopt.faults(instance, plan, part="core at wast")
    lit = plan.couplings.ring.wan[0].channels
    for border, effect in zip(plan.couplings.cores, ("slower", "none"), strict=True):
        found = coopt.faults(instance, plan, part=f"core at {border.site}").faults
        assert (border.core.ports > lit) == (effect == "none")
        stopped = "stops" if border.core.switches == 1 else "slower"
        assert [(one.part.split()[0], one.effect) for one in found] == [("link", effect), ("border", stopped)]
        assert ("second border switch" in found[1].remedy) == (stopped == "stops")


def test_a_site_that_trains_alone_loses_nothing_with_its_border() -> None:
    instance = Instance.model_validate(bordered())
    strong = [site.model_copy(update={"power_mw": 1.0}) for site in instance.site]
    instance = instance.model_copy(update={"site": tuple(strong)})
    plan = coopt.solve(instance)
    (border,) = plan.couplings.cores
    found = coopt.faults(instance, plan, part=f"core at {border.site}").faults
    assert [(one.part.split()[0], one.effect) for one in found] == [("link", "none"), ("border", "none")]


def test_fibre_that_is_just_as_long_as_an_optic_reaches_has_it() -> None:
    """16.1 km in metres is 16100.000000000002 in floating point."""
    far = {"name": "far", "gbit_s": 400, "reach_m": 16100, "usd": 4000, "w": 19}
    instance = Instance.model_validate(bordered(wan=[LINK | {"gbit_s": 12, "km": 16.1, "optics": far}]))
    plan = coopt.solve(instance)
    assert plan.couplings.ring.wan[0].optic == "far"
    assert coopt.verify(instance, plan).accepted


def test_a_channel_of_three_times_the_rate_of_a_port_takes_three_modules() -> None:
    """99.9 / 33.3 is 3.0000000000000004 in floating point."""
    instance = Instance.model_validate(bordered())
    boxes = tuple(box.having(port_gbit_s=33.3) for box in instance.network.switches)
    optics = tuple(optic.having(gbit_s=33.3) for optic in instance.wan[0].optics)
    link = instance.wan[0].having(gbit_s=99.9, optics=optics)
    instance = instance.having(network={"switches": boxes})
    assert [end_of(instance, link).modules for end_of in (channel_end, checked_end)] == [3, 3]


@pytest.mark.parametrize("gpus_per_nic", [1, 3, 9, 18])
def test_links_into_a_border_are_as_many_as_nics_that_gpus_share_fill(gpus_per_nic: int) -> None:
    """A ninth of 400 Gbit/s has no last digit."""
    instance = Instance.model_validate(bordered())
    (nic,), box = instance.network.nics, core_switch(instance)
    assert nic.gbit_s == box.port_gbit_s
    shared = instance.having(network={"gpus_per_nic": (gpus_per_nic,)})
    assert [link_counts(shared, n * gpus_per_nic)[-1] for n in (1, 2, 3)] == [1, 2, 3]
    assert link_counts(shared, 3 * gpus_per_nic - 1)[-1] == max(2, link_counts(shared, 3 * gpus_per_nic - 1)[0])


def test_borders_with_too_few_links_for_the_channels_are_named() -> None:
    """A port for each channel, of which a site has fewer than it needs slow channels."""
    slow = LINK | {"gbit_s": 1, "km": 80, "optics": FAR, "most": 90, "w": 0}
    plan = coopt.solve(Instance.model_validate(bordered(wan=[slow])))
    assert plan.status == "infeasible"
    assert "as many links into a border" in " ".join(plan.explanation)


def test_no_rate_into_borders_gives_a_cheaper_plan_than_the_lowest() -> None:
    """Each rate asks for a number of links, up to one for each GPU."""
    plans = [
        coopt.solve(Instance.model_validate(bordered(sharing={"core": CORE | {"gbit_s_per_gpu": rate}})))
        for rate in (1, 100, 130, 400)
    ]
    values = [plan.objective.value for plan in plans]
    assert values == sorted(values)
    assert values[0] < values[-1]
    links = [border.core.islands[0].links for border in plans[0].couplings.cores]
    assert plans[0].couplings.ring.wan[0].channels == min(links)
    assert coopt.verify(Instance.model_validate(bordered()), plans[0]).accepted


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"sharing": {"core": CORE | {"optic": None}}}, r"sharing\.core\.optic: is missing, but"),
        ({"sharing": {}}, r"wan\[0\]\.optics: .*, needs \[sharing\.core\]"),
        ({"wan": [LINK | {"optics": FAR}]}, r"wan\[0\]\.km: is missing, needs"),
        ({"wan": [LINK | {"km": 900, "optics": FAR}]}, r"wan\[0\]\.km = 900: .* 800 km"),
        ({"wan": [LINK | {"km": 9, "optics": "800g-zr"}]}, r"wan\[0\]\.optics: .* 400 Gbit/s .* 16-port"),
        (
            {"network__switches": [switch(16, 11000) | {"protocol": "infiniband"}]},
            r"sharing\.core\.switch = '16-port': .* Ethernet",
        ),
    ],
)
def test_a_border_that_cannot_be_built_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Instance.model_validate(bordered(**changes))


@pytest.mark.parametrize(
    "lie", [{"switches": 2, "power_w": 320.0}, {"channel_ports": 0}, {"ports": 9}, {"power_w": 0.0}, {"optic": "far"}]
)
def test_a_border_of_other_figures_is_rejected(lie: dict[str, Any]) -> None:
    instance, plan = with_borders()
    east, west = plan.couplings.cores
    told = east.model_copy(update={"core": east.core.model_copy(update=lie)})
    assert not coopt.verify(instance, with_couplings(plan, cores=(told, west))).accepted
    assert not coopt.verify(instance, with_couplings(plan, cores=(west,))).accepted


@pytest.mark.parametrize("lie", [{"optic": "farther"}, {"modules": 0}, {"optic": None}])
def test_channels_with_other_modules_are_rejected(lie: dict[str, Any]) -> None:
    instance, plan = with_borders()
    ring = plan.couplings.ring
    told = ring.model_copy(update={"wan": tuple(link.model_copy(update=lie) for link in ring.wan)})
    assert not coopt.verify(instance, with_couplings(plan, ring=told)).accepted


def test_lengths_choose_the_cables_of_networks_that_may_be_the_best_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 51 networks of the shipped question two are worth their cables; both sites have them from the hall."""
    laid: list[int] = []

    def noted(local: Instance, family: Family, uplinks: int, *how: Any) -> Iterator[Family]:
        laid.append(uplinks)
        return laid_each(local, family, uplinks, *how)

    monkeypatch.setattr("coopt.solving.sites.options.laid_each", noted)
    instance = coopt.load("instances/questions/two-sites.toml")
    plan = coopt.solve(instance.having(network={"cables": "hall"}))
    assert (plan.status, len(laid)) == ("optimal", 2)
    assert plan.objective.value < coopt.solve(instance).objective.value
