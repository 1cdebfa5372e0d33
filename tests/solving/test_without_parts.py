"""Iteration times without a part, spares of a plan, and gradients over direct links by hand."""

from itertools import combinations

import networkx as nx
import pytest

import coopt
from coopt.instance.schema import Instance
from coopt.instance.texts import InstanceError
from coopt.network.direct_shapes import fabric
from coopt.network.schedules.board import board_of
from coopt.network.schedules.trees import multitree
from coopt.perf.mapping import held_parameters
from coopt.plan.schema import Plan
from coopt.plan.traffic import Fault, Trained
from coopt.report.faults import faults_headline, faults_report
from coopt.report.words import rendered
from coopt.solving.answer import solve
from coopt.solving.plan_routes import route_plan
from coopt.solving.plan_traffic import train_on
from coopt.solving.without_parts import _without_switch, plan_faults
from coopt.traffic.ranks import split_of
from tests.conftest import ask, switch
from tests.kinds import solved


def cluster(fabric: str, radix: int = 32, **changes: object) -> Instance:
    return ask(
        **{
            "cluster__gpus": 128, "workload__0__global_batch": 128, "workload__0__max_iteration_time_s": 20.0,
            "workload__0__mapping": {"tp": 4, "pp": 2}, "network__hb_domains": "hgx-h100-8", "network__fabrics": fabric,
            "network__switches": switch(radix, 5000), "network__oversubscription": 1.0,
            **changes,
        }
    )  # fmt: skip


def faults(instance: Instance) -> dict[str, list[Fault]]:
    plan = solve(instance)
    found: dict[str, list[Fault]] = {}
    for fault in plan_faults(instance, plan).faults:
        found.setdefault(fault.part, []).append(fault)
    return found


def test_a_nic_slows_what_crosses_domains_and_nothing_else() -> None:
    instance = cluster("rail-only")
    plan = solve(instance)
    (nic,) = faults(instance)["NIC"]
    (workload,) = plan.workloads
    slower = nic.workloads[0].iteration_time_s
    # 8 NICs carry for 7, and pass through the domain once: 8/7 + 50/450
    extra = 8 / 7 + 50 / 450 - 1
    crossing = sum(workload.breakdown_s[part] for part in ("dp", "pp", "embedding", "bubble"))
    assert workload.iteration_time_s < slower <= workload.iteration_time_s + extra * crossing
    assert nic.forwarded


def test_what_is_lost_stops_training_slows_it_or_costs_a_restart_alone() -> None:
    """A Clos leaf takes whole domains with it, one of a rail does not; a domain without a spare is never survived."""
    clos, tight = faults(cluster("clos")), cluster("rail-only")
    rails, report = faults(tight), plan_faults(tight, solve(tight))
    effects = {part: {fault.effect for fault in each} for part, each in clos.items()}
    assert (effects["leaf switch"], effects["spine switch"]) == ({"stops"}, {"slower"})
    assert not any("spare" in fault.remedy for fault in clos["leaf switch"])  # its links lead to that leaf as well
    assert {(fault.effect, fault.restarts) for fault in rails["leaf switch"]} == {("slower", True)}
    apart = {"GPU", "NIC", "link from NIC to leaf", "leaf switch", "HB domain"}
    assert {part for part, each in clos.items() if all(fault.restarts for fault in each)} == apart
    assert {part for part, each in clos.items() if not any(fault.restarts for fault in each)} == {*clos} - apart
    assert {*clos} - apart == {"link from leaf to spine", "spine switch"}
    assert (report.spares.survives_gpu, report.spares.same_rank_gpus) == (False, 8)
    assert {fault.effect for fault in rails["GPU"]} == {"stops"}
    (domain,) = rails["HB domain"]
    assert (domain.effect, domain.count, domain.workloads[0].iteration_time_s) == ("stops", 16, None)


def test_a_lost_uplink_slows_by_the_load_of_those_that_are_left() -> None:
    """A leaf with room to spare loses an uplink for nothing."""
    charge = {"network__charge": "loads", "network__routing": "spray", "network__spray_efficiency": 1.0}
    instance = cluster("clos", **charge)
    plan = solve(instance)
    (link,) = faults(instance)["link from leaf to spine"]
    up = plan.design.fabric.tier[0].uplinks_per_switch
    before, after = (route_plan(instance, plan).collectives, link.slowdown)
    loads = max(one.charged for one in before if one.kind == "pp")
    assert 1.0 <= after <= max(1.0, loads * up / (up - 1)) + 1e-9


