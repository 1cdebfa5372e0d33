"""The tables of an instance."""

import hashlib
import itertools
import json
import math
from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError, model_validator

from coopt.instance.base import (
    MAX_COUNT,
    Count,
    Day,
    Name,
    Positive,
    Table,
    Whole,
    first_of_list,
    one_many_or_range,
    one_or_many,
)
from coopt.instance.catalog import named
from coopt.instance.couplings import (
    BillKind,
    Limits,
    Losses,
    Lost,
    Phase,
    Robust,
    Sharing,
    Site,
    Wan,
    corners,
)
from coopt.instance.existing import Existing, existing_complaints, given_network, with_lists
from coopt.instance.hardware import Gpu, HbDomain
from coopt.instance.network import COUNTED_ALONE, Network, RackLoad
from coopt.instance.quotes import CatalogFiles
from coopt.instance.reserves import DEFAULT_MARGIN, NO_MARGIN, Availability, Margin
from coopt.instance.texts import alternatives, both, that_hold
from coopt.instance.workload import Workload

CostKind = Literal["hb", "nic", "switch", "optics", "gpu"]
ProductKind = CostKind | Literal["fibre"]
ObjectiveKind = BillKind | Literal["time", "usd_per_token", "carbon"]
BILLED: dict[ObjectiveKind, BillKind] = {
    **{"capex": "capex", "power": "power", "tco": "tco"},
    **{"time": "capex", "usd_per_token": "tco", "carbon": "power"},
}
"""The sum of a bill that an objective weighs by the time of training; of equally fast designs the
cheapest counts.
"""
LISTS = (
    "hb_domains",
    "fabrics",
    "nics",
    "nics_per_gpu",
    "gpus_per_nic",
    "nic_planes",
    "pod_bundles",
    "switches",
    "optics",
)
"""Keys of a network whose entries are chosen from."""
DAY: TypeAdapter[date] = TypeAdapter(Day)
TableKind = Literal["ring", "losses", "failures", "direct", "phases", "core"]


IDLE_OF = 4
"""One GPU of so many may be idle where no number is given."""


def _idle(value: Any) -> Any:
    """Refuse what is neither a switch nor a number of GPUs in one sentence."""
    is_number = isinstance(value, int | float) and 1 <= value <= MAX_COUNT
    if isinstance(value, bool) or (is_number and value == int(value)):
        return value if isinstance(value, bool) else int(value)
    raise ValueError(f"needs true, false, or a whole number of GPUs from 1 to {MAX_COUNT:,}")


def _margin(value: Any) -> Any:
    """Read the word that is short for a margin of nothing."""
    if value == "none":
        return NO_MARGIN
    if value is None or isinstance(value, Mapping | Margin):
        return value
    raise ValueError("needs 'none' or a table")


