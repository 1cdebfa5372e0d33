"""Islands and their core in one hall: the length of every cable, by the places in the drawing and by the graph."""

import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import coopt
from coopt.instance.schema import Instance
from coopt.network.halls import CoreHall, core_halls, core_reach_notes, placed_parts, site_halls
from coopt.network.plan_networks import part_network
from coopt.plan.couplings import Part, SharedCore
from coopt.plan.parts import SwitchChoice
from coopt.plan.schema import Plan
from coopt.plan.store import read_plan
from coopt.report.network_drawings import ROW
from coopt.report.page.evidence import site_hall_caption, site_hall_drawing
from tests.changes import with_couplings
from tests.conftest import ask, example_count, small_model
from tests.network.hall_oracle import Standing, leaf_in, lengths_of, standing
from tests.solving.fleets import CORE_ENDS, fleets
from tests.verifier.test_partition_mutations import CASES as PARTITIONS

ROOT = Path(__file__).parents[2]


@st.composite
def cored(draw: st.DrawFn) -> Instance:
    """Islands with a core, in phases and at sites, in halls with racks of switches or without."""
    sides = draw(st.sampled_from([(), (), CORE_ENDS]))
    instance = draw(fleets(phases=(1, 1, 2), sites=(0, 0, 2), cores=True, many_sided=sides))
    assume(instance.sharing.core is not None)
    units = draw(st.sampled_from([None, 1.0, 4.0]))
    switches = tuple(one.model_copy(update={"rack_units": units, "w": 300.0}) for one in instance.network.switches)
    own: dict[str, Any] = {"racks_per_row": draw(st.sampled_from([2, 3, 5])), "switch_rack_units": 5.0}
    own |= {"rack_pitch_m": 1.5, "rise_m": 1.0, "switch_rack_kw": draw(st.sampled_from([None, 0.9]))}
    changed = {"switches": switches, "hall": instance.network.hall.model_copy(update=own)}
    return instance.model_copy(update={"network": instance.network.model_copy(update=changed)})


@settings(max_examples=example_count(100, 3))
@given(cored())
def test_every_cable_into_a_core_is_as_long_as_the_drawing_says(instance: Instance) -> None:
    plan = coopt.solve(instance, reasons=False)
    assume(plan.couplings.cores)
    halls = list(core_halls(instance, plan, placed_parts(instance, plan)))
    assert [hall.coupling for hall in halls] == list(plan.couplings.cores)
    for hall in halls:
        check(instance, plan, hall)
        assert hall.cables.total() == hall.coupling.core.ports
    check_bill(instance, plan, halls)


