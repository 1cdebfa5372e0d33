"""Every island of a workload over the phases: what stands in each, with the fewest uplinks that serve or some more."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise, product
from typing import NamedTuple

from coopt.instance.hardware import Nic
from coopt.instance.reserves import Availability
from coopt.instance.workload import Workload
from coopt.verifier.couplings.core import core_joined, core_nics
from coopt.verifier.couplings.fleet import Fleet, StandingIsland
from coopt.verifier.couplings.losses import loss_condition
from coopt.verifier.couplings.stages import GrowthStage, earlier_stage, last_stages, moves_leaves, standing_by
from coopt.verifier.parts.enumeration import Condition, fewest_spares, no_condition
from coopt.verifier.parts.optics import optics_choices
from coopt.verifier.parts.space import DesignFamily, OpticPair, families_of, gears, links_needed
from coopt.verifier.parts.timings import Trainer
from coopt.verifier.training.mappings import mapping_sizes

MOST_STAGES = 4_000
IslandPath = tuple[StandingIsland | None, ...]


class TooManyError(Exception):
    """There is more to go through than can be gone through in a reasonable time."""


class ServingStage(NamedTuple):
    """A network that serves a phase, and the uplinks with which it does."""

    stage: GrowthStage
    uplinks: Sequence[int]


class PhaseDemand(NamedTuple):
    """What a workload asks for in a phase: sizes it may have, and what trains it in time, also after losses."""

    workloads: tuple[Workload, ...]
    sizes: Sequence[int]
    trainer: Trainer
    condition: Condition
    availability: Availability | None

    def serving(self, stage: GrowthStage) -> Iterator[ServingStage]:
        """The network with the uplinks with which it does; for each number of spare domains that some of them take."""
        serving, taken = self._fast_enough(stage), dict[int, list[int]]()
        for uplinks in serving if self.availability else ():
            here = stage.family, stage.reach(uplinks), stage.levels(uplinks)
            spares = fewest_spares(self.availability, self.trainer, *here) if self.availability else None
            if spares is not None:
                taken.setdefault(spares, []).append(uplinks)
        if self.availability is None and serving:
            yield ServingStage(stage, serving)
        for spares, some in taken.items():
            yield ServingStage(standing_by(stage, spares), some)

    def _fast_enough(self, stage: GrowthStage) -> Sequence[int]:
        """The uplinks with which a network meets the bounds without failures: those from some number on."""

        def serves(uplinks: int) -> bool:
            trains = self.trainer.trains(stage.family, stage.reach(uplinks))
            return trains and self.condition(stage.family, stage.with_up(uplinks))

        if not stage.uplinks or not serves(stage.uplinks[-1]):
            return ()  # the most uplinks are the fastest
        return stage.uplinks[bisect_left(stage.uplinks, True, key=serves) :]


class IslandPaths:
    """The islands of a fleet, workload by workload, at any site.

    Parameters
    ----------
    short
        The share of bounds by which islands have to be faster; negative to give the benefit of rounding.
    most_stages
        How many networks may be timed at most, `MOST_STAGES` where not said; infinite to list islands of one size at a
        time, as they are asked for.

    Attributes
    ----------
    gears
        What networks may be made of.

    Raises
    ------
    TooManyError
        Where there are too many networks to time.
    """

    def __init__(self, fleet: Fleet, short: float, most_stages: float | None = None) -> None:
        self._fleet, self._short = fleet, short
        self.gears = list(gears(fleet.question))
        self._optics: dict[tuple[int, int], list[tuple[OpticPair, ...]]] = {}
        self._demands = {
            name: {t: self._demand(t, name) for t in fleet.training_phases(name)} for name in fleet.islands
        }
        most, timed = MOST_STAGES if most_stages is None else most_stages, 0
        for demands in self._demands.values() if math.isfinite(most) else ():
            for stages in self._candidates(demands):
                timed += sum(map(len, stages.values()))
                if timed > most:
                    raise TooManyError

    def sizes(self, name: str) -> list[int]:
        """How many GPUs an island of a workload may have in the end, ascending."""
        demands = self._demands[name]
        return sorted(demands[max(demands)].sizes)

    def of(self, name: str) -> list[IslandPath]:
        """Every island of a workload; with labour for retrofits with more uplinks than serve as well."""
        return [path for stages in self._candidates(self._demands[name]) for path in self.grown(name, stages)]

    def fits(self, name: str, gpus: int) -> bool:
        """Whether compute alone is in time in the end, in memory, on so many GPUs."""
        demands = self._demands[name]
        return demands[max(demands)].trainer.fits(gpus)

    def families(self, name: str, gpus: int) -> Iterator[DesignFamily]:
        """The families of networks of so many GPUs that an island may have in the end, in time or not."""
        return families_of(self._fleet.question, gpus, self.gears)

    def may_train(self, name: str, family: DesignFamily) -> bool:
        """Whether a network of a family is in time in the end if no switch slows it down."""
        demands = self._demands[name]
        return demands[max(demands)].trainer.may_train(family)

    def candidates(self, name: str, family: DesignFamily) -> Iterator[dict[int, list[GrowthStage]]]:
        """For every network of a family in the end, in time or not, what could stand in each phase."""
        return self._grown_to(self._demands[name], family)

    def grown(self, name: str, stages: dict[int, list[GrowthStage]]) -> Iterator[IslandPath]:
        """The islands of a workload that grow through some of these networks and are in time in each phase."""
        demands = self._demands[name]
        menus = {t: [one for stage in stages[t] for one in demand.serving(stage)] for t, demand in demands.items()}
        for chosen in product(*(menus[t] for t in demands)):
            if _never_falls([one.stage for one in chosen]):
                for uplinks in self._uplinks(chosen):
                    for nic in self._nics(chosen[-1].stage):
                        yield self._standing(dict(zip(demands, chosen, strict=True)), uplinks, nic)

    def _demand(self, t: int, name: str) -> PhaseDemand:
        workloads = self._fleet.workloads_in(t, name)
        question = self._fleet.questions[t].model_copy(update={"workload": workloads})
        listed = [self._fleet.gpus(t)]
        if question.sharing.mode == "partition":
            (one,) = workloads
            sizes = mapping_sizes(one, self._fleet.gpus(t))
            listed = [gpus for gpus in sizes if one.gpus is None or gpus in one.gpus]
        condition = loss_condition(question, self._short) if question.losses else no_condition
        trainer = Trainer(question, self._short)
        return PhaseDemand(workloads, listed, trainer, condition, question.availability)

    def _candidates(self, demands: dict[int, PhaseDemand]) -> Iterator[dict[int, list[GrowthStage]]]:
        """For every network of the last phase that no switch need slow down too much, what could stand in each."""
        last = demands[max(demands)]
        for gpus in last.sizes:
            for family in filter(last.trainer.may_train, families_of(self._fleet.question, gpus, self.gears)):
                yield from self._grown_to(demands, family)

    def _grown_to(
        self, demands: dict[int, PhaseDemand], family: DesignFamily
    ) -> Iterator[dict[int, list[GrowthStage]]]:
        last, network = max(demands), self._fleet.question.network
        for end, cored in core_joined(self._fleet.question, self._fleet.kind, family):
            for whole in last_stages(network, cored, partial(self.optics_of, family), end):
                stages = {t: list(self._earlier(whole, demands[t])) for t in demands if t != last}
                yield stages | {last: [whole]}

    def optics_of(self, family: DesignFamily, tiers: int) -> list[tuple[OpticPair, ...]]:
        """The choices of optics of a family with so many tiers, which are the same for all of the same gear."""
        key = id(family.gear), tiers  # `gears` keeps every gear, so that no other one has its number
        if key not in self._optics:
            self._optics[key] = list(optics_choices(self._fleet.question, self._fleet.kind, family, tiers))
        return self._optics[key]

    def _earlier(self, whole: GrowthStage, demand: PhaseDemand) -> Iterator[GrowthStage]:
        """What a network of the last phase may have been."""
        question = self._fleet.question
        for gpus in demand.sizes:
            fits = gpus <= whole.family.gpus and gpus % whole.family.active == 0
            if fits and not moves_leaves(whole, (gpus, whole.family.gpus)):
                links = links_needed(question, gpus)
                stage = earlier_stage(whole, gpus, question.network.largest_ratio, links)
                if links <= stage.core_links:
                    yield stage

    def _uplinks(self, chosen: Sequence[ServingStage]) -> Iterator[tuple[int, ...]]:
        """Uplinks that never fall, phase by phase: the fewest, and all others up to the most that any phase needs
        where links added later cost labour."""
        gaps = self._fleet.question.availability is not None  # more uplinks may be late where fewer are not
        most = math.inf if gaps else max(one.uplinks[0] for one in chosen)
        labour = any(self._fleet.labour_usd(t) for t in self._fleet.phases)

        def later(n: int, least: int) -> Iterator[tuple[int, ...]]:
            if n == len(chosen):
                yield ()
                return
            open_ones = [uplinks for uplinks in chosen[n].uplinks if least <= uplinks <= most]
            for uplinks in open_ones if labour else open_ones[:1]:
                for rest in later(n + 1, max(uplinks, least)):
                    yield uplinks, *rest

        yield from later(0, 0)

    def _nics(self, last: GrowthStage) -> Sequence[Nic]:
        """The NICs that links of islands without a network start at: those of the last phase, if it has any."""
        if last.family.gear is not None:
            return (last.family.gear.nic,)
        return core_nics(self._fleet.question) or self._fleet.question.network.nics[:1]

    def _standing(self, chosen: dict[int, ServingStage], uplinks: Sequence[int], nic: Nic) -> IslandPath:
        """What stands in every phase: as before where the workload does not train, nothing before its first."""
        found: list[StandingIsland | None] = []
        by_phase, spares = dict(zip(chosen, uplinks, strict=True)), 0
        for t in self._fleet.phases:
            if t in chosen:
                spares = max(spares, chosen[t].stage.family.spares)
                stage = standing_by(chosen[t].stage, spares)
                found.append(StandingIsland(stage, by_phase[t], self._fleet.joint(stage, nic)))
            else:
                found.append(found[-1] if found else None)
        return tuple(found)


def _never_falls(stages: Sequence[GrowthStage]) -> bool:
    """Whether GPUs and links into a core never fall."""
    return all(a.family.gpus <= b.family.gpus and a.core_links <= b.core_links for a, b in pairwise(stages))