class Cluster(Table):
    """The GPUs that train."""

    gpu: Annotated[
        Gpu,
        named("gpu", listed=True),
        Field(description="the kind of GPU; a list to choose from (docs/days.md)"),
    ]
    generations: Annotated[
        tuple[Annotated[Gpu, named("gpu")], ...],
        one_or_many,
        Field(
            description=(
                "the kinds of GPU to choose from, as a list in `gpu` is kept; the first is `gpu`"
            )
        ),
    ] = ()
    gpus: Annotated[
        tuple[Count, ...],
        one_many_or_range,
        Field(min_length=1, description="GPUs that train; a list or a range to choose from"),
    ]
    start: Annotated[
        Day | None, Field(description="first day of training; plans then name the last one")
    ] = None
    shares: Annotated[
        Count | None,
        Field(
            description="with sites: equal shares of GPUs and batch, of which each site takes some"
        ),
    ] = None

    idle_gpus: Annotated[
        bool | Count,
        BeforeValidator(_idle),
        Field(
            description=(
                "GPUs of `gpus` that the search may leave idle, which are bought all the same: at"
                " most so many; true: up to a quarter"
            )
        ),
    ] = False

    @model_validator(mode="before")
    @classmethod
    def _one_generation(cls, table: Any) -> Any:
        generations = table.get("gpu") if isinstance(table, Mapping) else None
        if not isinstance(generations, list | tuple) or not generations:
            return table
        return {
            **table,
            "gpu": generations[0],
            "generations": tuple(generations) if len(generations) > 1 else (),
        }

    @model_validator(mode="after")
    def _begins_with_gpu(self) -> Self:
        if self.generations and self.generations[0] != self.gpu:
            raise ValueError(first_of_list("generations", "gpu"))
        return self

    @property
    def kinds(self) -> tuple[Gpu, ...]:
        """Every kind of GPU that is listed."""
        return self.generations or (self.gpu,)

    @property
    def counts_text(self) -> str:
        """Allowed numbers of GPUs in words: `4,096 or 8,192`."""
        return alternatives(f"{count:,}" for count in self.gpus)

    def bought_for(self, gpus: int) -> int | None:
        """The number of GPUs that is bought where so many train: the least one listed that is no
        less; None where more would be idle than may be.
        """
        bought = min((count for count in self.gpus if count >= gpus), default=0)
        return bought if 0 <= bought - gpus <= self.most_idle(bought) else None

    def idle_sites(self, bought: int, size: int) -> list[tuple[int, int]]:
        """The numbers of GPUs that may train where so many are bought and some of them are idle,
        and of HB domains of `size` that hold them, filled alike: no more than hold all.
        """
        least, most = bought - self.most_idle(bought), -(-bought // size)
        alone = range(least, min(size // 2, bought - 1) + 1)
        return [(gpus, 1) for gpus in alone] + [
            (active * domains, domains)
            for active in range(size // 2 + 1, size + 1)
            for domains in range(-(-least // active), min(most, (bought - 1) // active) + 1)
            if domains and self.bought_for(active * domains) == bought
        ]

    def most_idle(self, bought: int) -> int:
        """Maximum number of idle GPUs of those bought."""
        if isinstance(self.idle_gpus, bool):
            return bought // IDLE_OF if self.idle_gpus else 0
        return min(self.idle_gpus, bought - 1)

    @property
    def has_several_counts(self) -> bool:
        """Whether several numbers of GPUs are allowed."""
        return len(self.gpus) > 1

    @property
    def most_gpus(self) -> int:
        """Maximum number of GPUs of one network, and of all islands together."""
        return max(self.gpus)

    def shares_of(self, gpus: int) -> int:
        """Number of shares that correspond to that many GPUs."""
        assert self.shares is not None, "only GPUs at several sites are divided into shares"
        return gpus * self.shares // self.gpus[0]


class Objective(Table):
    """What is minimised, and which costs are included."""

    minimize: Annotated[
        ObjectiveKind,
        Field(
            description=(
                "purchase (capex), power, or purchase and running costs (tco); of one workload on"
                " one network also time, usd_per_token (tco over the tokens of `years`), or carbon"
                " (of the electricity of its training)"
            )
        ),
    ] = "capex"
    include: Annotated[
        tuple[CostKind | Literal["host"], ...],
        one_or_many,
        Field(
            description=(
                "what counts in objective, limits and bill; gpu adds the GPUs that train, host the"
                " rest of servers and racks, which stands with HB domains"
            ),
            min_length=1,
        ),
    ] = ("hb", "nic", "switch", "optics")
    years: Annotated[
        float,
        Field(ge=0, le=100, description="time over which electricity counts in the TCO (years)"),
    ] = 4.0
    usd_per_kwh: Annotated[
        float, Field(ge=0, le=1000, description="price of electricity (USD/kWh)")
    ] = 0.08
    pue: Annotated[float, Field(ge=1, le=100, description="facility power over IT power")] = 1.25
    labour_share: Annotated[
        float,
        Field(
            ge=0,
            le=10,
            description=(
                "labour to install what is bought, once, as a share of its price; in the TCO"
            ),
        ),
    ] = 0.0
    support_share: Annotated[
        float,
        Field(
            ge=0,
            le=10,
            description="support of what is bought, a year, as a share of its price; in the TCO",
        ),
    ] = 0.0
    kg_co2_per_kwh: Annotated[
        Positive | None,
        Field(description="carbon of electricity (kg of CO2 equivalent per kWh); for carbon only"),
    ] = None

    def counts(self, kind: str) -> bool:
        """Whether lines of a kind are in the bill; fibre is where optics are."""
        return ("optics" if kind == "fibre" else kind) in self.include

    @property
    def billed(self) -> BillKind:
        """The sum of a bill that is minimised."""
        return BILLED[self.minimize]

    @property
    def owned_share(self) -> float:
        """Cost of owning a purchase over the years, besides electricity, relative to its price:
        price, labour and support (1 is the price alone).
        """
        return 1 + self.labour_share + self.support_share * self.years


class Solver(Table):
    """Time limit, optimality gap and threads of the search."""

    time_limit_s: Annotated[
        Positive, Field(description="time after which the search stops (s)")
    ] = 300.0
    gap: Annotated[
        float, Field(ge=0, lt=1, description="relative gap at which a plan counts as optimal")
    ] = 0.0
    threads: Annotated[Whole, Field(ge=1, le=256, description="threads of the search")] = 1
    name: Annotated[
        str,
        Field(
            min_length=1,
            max_length=100,
            description="built-in (HiGHS, handed over directly) or a solver Pyomo knows",
        ),
    ] = "built-in"
    seed: Annotated[
        Whole, Field(ge=0, le=2**31 - 1, description="seed of the solver's random choices")
    ] = 0
    top: Annotated[
        Whole,
        Field(ge=1, le=1000, description="designs to find: the best and the next best after it"),
    ] = 1


def _forget(product: dict[str, Any], key: str) -> None:
    """Remove a key that no plan depends on, and its source, from a serialised product."""
    product.pop(key, None)
    sources = [source for source in product.pop("sources", []) if source["fields"] != [key]]
    if sources:
        product["sources"] = sources


def _days(index: int, workload: Mapping[str, Any], start: Any) -> float:
    """Days from the start to the day by which a workload is trained."""
    by = workload["by"]
    place = f"workload[{index}].by = {by if isinstance(by, date) else repr(by)}"
    if start is None:
        raise ValueError(f"{place}: needs cluster.start, the first day of training")
    try:
        first, last = (DAY.validate_python(day, strict=True) for day in (start, by))
    except ValidationError:
        raise ValueError(
            f"{place}, cluster.start = {start}: needs days such as 2027-01-15"
        ) from None
    days = float((last - first).days)
    if days <= 0:
        raise ValueError(f"{place}: needs a day after cluster.start = {start}")
    if workload.get("train_days") not in (None, days):
        raise ValueError(
            f"{place} and train_days = {workload['train_days']}: both are given, needs only one"
        )
    return days


class Question(Table):
    """The tables of an instance before checks of their consistency."""

    __slots__ = ("_by_gpu", "_file", "_sha256")  # not compared; those cached are not copied

    schema_: Annotated[Literal[1], Field(alias="schema", description="version of this format")]
    name: Annotated[Name, Field(description="how the answer calls the question")]
    description: Annotated[str, Field(description="for those who read it")] = ""
    cluster: Annotated[Cluster, Field(description="the GPUs that train")]
    workload: Annotated[
        tuple[Workload, ...],
        one_or_many,
        Field(min_length=1, description="what to train, how fast"),
    ]
    network: Annotated[Network, Field(description="what the network may be built from")]
    existing: Annotated[
        tuple[Existing, ...], one_or_many, Field(description="networks that stand, as designs")
    ] = ()
    site: Annotated[
        tuple[Site, ...], one_or_many, Field(description="datacenters, where there are several")
    ] = ()
    wan: Annotated[tuple[Wan, ...], one_or_many, Field(description="channels between them")] = ()
    robust: Annotated[Robust | None, Field(description="what the plan has to stand")] = None
    availability: Annotated[
        Availability | None, Field(description="what interrupts training; nothing if left out")
    ] = None
    margin: Annotated[
        Margin | None,
        BeforeValidator(
            _margin,
            json_schema_input_type=Margin | Literal["none"] | None,
        ),
        Field(
            description=(
                "what a plan keeps free: memory by software and time by the error of the model, at"
                " 80%, if left out; 'none' is nothing"
            )
        ),
    ] = None
    phase: Annotated[
        tuple[Phase, ...], one_or_many, Field(description="years in which the cluster grows")
    ] = ()
    sharing: Annotated[Sharing, Field(description="how workloads share the cluster")] = Sharing()
    objective: Annotated[Objective, Field(description="what is minimised and what counts")] = (
        Objective()
    )
    limits: Annotated[Limits, Field(description="caps on what counts")] = Limits()
    solver: Annotated[Solver, Field(description="how long and how close to search")] = Solver()
    catalog: Annotated[
        CatalogFiles,
        Field(
            exclude=True,
            description="hardware and models of your own, for names in the other tables",
        ),
    ] = CatalogFiles()

    @model_validator(mode="before")
    @classmethod
    def _days_until(cls, table: Any) -> Any:
        """Turn the day by which a workload is trained into the days from the start."""
        workloads = table.get("workload") if isinstance(table, Mapping) else None
        cluster = table.get("cluster") if workloads else None
        if not isinstance(workloads, list | tuple | Mapping) or not isinstance(cluster, Mapping):
            return table
        return table | {
            "workload": tuple(
                {**workload, "train_days": _days(w, workload, cluster.get("start"))}
                if isinstance(workload, Mapping) and workload.get("by") is not None
                else workload
                for w, workload in enumerate(
                    (workloads,) if isinstance(workloads, Mapping) else workloads
                )
            )
        }

    @model_validator(mode="after")
    def _with_start(self) -> Self:
        """Tell workloads when they start; they are copied since other instances can share them."""
        if self.cluster.start is not None:
            self.__dict__["workload"] = tuple(
                workload.starting(self.cluster.start) for workload in self.workload
            )
        return self

    @model_validator(mode="after")
    def _in_all_days(self) -> Self:
        """Give workloads without a bound of their own all the days that workloads in turn have."""
        days = self.limits.train_days_total
        if days is not None:
            self.__dict__["workload"] = tuple(
                workload
                if workload.bounded or not workload.is_whole_run
                else workload.in_turn_within(days)
                for workload in self.workload
            )
        return self

    @model_validator(mode="before")
    @classmethod
    def _lists_of_what_stands(cls, table: Any) -> Any:
        return with_lists(table) if isinstance(table, Mapping) else table

    @model_validator(mode="after")
    def _is_given(self) -> Self:
        """Take network and GPUs that are given as they stand, at no price."""
        if self.existing and (complaints := list(existing_complaints(self))):
            raise ValueError("\n".join(complaints))
        if self.network.given:
            gpu = self.cluster.gpu.model_copy(update={"usd": 0.0})
            self.__dict__["cluster"] = self.cluster.model_copy(update={"gpu": gpu})
            self.__dict__["network"] = given_network(self.network, self.existing[0])
        return self

    @property
    def place(self) -> str:
        """What complaints begin with: the name of its file, or its own where it has none."""
        return getattr(self, "_file", self.name)

    def read_from(self, file: str) -> Self:
        """Return the question with the name of the file that it was read from."""
        object.__setattr__(self, "_file", file)
        return self

    def __copy__(self) -> Self:
        return self._of_file(super().__copy__())

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        return self._of_file(super().__deepcopy__(memo))

    def _of_file(self, copy: Self) -> Self:
        """Return a copy as of the same file."""
        return copy.read_from(self.place) if hasattr(self, "_file") else copy

    def __getstate__(self) -> dict[Any, Any]:
        file = {"_file": self.place} if hasattr(self, "_file") else {}
        return super().__getstate__() | file

    def __setstate__(self, state: dict[Any, Any]) -> None:
        super().__setstate__(state)
        if "_file" in state:
            self.read_from(state["_file"])

    @property
    def tells_ties(self) -> bool:
        """Whether mappings that the model cannot tell apart count: of networks built at once whose
        flows have no paths of their own.
        """
        apart = self.phase or self.asks("ring") or self.network.routing == "pinned"
        return self.kept_margin.ties == "nearest" and not apart

    @property
    def kept_margin(self) -> Margin:
        """What a plan keeps free, as given or by default."""
        return self.margin or DEFAULT_MARGIN

    @model_validator(mode="after")
    def _with_margin(self) -> Self:
        """Apply reserves to workloads, GPU and switches, which are copied since other instances can
        share them.
        """
        margin = self.kept_margin
        gpu, gpus = self.cluster.gpu, self.cluster.most_gpus
        shares = [margin.time_share(gpu, workload, gpus) for workload in self.workload]
        pairs = list(zip(shares, self.workload, strict=True))
        if any(share != workload.time_margin for share, workload in pairs):
            self.__dict__["workload"] = tuple(
                workload.with_margin(share) for share, workload in pairs
            )
        memory = margin.memory_share(self.workload)
        if memory != gpu.memory_margin:
            gpu = gpu.with_memory_margin(memory)
            self.__dict__["cluster"] = self.cluster.model_copy(update={"gpu": gpu})
        if any(switch.port_margin != margin.ports for switch in self.network.switches):
            switches = tuple(
                switch.with_port_margin(margin.ports) for switch in self.network.switches
            )
            self.__dict__["network"] = self.network.model_copy(update={"switches": switches})
        return self

    @model_validator(mode="after")
    def _joins_gpus_and_nics(self) -> Self:
        """Apply the rate at which GPUs reach their NICs to HB domains, which other instances can
        share.
        """
        domains = tuple(domain.with_gpu(self.cluster.gpu) for domain in self.network.hb_domains)
        if domains != self.network.hb_domains:
            self.__dict__["network"] = self.network.model_copy(update={"hb_domains": domains})
        return self

    @model_validator(mode="after")
    def _spreads_servers(self) -> Self:
        """Let servers that share racks fill as many as the caps of the hall need."""
        domains = []
        for domain in self.network.hb_domains:
            known = domain.racks or math.inf
            racks = max([known, *(load.racks(known) for load in self.rack_loads(domain).values())])
            domains.append(domain if racks in (known, math.inf) else domain.having(racks=racks))
        if tuple(domains) != self.network.hb_domains:
            self.__dict__["network"] = self.network.model_copy(
                update={"hb_domains": tuple(domains)}
            )
        return self

    def rack_loads(self, domain: HbDomain) -> dict[str, RackLoad]:
        """What an HB domain puts into racks, by the key of each cap of the hall: power with its
        GPUs, hosts and NICs, of which those count that draw most, and weight. Empty while several
        kinds of GPUs are to choose from: each may need other racks.
        """
        network, gpus = self.network, self.cluster.kinds
        sold = [gpu for gpu in gpus if len(gpus) == 1 or not domain.gpus or gpu.name in domain.gpus]
        if not (caps := network.hall.rack_caps) or len(sold) != 1:
            return {}
        (gpu,) = sold
        nics = max(network.nics_per_gpu) / min(network.gpus_per_nic)
        w = gpu.w + domain.w_per_gpu + nics * max((nic.w for nic in network.nics), default=0.0)
        host_w = domain.host_w_per_gpu
        kw = None if host_w is None else domain.size * (w + host_w) / 1e3
        loads = {"domain_rack_kw": (kw, "kW"), "domain_rack_kg": (domain.kg, "kg")}
        return {key: RackLoad(loads[key][0], cap, loads[key][1]) for key, cap in caps.items()}

    @model_validator(mode="after")
    def _by_other_tables(self) -> Self:
        """Set what other tables need of a network: domains filled evenly by default, one product at
        both ends of links unless the question is about one network built at once, and by default
        one on all tiers where several networks are coupled.
        """
        network, islands = self.network, self.sharing.mode == "partition"
        is_open = "tier_switches" not in network.model_fields_set
        fills_evenly = bool(self.even_for or self.robust or islands)
        needed = {
            "domain_fill": ("even", network.domain_fill == "fewest" and fills_evenly),
            "link_ends": ("same", network.link_ends == "own" and self.same_ends),
            "tier_switches": ("same", is_open and (self.one_product_for or islands)),
        }
        changes = {key: value for key, (value, is_needed) in needed.items() if is_needed}
        if changes:
            self.__dict__["network"] = network.model_copy(update=changes)
        return self

    @property
    def one_product_for(self) -> list[str]:
        """The parts of the question that support one product on all tiers only."""
        return self.asks("core", "phases", "ring", "direct")

    @property
    def mixes_gpus(self) -> bool:
        """Whether islands may have different kinds of GPUs."""
        return self.sharing.mixed_gpus and bool(self.cluster.generations)

    @property
    def stands(self) -> Existing | None:
        """The network that stands; None where all is new."""
        return self.existing[0] if self.existing else None

    @property
    def same_ends(self) -> bool:
        """Whether both ends of a link have the same product unless other ends are listed."""
        several = self.site or self.phase or self.robust or self.sharing.mode == "partition"
        return self.network.link_ends != "any" and (
            bool(several) or "direct" in self.network.fabrics
        )

    @property
    def _mixes_ends(self) -> bool:
        """Whether two different products of the list can be the ends of one link."""
        fibres = [optic.fibre for optic in self.network.optics if optic.fibre is not None]
        return self.network.has_own_ends and len(set(fibres)) < len(fibres)

    @property
    def even_for(self) -> list[str]:
        """The parts of the question that support evenly filled domains only."""
        further = {
            "network.gpus_per_nic above 1": self.network.gpus_per_nic != (1,),
            "network.routing = 'pinned'": self.network.routing == "pinned",
            "options.collectives other than 'levels'": any(
                workload.options.collectives != "levels" for workload in self.workload
            ),
        }
        tables = self.asks("ring", "losses", "failures", "direct", "phases")
        return tables + that_hold(further)

    def asks(self, *tables: TableKind) -> list[str]:
        """Names of the optional tables that the question uses."""
        contents: dict[TableKind, tuple[str, object]] = {
            "ring": (
                "[[site]] tables under sharing.mode = 'time'",
                self.site and self.sharing.mode == "time",
            ),
            "losses": ("robust.survive", self.losses),
            "failures": ("an [availability] table", self.availability),
            "direct": ("direct links", "direct" in self.network.fabrics),
            "phases": ("[[phase]] tables", self.phase),
            "core": ("a [sharing.core] table", self.sharing.core),
        }
        return [words for words, content in map(contents.__getitem__, tables) if content]

    @property
    def years(self) -> tuple[float | None, ...]:
        """The year in which each phase begins; a single None without growth."""
        return tuple(phase.year for phase in self.phase) or (None,)

    @property
    def sites(self) -> tuple[Site | None, ...]:
        """The possible sites of parts; a single None without sites."""
        return self.site or (None,)

    def site_named(self, name: str | None) -> Site | None:
        """Return the site of that name; None for parts without a site."""
        return next((site for site in self.site if site.name == name), None)

    @property
    def electricity_differs(self) -> bool:
        """Whether the price of electricity differs between sites or phases."""
        return bool(self.site or self.phase)

    @property
    def limited_sums(self) -> set[BillKind]:
        """The sums of a bill that have a limit, in total or per site."""
        of_all = set(self.limits.sums)
        return of_all | {"power"} if self.site else of_all

    @property
    def lists(self) -> dict[str, tuple[Any, ...]]:
        """Every list of which a network uses one entry, by its key."""
        keys = () if self.network.given else LISTS
        kinds = {"cluster.gpu": self.cluster.generations} if self.mixes_gpus else {}
        return (
            kinds
            | {"cluster.gpus": self.cluster.gpus}
            | {f"network.{key}": getattr(self.network, key) for key in keys}
        )

    @property
    def gpu_caps(self) -> dict[str, int]:
        """Maximum number of training GPUs of all parts together, by key; one per phase if there are
        several.
        """
        phases = {f"phase[{t}].gpus": phase.gpus for t, phase in enumerate(self.phase)}
        return phases or {"cluster.gpus": self.cluster.most_gpus}

    @property
    def losses(self) -> dict[Lost, float]:
        """The parts any one of which may be lost, each with the factor on bounds during the
        loss.
        """
        return (
            {}
            if self.robust is None
            else {part: self.robust.slower.of_part[part] for part in self.robust.survive}
        )

    def surviving(self, losses: Losses) -> Self:
        """Return the question with only these losses, each with its factor on bounds."""
        return (
            self
            if self.robust is None
            else self.model_copy(update={"robust": self.robust.surviving(losses)})
        )

    @property
    def power_caps_mw(self) -> dict[str, float]:
        """Power limits by key (MW): in total, and per site."""
        of_all = {} if self.limits.power_mw is None else {"limits.power_mw": self.limits.power_mw}
        return of_all | {f"site[{s}].power_mw": site.power_mw for s, site in enumerate(self.site)}

    @property
    def has_limits(self) -> bool:
        """Whether any workload has a bound or any limit is set."""
        is_bounded = any(workload.bounded for workload in self.workload)
        return is_bounded or bool(self.limits.given or self.power_caps_mw)

    @property
    def efficiencies(self) -> tuple[float, float]:
        """Minimum and maximum factor on the efficiency of the GPU."""
        return (1.0, 1.0) if self.robust is None else self.robust.efficiency

    @property
    def minimizes_regret(self) -> bool:
        """Whether the objective is the maximum regret: the excess cost of a plan over the best
        one.
        """
        return self.robust is not None and self.robust.aim == "regret"

    @property
    def worst_prices(self) -> dict[str, float]:
        """Price factors by kind where the plan is optimised for the worst prices; empty
        otherwise.
        """
        if (
            self.robust is None
            or self.minimizes_regret
            or set(self.robust.prices.worst.values()) == {1.0}
        ):
            return {}
        return self.robust.prices.worst

    @property
    def price_scenarios(self) -> list[dict[str, float]]:
        """The price scenarios of a regret objective, as factors by kind; empty for other
        objectives.

        Cost is linear in prices, so the maximum excess over the best plan lies at ends of the
        intervals.
        """
        return (
            corners(self.robust.prices) if self.robust is not None and self.minimizes_regret else []
        )

    @property
    def parted_by(self) -> list[str]:
        """The tables that require several networks: sites, phases and uncertainties."""
        return that_hold({"[[site]]": self.site, "[[phase]]": self.phase, "[robust]": self.robust})

    @property
    def open_keys(self) -> list[str]:
        """The keys with lists from which a plan chooses before the network search: GPUs, batches
        and knobs.
        """
        lists = [("cluster.gpu", bool(self.cluster.generations) and not self.mixes_gpus)]
        for w, workload in enumerate(self.workload):
            lists += [
                (f"workload[{w}].global_batch", bool(workload.batches)),
                (f"workload[{w}].options", bool(workload.options.allowed.listed)),
            ]
        return [key for key, is_open in lists if is_open]

    @property
    def beyond_one_network(self) -> list[str]:
        """The reasons why the question needs more than one switched network that all workloads use
        in turn, or has several counts and kinds of GPUs; empty if none.
        """
        lists = [f"lists in {both(self.open_keys)}"] if self.open_keys else []
        return [*self.several_networks, *lists]

    @property
    def several_networks(self) -> list[str]:
        """The reasons why an answer is no switched network that all workloads use in turn; empty if
        none.
        """
        islands = ["sharing.mode = 'partition'"] if self.sharing.mode == "partition" else []
        links = ["'direct' in network.fabrics"] if "direct" in self.network.fabrics else []
        return [*self.parted_by, *islands, *links]

    @property
    def sha256(self) -> str:
        """Identity of the question, independent of its notation, its solver settings and the
        objective of a run.
        """
        try:
            identity: str = object.__getattribute__(self, "_sha256")
        except AttributeError:
            identity = self._identity()
            object.__setattr__(self, "_sha256", identity)
        return identity

    def _identity(self) -> str:
        # what cannot change a plan of this question is no part of it, so that plans stay its
        # answers
        network_exclusions: dict[str, Any] = {"hall": True, "spares": True}
        network_exclusions |= {"domain_fill": True} if self.even_for else {}
        network_exclusions |= {"link_ends": True} if self.same_ends else {}
        exclusions: dict[str, Any] = {
            "solver": True,
            "objective": {"minimize"},
            "network": network_exclusions,
        }
        if not self.network.mates:  # nothing depends on what mates
            mating_keys = {"__all__": {"protocol", "lane_gbit_s"}}
            network_exclusions |= {
                "switches": mating_keys,
                "nics": mating_keys,
                "optics": mating_keys,
            }
        # without keys at their defaults, so that plans stay answers when instances may have further
        # keys
        tables = self.model_dump(
            mode="json", by_alias=True, exclude=exclusions, exclude_defaults=True
        )
        # by the defaults of networks that are counted alone, which were all that there were
        tables["network"].pop("buildable", None)
        for key, default in COUNTED_ALONE.items():
            tables["network"].pop(key, None)
            if key not in network_exclusions and getattr(self.network, key) != default:
                tables["network"][key] = getattr(self.network, key)
        if not self.network.keeps_cages:
            tables["network"].pop("switch_cages", None)
        if not self.network.has_own_ends and not self.same_ends:
            tables["network"].pop("link_ends", None)
        if self.network.mates and self.network.tier_switches == "same":
            tables["network"]["mates"] = True
        if self.network.cables == "hall":  # how racks stand chooses products
            tables["network"]["hall"] = self.network.hall.model_dump(
                mode="json", exclude={"usd_per_switch_rack"}, exclude_defaults=True
            )
        limited = any(map(self.network.is_limited, self.network.hb_domains))
        forgotten = {
            "switches": ["rack_units"] * (self.network.cables == "tier"),
            "optics": [
                *([] if self.network.fibre else ["whole_cable", "connectors"]),
                *([] if self._mixes_ends or self.network.fibre else ["fibre"]),
            ],
            "nics": ["ethernet_port_gbit_s"],  # which notes are about alone
            # network.nics has those of a domain where they count
            "hb_domains": [
                "nics",
                "nics_on_board",
                "cooling",
                "kg",
                *["nic_gbyte_s"] * (not limited),
            ],
        }
        for key, figures in forgotten.items():
            for product, figure in itertools.product(tables["network"][key], figures):
                _forget(product, figure)
        offloads = any(any(workload.mapping.offload_percent) for workload in self.workload)
        if not limited and not offloads:
            for gpu in (tables["cluster"]["gpu"], *tables["cluster"].get("generations", ())):
                _forget(gpu, "host_gbyte_s")
        for workload in tables["workload"]:
            # what counts of it is the margin of the memory
            _forget(workload.get("options", {}).get("software", {}), "memory_margin")
        slower = tables.get("robust", {}).get("slower", {})
        if "channel" not in self.losses:  # one number holds for it as well
            slower.pop("channel", None)
        tables["margin"] = (
            {}
            if self.kept_margin.keeps_nothing
            else self.kept_margin.model_dump(mode="json", exclude_defaults=True)
            | {"memory": self.cluster.gpu.memory_margin}
        )
        filled_tables = {name: table for name, table in tables.items() if table}
        return hashlib.sha256(
            json.dumps(filled_tables, sort_keys=True, separators=(",", ":")).encode()
        ).hexdigest()
