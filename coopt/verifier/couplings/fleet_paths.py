"""Every island of a workload over the phases: what stands in each, with the fewest uplinks that
serve or some more.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from itertools import islice, pairwise, product
from typing import NamedTuple

from coopt.instance.hardware import Nic, Optic
from coopt.instance.reserves import Availability
from coopt.instance.workload import Workload
from coopt.verifier.couplings.core import core_ends, core_nics, families_joined
from coopt.verifier.couplings.fleet import Fleet, StandingIsland
from coopt.verifier.couplings.losses import loss_condition
from coopt.verifier.parts.enumeration import Condition, no_condition, serving
from coopt.verifier.parts.halls import every_laid_stage
from coopt.verifier.parts.optics import optics_choices
from coopt.verifier.parts.space import DesignFamily, OpticPair, attachments, families
from coopt.verifier.parts.stages import (
    GrowthStage,
    Optics,
    grown_from,
    last_stage,
    last_stages,
    standing_by,
)
from coopt.verifier.parts.standing import StandingNetwork, standing_network
from coopt.verifier.parts.timings import Trainer
from coopt.verifier.training.caching import kept
from coopt.verifier.training.mappings import mapping_sizes

MOST_STAGES, MOST_FAMILIES = 4_000, 1_200
"""Networks, and families of those that islands may have in the end, that are timed."""
MOST_LAID = 2_000_000
"""GPUs of all networks whose cables are counted one by one, in some 4 microseconds each."""
IslandPath = tuple[StandingIsland | None, ...]


class TooManyError(Exception):
    """There is more to go through than can be gone through in a reasonable time."""


class ServingStage(NamedTuple):
    """A network that serves a phase, and the uplinks with which it does."""

    stage: GrowthStage
    uplinks: list[int]


class NetworkKind(NamedTuple):
    """Networks of a family that have the same modules, or of `choices` by their lengths that carry
    as many links, at the lower ends of links into a core `core_end`.
    """

    family: DesignFamily
    choices: tuple[Optics, ...]
    core_end: Optic | None


class PhaseDemand(NamedTuple):
    """What a workload asks for in a phase: sizes it may have, and what trains it in time, also
    after losses.
    """

    workloads: tuple[Workload, ...]
    sizes: Sequence[int]
    trainer: Trainer
    condition: Condition
    availability: Availability | None

    def serving(self, stage: GrowthStage) -> Iterator[ServingStage]:
        """The network with the uplinks with which it does; for each number of spare domains that
        some of them take.
        """
        terms = self.trainer, stage, stage.uplinks, self.condition, self.availability
        by_spares = dict[int, ServingStage]()
        for uplinks, network in serving(*terms):
            server = by_spares.setdefault(network.family.spares, ServingStage(network, []))
            server.uplinks.append(uplinks)
        yield from by_spares.values()


class IslandPaths:
    """The islands of a fleet, workload by workload, at any site.

    Parameters
    ----------
    margin
        The share of bounds by which islands have to be faster; negative to give the benefit of
        rounding.
    most_stages
        How many networks may be timed at most, `MOST_STAGES` of `MOST_FAMILIES` where not said;
        infinite to list
        islands of one size at a time, as they are asked for.

    Attributes
    ----------
    NIC attachments
        What networks may be made of.

    Raises
    ------
    TooManyError
        Where there are too many networks to time.
    """

    def __init__(self, fleet: Fleet, margin: float, most_stages: float | None = None) -> None:
        self.fleet, self._margin = fleet, margin
        self.attachments = list(attachments(fleet.question))
        self._demands = {
            name: {t: self._demand(t, name) for t in fleet.training_phases(name)}
            for name in fleet.islands
        }
        self._listed: dict[str, list[dict[int, list[GrowthStage]]]] = {}
        limit, timed = MOST_STAGES if most_stages is None else most_stages, 0
        laid = 0
        if math.isinf(limit):
            return
        families = (
            family
            for demands in self._demands.values()
            for gpus in demands[max(demands)].sizes
            for family in self.families(gpus)
        )
        # counted before any is timed, which takes longest
        if len([*islice(families, MOST_FAMILIES + 1)]) > MOST_FAMILIES:
            raise TooManyError
        for name, demands in self._demands.items():
            self._listed[name] = []
            for stages in self._candidates(demands):
                timed += sum(map(len, stages.values()))
                laid += sum(stage.family.gpus for stage in stages[max(stages)] if stage.laid)
                if timed > limit or laid > MOST_LAID:
                    raise TooManyError
                self._listed[name].append(stages)

    def sizes(self, name: str) -> list[int]:
        """How many GPUs an island of a workload may have in the end, ascending."""
        demands = self._demands[name]
        return sorted(demands[max(demands)].sizes)

    def networks(self, name: str) -> list[GrowingNetwork]:
        """Every network that an island of a workload may have in the end."""
        candidates = (
            self._listed[name] if name in self._listed else self._candidates(self._demands[name])
        )
        return [GrowingNetwork(self, name, stages) for stages in candidates if all(stages.values())]

    def standing(self, stage: GrowthStage, last_network: GrowthStage) -> Iterator[StandingIsland]:
        """A network with the fewest uplinks that it may have, as it grows to the last one."""
        for nic in self._nics(last_network) if stage.uplinks else ():
            yield StandingIsland(stage, stage.uplinks[0], self.fleet.joint(stage, nic))

    def fits(self, name: str, gpus: int) -> bool:
        """Whether compute alone is in time in the end, in memory, on so many GPUs."""
        demands = self._demands[name]
        return demands[max(demands)].trainer.fits(gpus)

    def families(self, gpus: int) -> Iterator[DesignFamily]:
        """The families of networks of so many GPUs that an island may have in the end, in time or
        not, and the network that stands.
        """
        yield from families(self.fleet.question, (gpus,), self.attachments)
        if (standing := standing_network(self.fleet.question, gpus)) is not None:
            yield standing.family

    def may_train(self, name: str, family: DesignFamily) -> bool:
        """Whether a network of a family is in time in the end if no switch slows it down."""
        demands = self._demands[name]
        return demands[max(demands)].trainer.may_train(family)

    def kinds(self, family: DesignFamily) -> Iterator[NetworkKind]:
        """The kinds of networks of a family; the one of a single domain has no modules."""
        if family.stands:
            yield NetworkKind(family, (self._standing(family).optics,), None)
            return
        tiers = range(self.fleet.question.network.max_tiers + 1)
        for end, cored in families_joined(self.fleet.question, self.fleet.kind, family):
            if family.attachment is None:
                yield NetworkKind(cored, ((),), end)
                continue
            by_length = self.fleet.question.network.cables == "hall"
            alike = defaultdict[object, list[Optics]](list)
            for count in filter(family.attachment.is_named_once, tiers):
                for optics in self.optics_of(family, count):
                    carried = tuple(map(family.attachment.carried, optics))
                    alike[carried if by_length else optics].append(optics)
            for choices in alike.values():
                yield NetworkKind(cored, tuple(choices), end)

    def candidates(self, name: str, kind: NetworkKind) -> Iterator[dict[int, list[GrowthStage]]]:
        """For every network of a kind in the end, in time or not, what could stand in each
        phase.
        """
        count = len(kind.choices[0])
        return self._grown_to(
            self._demands[name],
            kind.family,
            lambda tiers: kind.choices if tiers == count else (),
            kind.core_end,
        )

    def grown(self, name: str, stages: dict[int, list[GrowthStage]]) -> Iterator[IslandPath]:
        """The islands of a workload that grow through some of these networks and are in time in
        each phase.
        """
        demands = self._demands[name]
        menus = dict[int, list[ServingStage]]()
        # most networks that are too slow in some phase are so in the last one
        for t in reversed(demands):
            menus[t] = [server for stage in stages[t] for server in demands[t].serving(stage)]
            if not menus[t]:
                return
        for servers in product(*(menus[t] for t in demands)):
            if never_falls([server.stage for server in servers]):
                for uplinks in self._uplinks(servers):
                    for nic in self._nics(servers[-1].stage):
                        yield self._path_of(dict(zip(demands, servers, strict=True)), uplinks, nic)

    def _demand(self, t: int, name: str) -> PhaseDemand:
        workloads = self.fleet.workloads_in(t, name)
        question = self.fleet.questions[t].model_copy(update={"workload": workloads})
        gpu_counts = sorted(set(self.fleet.questions[t].cluster.gpus))
        if question.sharing.mode == "partition":
            (workload,) = workloads
            sizes = mapping_sizes(workload, self.fleet.gpus(t))
            gpu_counts = [gpus for gpus in sizes if workload.gpus is None or gpus in workload.gpus]
        condition = loss_condition(question, self._margin) if question.losses else no_condition
        trainer = Trainer(question, self._margin)
        return PhaseDemand(workloads, gpu_counts, trainer, condition, question.availability)

    def _candidates(
        self, demands: dict[int, PhaseDemand]
    ) -> Iterator[dict[int, list[GrowthStage]]]:
        """For every network of the last phase that no switch need slow down too much, what could
        stand in each.
        """
        last_demand = demands[max(demands)]
        for gpus in last_demand.sizes:
            for family in filter(last_demand.trainer.may_train, self.families(gpus)):
                optics_of = partial(self.optics_of, family)
                for end, cored in families_joined(self.fleet.question, self.fleet.kind, family):
                    yield from self._grown_to(demands, cored, optics_of, end)

    def _grown_to(
        self,
        demands: dict[int, PhaseDemand],
        family: DesignFamily,
        optics_of: Callable[[int], Iterable[Optics]],
        core_end: Optic | None,
    ) -> Iterator[dict[int, list[GrowthStage]]]:
        last_phase, network = max(demands), self.fleet.question.network
        if family.stands:
            standing = self._standing(family)
            ports = standing.ports
            yield {last_phase: [last_stage(family, ports, (ports.up,), standing.optics)]}
            return
        if network.cables == "hall":
            question, kind = self.fleet.question, self.fleet.kind
            name = demands[last_phase].workloads[0].name
            joins = core_ends(question, family, core_end, name)
            before = [demand.sizes for t, demand in demands.items() if t != last_phase]
            for earlier in product(*before):
                if list(earlier) == sorted(earlier):
                    for line in every_laid_stage(question, kind, family, optics_of, joins, earlier):
                        yield {t: [stage] for t, stage in zip(demands, line, strict=True)}
            return
        for last_network in last_stages(network, family, optics_of, core_end):
            stages = {
                t: [
                    stage
                    for gpus in demand.sizes
                    if (stage := grown_from(self.fleet.question, last_network, gpus)) is not None
                ]
                for t, demand in demands.items()
                if t != last_phase
            }
            yield stages | {last_phase: [last_network]}

    # `attachments` keeps every NIC attachment, so that no other one has its number
    @kept(lambda self, family, tiers: (id(family.attachment), tiers))
    def optics_of(self, family: DesignFamily, tiers: int) -> list[tuple[OpticPair, ...]]:
        """The choices of optics of a family with so many tiers, which are the same for all of the
        same NIC attachment.
        """
        return list(optics_choices(self.fleet.question, self.fleet.kind, family, tiers))

    def _standing(self, family: DesignFamily) -> StandingNetwork:
        standing = standing_network(self.fleet.question, family.gpus)
        assert standing is not None, "it is the network that stands"
        return standing

    def _uplinks(self, servers: Sequence[ServingStage]) -> Iterator[tuple[int, ...]]:
        """Uplinks that never fall, phase by phase: the fewest, and all others up to the most that
        any phase needs where links added later cost labour.
        """
        # with availability, more uplinks may be late where fewer are not
        gaps = self.fleet.question.availability is not None
        limit = math.inf if gaps else max(server.uplinks[0] for server in servers)
        labour = any(self.fleet.labour_usd(t) for t in self.fleet.phases)

        def later(n: int, fewest: int) -> Iterator[tuple[int, ...]]:
            if n == len(servers):
                yield ()
                return
            choices = [uplinks for uplinks in servers[n].uplinks if fewest <= uplinks <= limit]
            # Without labour the fewest uplinks serve best: units fall with them, in later phases as
            # well.
            for uplinks in choices if labour else choices[:1]:
                for later_uplinks in later(n + 1, max(uplinks, fewest)):
                    yield uplinks, *later_uplinks

        yield from later(0, 0)

    def _nics(self, stage: GrowthStage) -> Sequence[Nic]:
        """The NICs that links of islands without a network start at: those of the last phase, if it
        has any.
        """
        if stage.family.attachment is not None:
            return (stage.family.attachment.nic,)
        return core_nics(self.fleet.question) or self.fleet.question.network.nics[:1]

    def _path_of(
        self, servers: dict[int, ServingStage], uplinks: Sequence[int], nic: Nic
    ) -> IslandPath:
        """What stands in every phase: as before where the workload does not train, nothing before
        its first.
        """
        states: list[StandingIsland | None] = []
        by_phase, spares = dict(zip(servers, uplinks, strict=True)), 0
        for t in self.fleet.phases:
            if t in servers:
                # Domains that stand by in a phase do so from then on.
                spares = max(spares, servers[t].stage.family.spares)
                stage = standing_by(servers[t].stage, spares)
                states.append(StandingIsland(stage, by_phase[t], self.fleet.joint(stage, nic)))
            else:
                states.append(states[-1] if states else None)
        return tuple(states)


class GrowingNetwork:
    """A network that an island of a workload may have in the end, and what it may be before: none
    of it is timed before islands on it are asked for.
    """

    def __init__(self, paths: IslandPaths, name: str, stages: dict[int, list[GrowthStage]]) -> None:
        self._paths, self._name, self._stages = paths, name, stages

    @cached_property
    def fewest(self) -> dict[int, list[StandingIsland]]:
        """What may stand in each phase that trains, with the fewest uplinks, in time or not."""
        (last_network,) = self._stages[max(self._stages)]
        return {
            t: [state for stage in stages for state in self._paths.standing(stage, last_network)]
            for t, stages in self._stages.items()
        }

    @cached_property
    def islands(self) -> list[IslandPath]:
        """Every island that grows to it; with labour for retrofits with more uplinks than serve as
        well.
        """
        return list(self._paths.grown(self._name, self._stages))


def never_falls(stages: Sequence[GrowthStage]) -> bool:
    """Whether GPUs and links into a core never fall."""
    return all(
        earlier.family.gpus <= later.family.gpus and earlier.core_links <= later.core_links
        for earlier, later in pairwise(stages)
    )
