import pytest

from coopt.instance.hardware import HbDomain, Nic, Switch
from coopt.instance.network import Discipline, FabricKind, Network
from coopt.instance.schema import Instance
from coopt.verifier.parts.bills import levels
from coopt.verifier.parts.layouts import Ports, chains, leaf_fillings, leaf_uplinks, pod_splits, split_ports
from coopt.verifier.parts.space import DesignFamily, NicAttachment, domain_counts, families
from coopt.verifier.parts.spans import reach_of
from coopt.verifier.parts.wiring import attached_ends, count_levels, fullest_switches, uneven_switches, wire
from tests.verifier.cases import DOMAINS, NICS, ask, switch

# Published: HB domains of 256 GPUs, 32,768 GPUs: radix, fabric, switches, transceivers.
PUBLISHED: list[tuple[int, FabricKind, int, int]] = [
    (64, "rail-only", 1536, 131_072),
    (64, "rail-optimized", 2560, 196_608),
    (128, "clos", 1280, 196_608),
    (256, "clos", 384, 131_072),
]


SPRAY, RATIO = Discipline("loads", "spray", 0.98), Discipline("ratio", 1.0, 1.0)


def family(
    kind: FabricKind,
    gpus: int,
    size: int,
    radix: int,
    active: int | None = None,
    per_gpu: int = 1,
    discipline: Discipline = SPRAY,
) -> DesignFamily:
    hb = HbDomain.model_validate(DOMAINS[0] | {"size": size})
    part = Switch.model_validate(switch(radix))
    attachment = NicAttachment(kind, Nic.model_validate(NICS[1]), per_gpu, part, discipline)
    return DesignFamily(gpus, hb, -(-gpus // (active or size)), attachment)


def network(ratio: float | list[float], max_tiers: int = 3) -> Network:
    return ask(network__oversubscription=ratio, network__max_tiers=max_tiers, network__leaf_fill="ratio").network


@pytest.mark.parametrize(("radix", "kind", "switches", "transceivers"), PUBLISHED)
def test_published_counts(radix: int, kind: FabricKind, switches: int, transceivers: int) -> None:
    here = family(kind, 32768, 256, radix)
    (chain,) = chains(here, network(1.0))
    ports = chain.with_up(chain.uplinks[-1])
    rows = levels(here, ports)
    assert sum(row.switches for row in rows) == switches
    assert 2 * sum(row.links for row in rows) == transceivers
    wiring = wire(here, ports)
    counted = count_levels(wiring, here, ports)
    assert [(count.switches, count.links) for count in counted] == [row[:2] for row in rows]
    assert max(fullest_switches(wiring).values()) <= radix
    assert attached_ends(wiring) == 32768


@pytest.mark.parametrize(
    ("fill", "gpus", "size", "counts"),
    [
        *(("even", 64, 8, [8]), ("even", 72, 16, [6, 8]), ("even", 64, 10, [8]), ("even", 8, 16, [1])),
        *(("even", 6, 16, [1]), ("even", 12, 16, [1]), ("even", 7, 4, []), ("even", 7, 1, [7])),
        *(("fewest", 64, 8, [8]), ("fewest", 100, 8, [13, 15, 17, 20]), ("fewest", 72, 16, [5, 6, 8])),
        ("fewest", 1000, 72, [14, 15, 16, 17, 18, 19, 20, 25]),
    ],
)
def test_domains_hold_as_many_gpus_each_or_are_filled_unevenly_where_fewer_do(fill, gpus, size, counts) -> None:
    assert domain_counts(gpus, size, fill) == counts


def test_blocks_of_stages_take_whole_domains_each() -> None:
    assert domain_counts(131_072, 72, "fewest")[:2] == [1821, 1847]
    assert domain_counts(131_072, 72, "fewest", layers=16)[:4] == [1821, 1822, 1824, 1847]
    assert domain_counts(131_072, 72, "any", layers=61)[-1] == 3543
    assert domain_counts(22, 8, "fewest", layers=11) == domain_counts(22, 8, "any", layers=11) == [3, 4, 5]


@pytest.mark.parametrize(("radix", "over", "down"), [(64, 1, 32), (64, 2, 42), (64, 4, 51), (9, 1, 4), (2, 5, 1)])
def test_split_of_ports(radix: int, over: int, down: int) -> None:
    assert split_ports(radix, over) == down


def test_leaves_hold_whole_blocks() -> None:
    # 16 ports: nominal 8 and 10. Rail-optimized with 5 domains: whole rails; clos with 6 NICs a domain: whole domains.
    assert leaf_fillings(family("rail-only", 240, 12, 16), network(2.0)) == [10, 8]
    assert leaf_fillings(family("rail-optimized", 60, 12, 16), network(2.0)) == [10, 5]
    assert leaf_fillings(family("rail-optimized", 240, 12, 16), network(2.0)) == [10, 8]
    assert leaf_fillings(family("clos", 240, 6, 16), network(2.0)) == [6]
    assert leaf_fillings(family("clos", 240, 3, 16), network(2.0)) == [9, 6]
    assert leaf_fillings(family("clos", 240, 12, 16), network(2.0)) == [10, 8]


def test_uplinks_lie_between_the_ratio_and_the_ports_left() -> None:
    assert leaf_uplinks(10, 16, network(3.0)) == (4, 5, 6)
    assert leaf_uplinks(10, 16, network([1.0, 2.0, 3.0])) == (4, 5)
    assert leaf_uplinks(10, 16, network(1.5)) == ()


def test_no_switch_has_more_ports_up_than_down() -> None:
    # Of 16 ports 4 hold NICs and 12 are left; of 9 ports 4 lead down and 5 are left. As many lead up as down, no more.
    assert leaf_uplinks(4, 16, network(2.0)) == (2, 3, 4)
    assert pod_splits(9, network(1.0)) == [(4, 4)]


def test_ratios_of_a_list_split_pods_where_they_are_whole() -> None:
    assert pod_splits(12, network(3.0)) == [(9, 3), (8, 4), (6, 6)]
    assert pod_splits(12, network([1.5, 3.0])) == [(9, 3), (6, 6)]


def test_no_more_tiers_than_allowed() -> None:
    assert list(chains(family("clos", 1024, 8, 16), network(1.0, max_tiers=2))) == []
    assert {chain.ports.tiers for chain in chains(family("clos", 1024, 8, 16), network(1.0))} == {3}
    assert list(chains(family("clos", 4096, 8, 8), network(1.0))) == []


def all_designs(instance: Instance) -> list[tuple[DesignFamily, Ports]]:
    return [
        (here, chain.with_up(uplinks))
        for here in families(instance)
        for chain in chains(here, instance.network)
        for uplinks in chain.uplinks
    ]


COUNTED = {"network__buildable": False}
CROWDED = {
    "rail-only": ask(**COUNTED, network__fabrics="rail-only", network__switches=[switch(4), switch(6), switch(8)]),
    "rail-optimized": ask(**COUNTED, network__fabrics="rail-optimized", network__switches=[switch(8), switch(11)]),
    "clos": ask(
        **COUNTED, network__fabrics="clos", network__switches=[switch(8), switch(11)], network__nics_per_gpu=[1, 3]
    ),
}


@pytest.mark.parametrize("instance", CROWDED.values(), ids=CROWDED)
@pytest.mark.parametrize("explicit", [100_000, 40, 0])
def test_the_graph_counts_as_the_page_says(instance: Instance, explicit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coopt.verifier.parts.wiring.EXPLICIT", explicit)
    designs = all_designs(instance)
    assert {ports.tiers for _, ports in designs} >= {2, 3}
    for here, ports in designs:
        wiring = wire(here, ports)
        counted = count_levels(wiring, here, ports)
        assert [(count.switches, count.links) for count in counted] == [level[:2] for level in levels(here, ports)]
        assert (counted[0].down_ports, counted[0].up_ports) == (ports.down, ports.up)
        assert max(fullest_switches(wiring).values()) <= here.attachment.switch.radix
        assert attached_ends(wiring) == here.ends * wiring.planes
        if ports.tiers == 3:
            assert (counted[1].down_ports, counted[1].up_ports) == (ports.pod_down, ports.pod_up)
        assert ports.tiers == 1 or uneven_switches(wiring) == 0


def test_spines_and_cores_with_unequal_bundles_are_found() -> None:
    here = family("rail-only", 224, 4, 16)  # seven leaves of 8 domains: bundles of two at most
    assert [uneven_switches(wire(here, Ports(2, 8, 7, bundle=bundle))) for bundle in (0, 1)] == [16, 0]
    clos = family("clos", 240, 4, 16)  # 30 leaves in four pods with seven links up, and cores of 16 ports
    assert [uneven_switches(wire(clos, Ports(3, 8, 4, 9, 7, bundle=bundle))) for bundle in (0, 1)] == [8, 0]


def test_spans_and_slowdowns() -> None:
    # 16 ports, 4:1, 60 domains of 4: a leaf of rail-only holds 8 of them, two to one.
    here = family("rail-only", 240, 4, 16, discipline=RATIO)
    reach = reach_of(here, Ports(2, 8, 4))
    assert (reach.slowdown(1), reach.slowdown(8), reach.slowdown(3), reach.slowdown(60)) == (1, 1, 2, 2)
    clos = reach_of(family("clos", 240, 4, 16, discipline=RATIO), Ports(3, 8, 4, 10, 6))
    assert (clos.leaf_span, clos.pod_span) == (2, 20)
    assert [clos.slowdown(block) for block in (1, 2, 4, 10, 40, 60)] == [1, 1, 2, 2, 2 * 10 / 6, 2 * 10 / 6]
    ragged = reach_of(family("clos", 248, 4, 16, discipline=RATIO), Ports(3, 8, 4, 10, 6))
    assert ragged.pod_span == 2
    wide = reach_of(family("clos", 240, 20, 16, discipline=RATIO), Ports(3, 8, 4, 10, 6))
    assert wide.leaf_span == 0
    assert wide.slowdown(1) == wide.beyond
    rails = reach_of(family("rail-optimized", 240, 4, 16, discipline=RATIO), Ports(3, 8, 4, 8, 8))
    assert (rails.leaf_span, rails.pod_span) == (8, 64)
    assert rails.slowdown(60) == 2