HB = {"name": "hb", "size": 8, "gbyte_s": 450, "usd_per_gpu": 10, "w_per_gpu": 1}


def test_an_idle_gpu_takes_over() -> None:
    """96 GPUs on domains of 7 with 6 in use."""
    instance = cluster(
        "rail-only",
        cluster__gpus=96, workload__0__global_batch=96, workload__0__mapping={"tp": 2, "pp": 2},
        network__hb_domains={**HB, "size": 7},
    )  # fmt: skip
    plan = solve(instance)
    report = plan_faults(instance, plan)
    assert report.spares.idle_gpus_per_domain == 1
    gpu = next(fault for fault in report.faults if fault.part == "GPU")
    assert (gpu.effect, gpu.workloads[0].iteration_time_s) == (
        "none",
        pytest.approx(plan.workloads[0].iteration_time_s),
    )
    assert "every other domain" in gpu.remedy


def test_counts_cover_every_part_of_the_plan() -> None:
    instance = cluster("rail-optimized")
    plan = solve(instance)
    found = faults(instance)
    tiers = plan.design.fabric.tier
    assert sum(f.count for f in found["leaf switch"]) == tiers[0].switches
    assert sum(f.count for f in found["spine switch"]) == tiers[1].switches
    assert sum(f.count for f in found["link from leaf to spine"]) == tiers[1].links
    assert sum(f.count for f in found["NIC"]) == tiers[0].links


def test_a_workload_that_leaves_its_rail_is_named_where_rails_are_apart() -> None:
    """Interleaved stages, two in each of three domains: the last one and the first are on different rails."""
    changes = {
        "cluster__gpus": 24, "workload__0__global_batch": 24, "workload__0__max_iteration_time_s": 50.0,
        "workload__0__model": {**ask().workload[0].model.model_dump(), "layers": 12, "tied_embeddings": False},
        "workload__0__mapping": {"tp": 4, "pp": 6, "interleave": 2}, "network__hb_domains": "hgx-h100-8",
        "network__switches": "64x400g", "network__oversubscription": 1.0,
    }  # fmt: skip
    instance, joined = (ask(**changes, network__fabrics=fabric) for fabric in ("rail-only", "clos"))
    plan = solve(instance)
    assert plan.workloads[0].placement["pp"] == (2, 3)
    found = plan_faults(instance, plan)
    (named,) = found.unaligned
    assert (named.workload, named.traffic) == ("w", ("pp",))
    assert "pipeline hops traffic of w" in " ".join(rendered(faults_report(found)).split())
    assert plan_faults(joined, solve(joined)).unaligned == ()


def test_no_iteration_is_said_to_go_on_where_every_loss_stops_it() -> None:
    instance = ask(
        cluster__gpus=8, workload__0__global_batch=8, network__hb_domains="hgx-h100-8", network__fabrics="rail-only"
    )
    headline = faults_headline(plan_faults(instance, solve(instance)))
    assert headline == "Training stops after the loss of a GPU or an HB domain."


def test_no_iteration_passes_through_a_core() -> None:
    instance, plan = solved("fleet")
    assert plan.couplings.cores
    for coupling in plan.couplings.cores:
        found = plan_faults(instance, plan, part=coupling.name)
        link, box = found.faults
        assert (link.part, link.count) == ("link into the core", coupling.core.ports)
        assert (box.part, box.count) == ("core switch", coupling.core.switches)
        joined = [part for part in plan.parts if plan.couplings.joint(part) and part.phase == coupling.phase]
        runs = [run for part in joined if part.site == coupling.site for run in part.workloads]
        for fault in found.faults:
            told = [(workload.name, workload.iteration_time_s, workload.within_bound) for workload in fault.workloads]
            assert told == [(run.name, run.iteration_time_s, True) for run in runs]
            assert (fault.effect, fault.restarts) == ("none", False)
        assert found.spares is None
        text = rendered(faults_report(found))
        assert "Spares" not in text
        assert "training goes on" in text


