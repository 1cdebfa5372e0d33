"""The network of a part as something that carries traffic, built from what the plan says of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple, TypeVar

from coopt.instance.hardware import HbDomain, Nic
from coopt.instance.network import Network
from coopt.instance.schema import Instance
from coopt.instance.texts import InstanceError, counted
from coopt.plan.parts import Design, DirectLinks, Fabric
from coopt.verifier.checks.verdict import Ledger, UnsoundError
from coopt.verifier.parts.bills import levels
from coopt.verifier.parts.design_checks import attached, held_in_cages
from coopt.verifier.parts.direct_links import LinkNics
from coopt.verifier.parts.layouts import Ports
from coopt.verifier.parts.link_demands import StageGrid, grid_of, phases_of, sends_by_kind
from coopt.verifier.parts.space import DesignFamily
from coopt.verifier.parts.wiring import WiredGraph, count_levels, wire
from coopt.verifier.simulation.events import FairRates, Flow, Resource
from coopt.verifier.simulation.fabric_flows import (
    TIED,
    Lane,
    LinkSharing,
    backward,
    expert_copies,
    fabric_rates,
    forward,
    lanes,
    messages,
    rails_alike,
    replicas,
)
from coopt.verifier.simulation.iteration import Carrier
from coopt.verifier.training.gathers import Flows
from coopt.verifier.training.mappings import ScalarMapping
from coopt.verifier.training.placing import Placement

T = TypeVar("T", HbDomain, Nic)
WAYS: tuple[Flows, ...] = ("halving", "trees")


class FabricNetwork(NamedTuple):
    """HB domains on switches.

    `wiring` is None on one tier and where there is one domain.
    """

    family: DesignFamily
    ports: Ports
    wiring: WiredGraph | None
    sharing: LinkSharing = LinkSharing()

    def carrier(
        self, place: Placement, split: ScalarMapping, *, is_tied: bool, has_choice: bool = False
    ) -> Carrier:
        """What carries the traffic of a mapping, with the tied embedding or without, by rings or
        the best ways.
        """
        inside_byte_s = self.family.hb.gbyte_s * 1e9
        if self.family.attachment is None:
            return Carrier(inside_byte_s, 0.0, None)
        by_stage = self._lanes(place)
        ways, loops = WAYS if has_choice else (), split.interleave > 1
        traffic = list(messages(place, by_stage, goes_round=loops, is_tied=is_tied, ways=ways))
        rates = fabric_rates(self.family, self.ports, self.wiring, traffic, self.sharing)
        nic_byte_s = self.family.nic_byte_s
        return Carrier(inside_byte_s, nic_byte_s, rates, nic_byte_s)

    def _lanes(self, place: Placement) -> list[list[Lane]]:
        spread = self.sharing.routing == "spray"
        alike = spread and rails_alike(self.family, self.ports, self.wiring)
        return lanes(self.family, self.ports, place, spread=spread, rails_alike=alike)

    def coverage(self, place: Placement) -> str:
        """Which NICs were simulated, in words."""
        family, attachment = self.family, self.family.attachment
        if attachment is None:
            return "one HB domain, in which no link is shared"
        by_stage = self._lanes(place)
        drawn = self.sharing.routing == "ecmp" and self.wiring is not None
        remarks = ", with one draw of random paths" if drawn else ""
        remarks += "; every domain is assumed to be as full as the fullest" if family.rooms else ""
        simulated, nics = sum(map(len, by_stage)), family.nics_of(place.filled)
        if simulated == nics:
            every = "the NIC" if nics == 1 else f"all {nics:,} NICs"
            return f"{every} of training GPUs in each of {family.domains} HB domains{remarks}"
        kind = "NICs" if family.network.kind == "clos" else "rails"
        which = f"{simulated} of {nics} {'' if drawn else 'equal '}{kind}"
        others = "; the others draw paths of their own" if drawn else ""
        return f"{which} of all {family.domains} HB domains{remarks}{others}"


class DirectNetwork(NamedTuple):
    """HB domains joined by direct links, over which traffic goes as the routes of the plan say."""

    links: DirectLinks
    hb: HbDomain
    nic: Nic

    def carrier(
        self, place: Placement, split: ScalarMapping, *, is_tied: bool, has_choice: bool = False
    ) -> Carrier:
        """What carries the traffic of a mapping: one pace is that of one link a domain."""
        flows = list(self._flows(place, split, is_tied=is_tied))
        # bytes are counted a GPU, and a link carries what all GPUs of a domain send
        link_byte_s = LinkNics(self.nic, self.links.nic.per_gpu).link_byte_s(self.hb)
        pace_byte_s = link_byte_s / self.links.hb_domain.active
        nic_byte_s = link_byte_s * self.links.nic.per_gpu / self.links.nic.shared_by
        return Carrier(self.hb.gbyte_s * 1e9, pace_byte_s, FairRates(flows), nic_byte_s)

    def coverage(self, place: Placement) -> str:
        """What was simulated, in words."""
        return f"all {self.links.hb_domain.count} HB domains, on the routes of the plan"

    def _flows(self, place: Placement, split: ScalarMapping, *, is_tied: bool) -> Iterator[Flow]:
        """What every kind of traffic sends, over the routes of its phase."""
        both_ways = (
            (bundle, pair)
            for bundle in self.links.bundles
            for pair in (bundle.between, bundle.between[::-1])
        )
        capacity = {pair: bundle.links for bundle, pair in both_ways}
        ways: defaultdict[tuple[str, int, int], dict[Resource, float]] = defaultdict(dict)
        for phase in self.links.phases:
            for route in phase.routes:
                carried = ways[phase.name, route.path[0], route.path[-1]]
                for step in zip(route.path, route.path[1:], strict=False):
                    carried[step] = carried.get(step, 0.0) + route.share / capacity[step]
        grid = grid_of(split, place)
        # the grid has what replicas share under these names too, whether or not there are contexts
        # or experts
        across = {"cp": place.cp_across, "edp": place.copies_across}
        for kind, sends in sends_by_kind(grid).items():
            if across.get(kind) == 1:
                continue
            phase_name = phases_of(grid)[kind]
            for (source, target), volume in sends.items():
                for name, part in self._phases(grid, kind, source, target, is_tied=is_tied):
                    yield Flow(name, float(volume) * part, ways[phase_name, source, target])

    @staticmethod
    def _phases(
        grid: StageGrid, kind: str, source: int, target: int, *, is_tied: bool
    ) -> Iterator[tuple[str, float]]:
        """The phases of an iteration in which one domain sends to another, and the part of its
        traffic in each: what replicas share belongs to a stage.
        """
        block, target_block = source // grid.replicas, target // grid.replicas
        first_stage, last_stage = block * grid.inner, block * grid.inner + grid.inner - 1
        # a block of stages passes activations on from its last stage, and gradients back from its
        # first
        if kind == "pp":
            if target_block == (block + 1) % grid.stages and (grid.closed or target_block > block):
                yield forward(last_stage), 1.0
            if block == (target_block + 1) % grid.stages and (grid.closed or block > target_block):
                yield backward(first_stage), 1.0
        elif kind in ("dp", "edp"):
            name = replicas if kind == "dp" else expert_copies
            yield from (
                (name(stage), 1 / grid.inner) for stage in range(first_stage, last_stage + 1)
            )
        elif kind != "tied" or (is_tied and grid.stages == 2):
            yield (TIED if kind == "tied" else kind), 1.0


def link_sharing(network: Network) -> LinkSharing:
    """How flows share links under the discipline of the instance; by a factor they are spread over
    slower links.
    """
    _, routing, efficiency = network.discipline
    return (
        LinkSharing(routing, efficiency)
        if isinstance(routing, str)
        else LinkSharing("spray", 1 / routing)
    )


def network_of(
    question: Instance, name: str, network: Design | DirectLinks
) -> FabricNetwork | DirectNetwork:
    """The network of a part.

    Raises
    ------
    InstanceError
        When the instance does not list its products, or its numbers make no network.
    """
    choice = network.hb_domain
    hb = _picked(question, name, question.network.hb_domains, choice.name)
    is_even = choice.active * choice.count == network.gpus
    # of domains that are not filled alike the plan has the mean, rounded up
    is_uneven = (
        isinstance(network, Design) and -(-network.gpus // max(choice.active, 1)) == choice.count
    )
    if not (1 <= choice.active <= hb.size and (is_even or is_uneven)):
        raise _unsound(
            question,
            name,
            f"{counted(choice.count, 'domain')} of {counted(hb.size, 'GPU')}, {choice.active}"
            f" active in each, to train on {counted(network.gpus, 'GPU')}",
        )
    if isinstance(network, DirectLinks):
        return DirectNetwork(
            network, hb, _picked(question, name, question.network.nics, network.nic.name)
        )
    family = DesignFamily(network.gpus, hb, choice.count, None)
    if choice.count == 1:
        return FabricNetwork(family, Ports(0, 0), None)
    ledger = Ledger()
    joined = None
    with suppress(UnsoundError):  # which the ledger tells as well
        joined = attached(ledger, question, network, family)
    if joined is None:
        raise _unsound(question, name, next(check.why for check in ledger.checks if not check.ok))
    family = held_in_cages(question.network, joined, network.fabric)
    ports, wiring = _wired(question, name, family, network.fabric)
    sharing = link_sharing(question.network)
    if sharing.routing != "spray" and wiring is not None and wiring.slices > 1:
        raise InstanceError(
            f"{question.place}: a plane of part {name!r} has {family.ends:,} NICs, too many to"
            ' follow the paths of single flows, needs network.routing = "spray" or a number'
        )
    return FabricNetwork(family, ports, wiring, sharing)


def _wired(
    question: Instance, name: str, family: DesignFamily, fabric: Fabric
) -> tuple[Ports, WiredGraph | None]:
    """Ports and graph of a fabric whose levels are counted as the plan says."""
    # levels, ports and bundles are checked before the graph is built, which takes them as sound
    if (fault := next(_faults_of_ports(family, fabric), None)) is not None:
        raise _unsound(question, name, fault)
    leaf, *above = fabric.tier
    if not above:
        return Ports(1, leaf.down_ports), None
    ports = Ports(len(fabric.tier), leaf.down_ports, leaf.uplinks_per_switch)
    if ports.tiers == 3:
        pod = above[0].down_ports, above[0].uplinks_per_switch
        ports = Ports(*ports[:3], *pod, pod_each=fabric.pod_bundle)
    ports = _bundled(family, ports, fabric)
    wiring = wire(family, ports)
    level_counts = [(level.switches, level.links) for level in count_levels(wiring, family, ports)]
    if level_counts != [(level.switches, level.links) for level in fabric.tier]:
        raise _unsound(question, name, "other numbers of switches or links than its ports give")
    return ports, wiring


def _faults_of_ports(family: DesignFamily, fabric: Fabric) -> Iterator[str]:
    """What is wrong with the levels of a fabric, their ports and bundles."""
    tier, each = fabric.tier, fabric.pod_bundle
    if [level.level for level in tier] not in ([1], [1, 2], [1, 2, 3]) or fabric.tiers != len(tier):
        yield f"{counted(len(tier), 'level')} for {counted(fabric.tiers, 'tier')}"
    pairs = [(level.down_ports, level.uplinks_per_switch) for level in tier]
    for level, used in zip(tier, pairs, strict=True):
        radix = family.network.at(level.level).radix
        if not 1 <= sum(used) <= radix:
            yield f"a switch that uses no port, or more than the {radix} it has"
    for name, used in zip(("leaves", "aggregation switches"), pairs[:-1], strict=False):
        if min(used) < 1:
            yield f"{name} without links up or down"
    if len(tier) == 3 and (each < 1 or pairs[0][1] % each or pairs[1][0] % each):
        yield f"bundles of {each} links that do not divide the links of a leaf or pod"


def _bundled(family: DesignFamily, ports: Ports, fabric: Fabric) -> Ports:
    """The ports with the size of bundles where these are even, which takes more top switches than
    ports would.

    So does a pod that waits for its cores: it has an aggregation switch for each uplink.
    """
    top = fabric.tier[-1].switches
    if top == levels(family, ports)[-1].switches:
        return ports
    groups, links = (ports.slices, ports.pod_up) if ports.tiers == 3 else (1, ports.up)
    return ports._replace(
        bundle=max(1, links // max(1, top // (family.planes * family.copies * groups)))
    )


def _picked(question: Instance, name: str, products: Iterable[T], product_name: str) -> T:
    product = next((candidate for candidate in products if candidate.name == product_name), None)
    if product is None:
        raise _unsound(question, name, f"{product_name!r}, which the instance does not list")
    return product


def _unsound(question: Instance, name: str, fault: str) -> InstanceError:
    """That a part cannot be built, by what it has or by a whole sentence."""
    needed = "needs a plan that `coopt verify` accepts"
    what = f"cannot be built, {needed}. {fault}" if fault[-1] == "." else f"has {fault}, {needed}"
    return InstanceError(f"{question.place}: part {name!r} of the plan {what}")