def check(instance: Instance, plan: Plan, hall: CoreHall) -> None:
    """A hall against the places that its drawing has, and the graphs of its islands."""
    shared, rows, drawing = hall.coupling, instance.network.hall, site_hall_drawing(hall)
    lines = {round(y / ROW): name for y, name in drawing.rows}
    racks = {line: [part for part in drawing.parts if round(part.y / ROW) == line] for line in lines}
    (core,) = (line for line, name in lines.items() if name == "core")
    own = sorted(int(part.name.removeprefix("rack/")) for part in racks[core])
    assert {part.kind for part in racks[core]} == {"switch"}
    last = [one for one in plan.couplings.cores if one.site == shared.site][-1]
    expected = core_racks(instance, last)
    bays = [one.name for one in instance.workload]
    width = len(bays) * rows.racks_per_row
    assert len(own) == min(width, len(expected))  # the first row of the core is drawn
    assert abs((width - 1 - own[-1]) - own[0]) <= 1, "it is in the middle"
    islands = {part.slot: part for part in plan.parts if part.site == shared.site}
    assert len(lines) == len(islands) + 1
    first_rows = [name for line, name in sorted(lines.items(), reverse=True) if line != core]
    stands = {slot: stand(instance, plan, part) for slot, part in islands.items()}
    now = {one.part.slot: one for one in hall.links}
    for slot, first in zip(islands, first_rows, strict=True):
        row, at = math.ceil(len(expected) / width), bays.index(slot) * rows.racks_per_row
        assert first == f"R{row + 1:02}" + f"-{at + 1:02}" * (at > 0), "islands stand side by side behind the core"
        end = stands[slot]
        assert end.switch_spots <= next(block.amid for block in hall.blocks if block.name == slot)
        if slot in now:
            part = now[slot].part
            spots = starts(plan, part, stand(instance, plan, part), end)
            from_here = (divmod(spot, rows.racks_per_row) for spot in spots.elements())
            ways = [((row, at + place), (-1, (width - 1) // 2)) for row, place in from_here]
            assert now[slot].cables == lengths_of(rows, ways)
    assert set(now) == {one.workload for one in shared.core.islands}
    if hall.switch_racks is not None:
        assert sum(core_racks(instance, shared)) == shared.core.switches
        assert hall.switch_racks == len(core_racks(instance, shared))
    caption = site_hall_caption(hall)
    assert all(f"{slot} from {row}" in caption for slot, row in zip(islands, first_rows, strict=True))


def stand(instance: Instance, plan: Plan, part: Part) -> Standing:
    """A part in a hall alone, as it will be from now on."""
    found = part_network(instance, plan, "test", part.name)
    (core,) = (one.core for one in plan.couplings.cores if (one.site, one.phase) == (part.site, part.phase))
    (joined,) = (one for one in core.islands if one.workload == part.slot)
    (optic,) = (one for one in instance.network.optics if one.name == (joined.optic_below or core.optic))
    rate = next(one.port_gbit_s for one in instance.network.switches if one.name == core.switch.name)
    leaf_w = math.ceil(joined.per_leaf / optic.links_of(rate)) * optic.w
    return standing(found.question, found.family, found.uplinks, leaf_w)


def starts(plan: Plan, part: Part, now: Standing, end: Standing) -> Counter[int]:
    """The links of a part into the core, one by one, by the spot where each starts once the part has grown."""
    (core,) = (one.core for one in plan.couplings.cores if (one.site, one.phase) == (part.site, part.phase))
    (joined,) = (one for one in core.islands if one.workload == part.slot)
    if not joined.per_leaf:
        built = part.design.racks or 0
        return Counter({end.domains[(built - 1) // 2]: joined.links})
    becomes = leaf_in(now.graph, end.graph)
    found = Counter[int]()
    for then in becomes.values():
        found[end.switches[then]] += joined.per_leaf
    assert found.total() == joined.links
    return found


def core_racks(instance: Instance, shared: SharedCore) -> list[int]:
    """How many switches of a core each of its racks holds; one place where they have no height."""
    rows, core = instance.network.hall, shared.core
    box = next(one for one in instance.network.switches if one.name == core.switch.name)
    optic = next(one for one in instance.network.optics if one.name == core.optic)
    if not box.rack_units:
        return [core.switches]
    in_module = optic.links_of(box.port_gbit_s)
    modules = sum(math.ceil(one.links / in_module) for one in core.islands)
    w, kept_w = box.w + modules * optic.w / core.switches, 1e3 * (rows.switch_rack_kw or math.inf)
    held: list[int] = []
    for _ in range(core.switches):
        fits = held and (held[-1] + 1) * box.rack_units <= rows.switch_rack_units and (held[-1] + 1) * w <= kept_w
        if fits:
            held[-1] += 1
        else:
            held.append(1)
    return held


def check_bill(instance: Instance, plan: Plan, halls: list[CoreHall]) -> None:
    """Every cable is on the purchase list once: those that a phase adds, none of which an earlier one has."""
    bill = coopt.bom(instance, plan)
    cores = [network for network in bill.networks if network.fabric == "core"]
    if not instance.phase and not instance.sharing.discount:
        assert math.fsum(network.usd for network in bill.networks) == pytest.approx(plan.cost.capex_usd)
    before: dict[str, Counter[int]] = {}
    for hall, network in zip(halls, cores, strict=True):
        (tier,) = network.tier
        assert Counter({one.length_m: one.count for one in tier.cables}) == hall.cables
        assert (tier.switches, tier.links) == (hall.coupling.core.switches, hall.coupling.core.ports)
        built = before.setdefault(hall.coupling.site or "", Counter())
        if len(plan.couplings.cores) > len({one.coupling.site for one in halls}):
            assert {one.length_m: one.added for one in tier.cables} == {
                one.length_m: max(0, one.count - built[one.length_m]) for one in tier.cables
            }
        built |= hall.cables


def test_ends_that_do_not_reach_the_core_are_named() -> None:
    """Beside `link_reach_m`, by which optics are chosen, a hall of long rows takes cables farther than they reach."""
    instance = coopt.load(ROOT / "instances" / "fleet-core-growth.toml", {"network.hall.row_pitch_m": 600.0})
    plan = read_plan(ROOT / "benchmarks" / "library" / "fleet-core-growth.plan.json")
    halls = list(core_halls(instance, plan, placed_parts(instance, plan)))
    optic = next(one for one in instance.network.optics if one.name == "400g-dr4")
    beyond = sum(count for hall in halls for m, count in hall.cables.items() if m > optic.reach_m)
    assert beyond
    (note,) = core_reach_notes(halls)
    assert note.count(f"{beyond} cables") == note.count("400g-dr4 (500 m)") == 1
    shipped = coopt.load(ROOT / "instances" / "fleet-core-growth.toml")
    assert not list(core_reach_notes(core_halls(shipped, plan, placed_parts(shipped, plan))))


@pytest.mark.parametrize("other", [{"optic": "?"}, {"switch": SwitchChoice(name="?")}], ids="-".join)
def test_a_core_of_products_that_no_list_has_is_refused(other: dict[str, Any]) -> None:
    instance = PARTITIONS["core"]()
    plan = coopt.solve(instance)
    (core,) = plan.couplings.cores
    forged = with_couplings(plan, cores=(core.model_copy(update={"core": core.core.model_copy(update=other)}),))
    with pytest.raises(coopt.InstanceError, match="this instance allows"):
        placed_parts(instance, forged)


def test_a_core_whose_islands_fill_nobody_knows_how_many_racks_has_no_lengths() -> None:
    shipped = coopt.load(ROOT / "instances" / "fleet-core-growth.toml")
    domains = tuple(one.model_copy(update={"racks": None}) for one in shipped.network.hb_domains)
    instance = shipped.model_copy(update={"network": shipped.network.model_copy(update={"hb_domains": domains})})
    plan = read_plan(ROOT / "benchmarks" / "library" / "fleet-core-growth.plan.json")
    parts = tuple(
        part.model_copy(update={"design": part.design.model_copy(update={"racks": None})})
        for part in plan.parts
        if part.design is not None
    )
    asked = plan.instance.model_copy(update={"sha256": instance.sha256})
    plan = plan.model_copy(update={"instance": asked, "parts": parts})
    assert not list(core_halls(instance, plan, placed_parts(instance, plan)))
    bill = coopt.bom(instance, plan)
    assert any(what.startswith("lengths of cables") for what in bill.not_counted)


@pytest.mark.parametrize("name", ["fleet-core-growth", "fleet-131k-w8-core"])
def test_shipped_cores_stand_where_their_drawing_says(name: str) -> None:
    instance = coopt.load(ROOT / "instances" / f"{name}.toml")
    plan = read_plan(ROOT / "benchmarks" / "library" / f"{name}.plan.json")
    for hall in core_halls(instance, plan, placed_parts(instance, plan)):
        assert hall.cables.total() == hall.coupling.core.ports
        assert hall.switch_racks is not None
        assert len({block.first_place for block in hall.blocks}) == len(hall.blocks)


@pytest.mark.parametrize("name", ["phased-128", "fleet-3-phases-2-sites", "fleet-core-growth"])
def test_every_site_has_a_hall_whose_rows_hold_what_stands_there_in_the_end(name: str) -> None:
    """Row by row, or side by side behind a core, with as many racks as each network has alone, and racks of switches
    where it has them."""
    instance = coopt.load(ROOT / "instances" / f"{name}.toml")
    plan = read_plan(ROOT / "benchmarks" / "library" / f"{name}.plan.json")
    halls = list(site_halls(instance, plan))
    assert [hall.site for hall in halls] == list(dict.fromkeys(part.site for part in plan.parts))
    for hall in halls:
        last = {part.slot: part for part in plan.parts if part.site == hall.site}
        assert [block.name for block in hall.blocks if not block.is_core] == list(last)
        free, per_row, bays = 0, hall.rows.racks_per_row, [one.name for one in instance.workload]
        for block in hall.blocks:
            assert block.first_row == free
            free = free if plan.couplings.cores and free else free + math.ceil(block.racks / block.per_row)
            if not block.is_core:
                assert block.first_place == (bays.index(block.name) * per_row if plan.couplings.cores else 0)
                alone = stand_alone(instance, plan, last[block.name])
                assert block.racks == alone.racks
                assert alone.switch_spots <= block.amid
        caption, drawing = site_hall_caption(hall), site_hall_drawing(hall)
        assert ("last phase" in caption) == bool(instance.phase)
        assert all(f"{block.name} from R{block.first_row + 1:02}" in caption for block in hall.blocks)
        dark = {part.name for part in drawing.parts if part.kind == "switch"}
        assert dark == {
            part.name
            for part in drawing.parts
            for block in hall.blocks
            for spot in [int(part.name.removeprefix("rack/")) - block.first_row * hall.width - block.first_place]
            if spot in block.amid and spot < block.per_row
        }


def stand_alone(instance: Instance, plan: Plan, part: Part) -> Standing:
    """A network in a hall alone."""
    if plan.couplings.cores:
        return stand(instance, plan, part)
    found = part_network(instance, plan, "test", part.name)
    return standing(found.question, found.family, found.uplinks)


def test_an_island_of_a_single_domain_stands_in_the_hall_too() -> None:
    """With a core, behind which it stands, or without: its rack begins a row, and it has no switches."""
    named = [
        {"name": name, "model": small_model(), "global_batch": 64, "max_iteration_time_s": 10.0, "gpus": gpus}
        for name, gpus in (("small", 8), ("large", 64))
    ]
    for core in (None, {"switch": "16-port", "gbit_s_per_gpu": 50}):
        sharing = {"mode": "partition"} | ({} if core is None else {"core": core})
        instance = ask(
            cluster__gpus=72, workload=named, network__hb_domains="hgx-h100-8", sharing=sharing,
            network__nics_per_gpu=1, network__hall={"racks_per_row": 1},
        )  # fmt: skip
        plan = coopt.solve(instance)
        assert [part.design.fabric.tiers > 0 for part in plan.parts if part.design] == [False, True]
        (hall,) = site_halls(instance, plan)
        small, large = (block for block in hall.blocks if not block.is_core)
        assert (small.name, small.racks, small.amid) == ("small", 1, frozenset())
        places = [(block.first_row, block.first_place) for block in (small, large)]
        assert places == ([(0, 0), (1, 0)] if core is None else [(1, 0), (1, 1)])
        network = coopt.bom(instance, plan).networks[0]
        assert (network.fabric, network.tier, network.switch_racks) == ("none", (), 0)