@pytest.mark.parametrize(
    ("links", "switches", "says"),
    [
        ({"a": 5, "b": 9, "c": 3}, 4, "any two islands still share at least 2 core switches"),
        ({"a": 5, "b": 9}, 4, "any two islands still share at least 3 core switches"),
        ({"a": 1, "b": 9}, 3, "islands with one link may be cut off until it is replaced"),
        ({"a": 5, "b": 9}, 1, "no two islands are joined until it is replaced"),
        ({"a": 5}, 1, "nothing else is joined to the core"),
    ],
)
def test_islands_meet_without_a_switch_of_their_core(links: dict[str, int], switches: int, says: str) -> None:
    """Links are laid as docs/partition.md says: on the first switches, or one on each and the rest anywhere."""
    assert _without_switch(links, switches) == says
    places = [set(range(min(count, switches))) for count in links.values()]
    pairs = list(combinations(places, 2))
    worst = min(len((one & other) - {lost}) for one, other in pairs for lost in range(switches)) if pairs else 0
    assert worst == int("".join(c for c in says if c.isdigit()) or 0)


def test_a_core_is_no_part_that_trains() -> None:
    instance, plan = solved("fleet")
    name = plan.couplings.cores[0].name
    for answer in (coopt.traffic, coopt.simulate, coopt.route):
        with pytest.raises(InstanceError, match=f"--part {name}: .*trains nothing"):
            answer(instance, plan, part=name)


def planned(**mapping: object) -> tuple[Instance, Plan]:
    """Four domains of 16 with TP inside and DP across."""
    instance = ask(
        network__hb_domains="h100-hb16", network__fabrics="rail-only", network__switches="64x400g",
        network__oversubscription=1.0, workload__0__max_iteration_time_s=100.0, workload__0__allow_tp_across=False,
        workload__0__mapping={"tp": 8, "pp": 1, "zero": 0, **mapping},
    )  # fmt: skip
    return instance, solve(instance)


def trained(graph: nx.Graph, **mapping: object) -> tuple[Trained, Instance, Plan]:
    instance, plan = planned(**mapping)
    board = board_of(graph)
    (one,) = train_on(instance, plan, board, multitree(board, 0), latency_s=1e-6)
    return one, instance, plan


def test_gradients_take_what_the_schedule_takes_for_all_parameters() -> None:
    """On a ring of four: two steps a phase; every domain has all gradients of the model, 4 bytes each."""
    one, instance, plan = trained(fabric("ring:4"))
    split = split_of(instance.workload[0], plan.workloads[0])
    total = 4 * 8 * float(held_parameters(instance.workload[0], split.mapping)[0])
    steps = multitree(board_of(fabric("ring:4")), 0).steps
    assert steps == 2
    assert one.between_domains_s == pytest.approx(2 * steps * (total / 4 / 50e9 + 1e-6))


def test_only_the_gradients_move_to_other_links() -> None:
    one, _, plan = trained(fabric("full:4"))
    (workload,) = plan.workloads
    rest = sum(seconds for part, seconds in workload.breakdown_s.items() if part != "dp")
    assert one.planned_time_s == workload.iteration_time_s
    assert rest + one.between_domains_s <= one.iteration_time_s <= rest + one.between_domains_s + 0.1 * rest


def test_more_links_are_never_slower() -> None:
    times = [trained(fabric(text))[0].iteration_time_s for text in ("ring:4", "full:4")]
    assert times == sorted(times, reverse=True)


def test_sharded_parameters_come_back_in_sixteen_bits() -> None:
    whole, sharded = trained(fabric("ring:4"))[0], trained(fabric("ring:4"), zero=1)[0]
    assert sharded.between_domains_s == pytest.approx(whole.between_domains_s * 6 / 8, rel=1e-3)


def test_another_number_of_domains_is_refused() -> None:
    with pytest.raises(InstanceError, match=r"5 HB domains, but .* has 4"):
        trained(fabric("ring:5"))


def test_a_plan_whose_pipeline_crosses_domains_is_refused() -> None:
    instance = ask(
        network__hb_domains="h100-hb16",
        workload__0__max_iteration_time_s=100.0,
        workload__0__mapping={"tp": 4, "pp": 8, "dp": 2},
    )
    board = board_of(fabric("ring:4"))
    plan = solve(instance)
    assert plan.workloads[0].placement["pp"][1] > 1
    with pytest.raises(InstanceError, match="PP crosses domains"):
        train_on(instance, plan, board, multitree(board, 0), latency_s=1e-6)
