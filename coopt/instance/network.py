"""Components of a network, load sharing of flows, racks, and additional purchases."""

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import BeforeValidator, Field, ValidationInfo, model_validator

from coopt.instance.base import (
    Count,
    NonNegative,
    Positive,
    Price,
    Table,
    Whole,
    one_or_many,
    series_of,
)
from coopt.instance.catalog import find, named, ports_of_modules
from coopt.instance.hardware import Cooling, Fibre, HbDomain, Nic, Optic, Panel, Switch, mate
from coopt.instance.numerics import EQUAL
from coopt.instance.texts import both, that_hold

MAX_TIERS = 3  # leaves, aggregation and cores; docs/network.md has no formulas for more
Share = Annotated[float, Field(ge=0, le=1)]


class HallRows(Table):
    """Positions of racks: rows of racks of equal pitch."""

    racks_per_row: Annotated[Count, Field(description="racks of a row")] = 20
    rack_pitch_m: Annotated[Positive, Field(description="from rack to rack of a row (m)")] = 0.6
    row_pitch_m: Annotated[Positive, Field(description="from row to row (m)")] = 3.0
    rise_m: Annotated[
        NonNegative,
        Field(description="from a port up to the tray, or down from it, with slack (m)"),
    ] = 2.5
    in_rack_m: Annotated[Positive, Field(description="cable between ports of one rack (m)")] = 2.0

    def cable_m(self, rack_a: Any, rack_b: Any) -> Any:
        """Length of a cable between two racks (m): up to the trays, along and across rows, and
        down; numbers or arrays.
        """
        row, place = rack_a // self.racks_per_row, rack_a % self.racks_per_row
        far_row, far_place = rack_b // self.racks_per_row, rack_b % self.racks_per_row
        aside, across = (
            abs(place - far_place) * self.rack_pitch_m,
            abs(row - far_row) * self.row_pitch_m,
        )
        is_same = rack_a == rack_b
        return self.in_rack_m * is_same + (2 * self.rise_m + aside + across) * (1 - is_same)


class RackLoad(NamedTuple):
    """What an HB domain puts into racks, None if unknown, and the cap on each rack."""

    amount: float | None
    cap: float
    unit: str

    def racks(self, known: float) -> float:
        """Racks that the domain fills under the cap: servers that share a rack are spread over
        more; infinite where a whole rack is above the cap.
        """
        amount = self.amount or 0.0
        together = math.floor(self.cap / amount + EQUAL) if amount else math.inf
        if known >= 1:
            return known if amount <= self.cap * known * (1 + EQUAL) else math.inf
        return max(known, 1 / together) if together else math.inf


class NetworkHallRows(HallRows):
    """Positions of the racks of HB domains and of switches, in rows of racks of equal pitch."""

    switch_rack_units: Annotated[
        Positive, Field(description="rack units for switches in a rack of switches")
    ] = 42
    switch_rack_kw: Annotated[
        Positive | None,
        Field(
            description=(
                "most that switches and their optics in a rack draw (kW); no limit if left out"
            )
        ),
    ] = None
    usd_per_switch_rack: Annotated[
        Price | None,
        Field(description="price of a rack of switches, for the bill of `coopt bom` (USD)"),
    ] = None


class DomainHallRows(NetworkHallRows):
    """Rows of racks, and what one rack of HB domains may draw and weigh."""

    domain_rack_kw: Annotated[
        Positive | None,
        Field(description="cap on the power of a rack of HB domains and their NICs (kW)"),
    ] = None
    domain_rack_kg: Annotated[
        Positive | None, Field(description="cap on the weight of HB domains in a rack (kg)")
    ] = None
    cooling: Annotated[
        Cooling | None, Field(description="what the hall can cool with; liquid includes air")
    ] = None

    @property
    def rack_caps(self) -> dict[str, float]:
        """The caps on racks of HB domains that are given, by key."""
        caps = {"domain_rack_kw": self.domain_rack_kw, "domain_rack_kg": self.domain_rack_kg}
        return {key: cap for key, cap in caps.items() if cap is not None}


LABOUR, SUPPORT = "labour to install", "support"


class Hall(NetworkHallRows):
    """A hall with domains in order; switches are placed in the middle of the equipment below them,
    or in racks of their own.
    """

    racks_per_domain: Annotated[
        float, Field(gt=0, le=1e4, description="racks that a domain fills; 0.25: four share")
    ]

    def rack_of(self, domain: int) -> int:
        """Return the number of the rack of a domain; of its middle rack if it has several."""
        return int(domain * self.racks_per_domain + max(0.0, self.racks_per_domain - 1) / 2)


class SpareRates(Table):
    """Spare parts bought beyond those in use, as shares of these, rounded up."""

    nic: Annotated[Share, Field(description="NICs")] = 0.0
    switch: Annotated[Share, Field(description="switches of each product")] = 0.0
    optics: Annotated[Share, Field(description="optics of each product")] = 0.0

    def of(self, kind: str) -> float:
        """Return the share for a kind of item; 0 for kinds without spares."""
        return float(getattr(self, kind)) if kind in SpareRates.model_fields else 0.0


class WorkRates(Table):
    """Labour and support, as shares of the purchase."""

    labour_share: Annotated[float, Field(ge=0, le=10, description="labour to install it, once")] = (
        0.0
    )
    support_share: Annotated[float, Field(ge=0, le=10, description="its support, a year")] = 0.0
    years: Annotated[
        float, Field(ge=0, le=100, description="time over which it is supported (years)")
    ] = 4.0

    def due(self, capex_usd: float) -> Iterator[tuple[str, float]]:
        """Yield labour and support over the years, by name (USD); nothing for a share of 0."""
        if self.labour_share:
            yield LABOUR, capex_usd * self.labour_share
        if self.support_share and self.years:
            yield f"{SUPPORT}, {self.years:g} years", capex_usd * self.support_share * self.years


def not_counted(works: Iterable[WorkRates], spares: Iterable[SpareRates]) -> str:
    """Return which installation and running costs some purchase has no rate for."""
    works, spares = tuple(works), tuple(spares)
    return both(
        that_hold(
            {
                "installation": not all(rates.labour_share for rates in works),
                "support": not all(rates.support_share for rates in works),
                "freight": True,
                "spare parts": not all(
                    any(rates.of(kind) for kind in SpareRates.model_fields) for rates in spares
                ),
            }
        )
    )


SwitchedKind = Literal["rail-only", "rail-optimized", "clos"]
FabricKind = SwitchedKind | Literal["direct"]
DomainFill = Literal["even", "fewest", "any"]
Ratio = Annotated[float, Field(ge=1, le=4096)]


class Discipline(NamedTuple):
    """Rules for the slowdown above the leaves: the charge, routing of flows, and efficiency of
    spraying.

    `routing` is the name of a discipline, or a factor on loads (or on the ratio).
    """

    charge: Literal["loads", "ratio"]
    routing: Literal["spray", "pinned", "ecmp"] | float
    efficiency: float


COUNTED_ALONE = {"tier_switches": "same", "link_ends": "own", "switch_cages": "told"}
"""The defaults of a network that is counted, whether or not it can be built."""


class Network(Table):
    """Products and rules that a network can be built from."""

    buildable: Annotated[
        bool,
        Field(
            description=(
                "whether networks can be built as they are billed: what is linked mates, and no"
                " switch has more modules than cages; false counts switches and links alone, with"
                " 'same', 'own' and 'told' as defaults of tier_switches, link_ends and switch_cages"
            )
        ),
    ] = True

    hb_domains: Annotated[
        tuple[Annotated[HbDomain, named("hb_domain")], ...],
        one_or_many,
        Field(description="kinds of HB domain to choose from", min_length=1),
    ]
    fabrics: Annotated[
        tuple[FabricKind, ...],
        one_or_many,
        Field(description="kinds of network between HB domains to choose from", min_length=1),
    ]
    nics: Annotated[
        tuple[Annotated[Nic, named("nic")], ...],
        one_or_many,
        Field(
            description=(
                "network adapters to choose from; those that the servers of hb_domains come with if"
                " left out"
            ),
            min_length=1,
        ),
    ] = ()
    nics_per_gpu: Annotated[
        tuple[Count, ...],
        one_or_many,
        Field(description="adapters of each GPU to choose from", min_length=1),
    ] = (1,)
    gpus_per_nic: Annotated[
        tuple[Count, ...],
        one_or_many,
        Field(
            min_length=1,
            description=(
                "GPUs of a domain that share an adapter, to choose from; several only with one in"
                " nics_per_gpu"
            ),
        ),
    ] = (1,)
    nic_planes: Annotated[
        tuple[Count, ...],
        one_or_many,
        Field(
            description="equal networks that the ports of each adapter lead to, to choose from",
            min_length=1,
        ),
    ] = (1,)
    switches: Annotated[
        tuple[Annotated[Switch, named("switch")], ...],
        one_or_many,
        Field(description="switches to choose from", min_length=1),
    ]
    tier_switches: Annotated[
        Literal["same", "any"],
        Field(
            description=(
                "whether all tiers have one product (same), or each any that mates with the tier"
                " below (any); 'same' if left out with cores, phases, sites, direct links and"
                " islands"
            )
        ),
    ] = "any"
    optics: Annotated[
        tuple[Annotated[Optic, named("optic")], ...],
        one_or_many,
        Field(
            description="optics to choose from; each level takes the best that reaches",
            min_length=1,
        ),
    ]
    fibre: Annotated[
        tuple[Annotated[Fibre, named("fibre")], ...],
        one_or_many,
        Field(
            description=("cables and splitters of fibre to choose from; fibre is free if left out")
        ),
    ] = ()
    link_ends: Annotated[
        Literal["same", "own", "any"],
        Field(
            description=(
                "whether both ends of a link have one product (same), or each end the best that"
                " fits there and meets the other: of one network that is built at once (own), or"
                " everywhere (any)"
            )
        ),
    ] = "any"
    switch_cages: Annotated[
        Literal["told", "kept"],
        Field(
            description=(
                "whether a switch may have more modules than cages, which the answer then tells"
                " (told), or has ports for no more of them (kept)"
            )
        ),
    ] = "kept"
    panels: Annotated[
        tuple[Annotated[Panel, named("panel")], ...],
        one_or_many,
        Field(
            description=(
                "what direct links are patched through; the cheapest is taken, none if left out"
            )
        ),
    ] = ()
    oversubscription: Annotated[
        Ratio | Annotated[tuple[Ratio, ...], Field(min_length=1)],
        BeforeValidator(
            lambda value: tuple(value) if isinstance(value, list) else value,
            json_schema_input_type=float | list[float],
        ),
        Field(
            description=(
                "largest ratio of down to up bandwidth of one switch; a list allows only these"
                " ratios"
            )
        ),
    ] = 1.0
    end_to_end_oversubscription: Annotated[
        Ratio | None,
        Field(
            description=(
                "largest product of the ratios of leaf and pod; bounded only by that of each switch"
                " if left out"
            )
        ),
    ] = None
    charge: Annotated[
        Literal["loads", "ratio"],
        Field(
            description=(
                "what traffic beyond a leaf is slowed by: loads of links, or the leaf's ratio of"
                " ports"
            )
        ),
    ] = "loads"
    routing: Annotated[
        Literal["spray", "pinned", "ecmp"] | Annotated[float, Field(ge=1, le=1000)],
        Field(
            description=(
                "how flows share the links above leaves: sprayed, each pinned to a"
                " path, at random (ecmp), or a factor by which the busiest link is fuller than the"
                " mean"
            )
        ),
    ] = "spray"
    spray_efficiency: Annotated[
        float, Field(gt=0, le=1, description="share of their links that sprayed flows reach")
    ] = 0.98
    bundles: Annotated[
        Literal["even", "any"],
        Field(
            description=(
                "whether all bundles of links between two tiers are equal (even), or as the fewest"
                " switches above give them (any)"
            )
        ),
    ] = "even"
    leaf_fill: Annotated[
        Literal["ratio", "any"],
        Field(
            description=(
                "how many NICs a leaf holds: what whole ratios leave of its ports, or besides (any)"
                " as few as each number of leaves takes, up to the largest ratio"
            )
        ),
    ] = "any"
    pod_bundles: Annotated[
        tuple[Count, ...],
        one_or_many,
        Field(
            min_length=1,
            description=(
                "three tiers: parallel links of a leaf to each aggregation switch of its pod, to"
                " choose from"
            ),
        ),
    ] = (1,)
    pod_uplinks: Annotated[
        Literal["ratio", "any"],
        Field(
            description=(
                "ports up of aggregation switches of three tiers: as many as a whole ratio of ports"
                " down to up asks for, or more (ratio), or besides as few as the largest ratio"
                " allows (any)"
            )
        ),
    ] = "ratio"
    domain_fill: Annotated[
        DomainFill,
        Field(
            description=(
                "whether as many GPUs train in every HB domain (even), or any number that keeps"
                " groups of TP, CP and EP whole (any), or that where it takes fewer domains"
                " (fewest)"
            )
        ),
    ] = "fewest"
    max_tiers: Annotated[Whole, Field(ge=1, le=MAX_TIERS, description="most tiers of switches")] = (
        MAX_TIERS
    )
    max_networks: Annotated[
        Count | None,
        Field(
            description=(
                "most separate networks (rails of rail-only fabrics times planes of a NIC);"
                " unlimited if left out"
            )
        ),
    ] = None
    link_reach_m: Annotated[
        tuple[Positive, Positive, Positive],
        series_of("NIC to leaf", "leaf to next tier", "to the core"),
        Field(description="length of links: NIC to leaf, leaf to next tier, to the core (m)"),
    ] = (50.0, 100.0, 500.0)

    cables: Annotated[
        Literal["tier", "hall"],
        Field(
            description=(
                "whether a tier has one kind of cables, which reaches link_reach_m (tier), or the"
                " cheapest for each length in the hall (hall, the default with fibre)"
            )
        ),
    ] = "tier"

    hall: Annotated[
        DomainHallRows,
        Field(description="how racks stand, for lengths of cables"),
    ] = DomainHallRows()

    given: Annotated[
        bool,
        Field(
            description=(
                "whether nothing is bought: the network is the one [[existing]], and the answer its"
                " mapping"
            )
        ),
    ] = False

    spares: Annotated[
        SpareRates,
        Field(description="what `coopt bom` buys beside what is in use"),
    ] = SpareRates()

    @model_validator(mode="before")
    @classmethod
    def _counted_alone(cls, table: Any) -> Any:
        """Give a network that need not be buildable the defaults of one; what is given stands as it
        is.
        """
        if not isinstance(table, Mapping):
            return table
        if table.get("fibre"):
            table = {"cables": "hall", **table}
        if table.get("given") is True:
            table = {"buildable": False, **table}
        return table if table.get("buildable", True) else {**COUNTED_ALONE, **table}

    @property
    def needed_reach_m(self) -> tuple[float, float, float]:
        """How far links of each level reach at least; lengths in the hall decide beyond that."""
        return (0.0, 0.0, 0.0) if self.cables == "hall" else self.link_reach_m

    @property
    def mates(self) -> bool:
        """Whether parts are linked only where they mate."""
        return self.buildable or self.tier_switches == "any"

    @property
    def switch_modes(self) -> tuple[Switch, ...]:
        """Every switch of the list in each of its modes."""
        return tuple(way for switch in self.switches for way in switch.in_each_mode)

    @property
    def unpriced(self) -> Self:
        """The rules and products of networks without prices and power."""
        keys = ("hb_domains", "nics", "switches", "optics", "panels")
        lists = {key: tuple(entry.unpriced for entry in getattr(self, key)) for key in keys}
        return self.model_copy(update=lists)

    def gbit_s_into(self, switch: Switch) -> float:
        """What NICs of a GPU send at least over ports of a switch's rate; 0 if none have it."""
        joining = [
            nic.gbit_s
            for nic, planes in product(self.nics, self.nic_planes)
            if planes in nic.ports
            and math.isclose(switch.port_gbit_s * planes, nic.gbit_s, rel_tol=EQUAL)
        ]
        sharing = max(self.gpus_per_nic) if 1 in self.nics_per_gpu else 1
        return min(joining, default=0.0) * min(self.nics_per_gpu) / sharing

    @property
    def discipline(self) -> Discipline:
        """Rules by which traffic is charged; under the ratio, sprayed flows have no efficiency
        loss.
        """
        if self.charge == "ratio" and self.routing == "spray":
            return Discipline(self.charge, 1.0, 1.0)
        return Discipline(
            self.charge, self.routing, self.spray_efficiency if self.routing == "spray" else 1.0
        )

    @property
    def many_sided(self) -> bool:
        """Whether networks vary in more than fabric, products, ports and uplinks.

        These are planes of NICs, shared NICs, bundles in pods, unevenly filled domains, products
        per tier, different ends of links, and cages that modules of several links fill.
        """
        breaks_out = any(optic.breakout for optic in self.optics)
        mixes_ends = self.link_ends == "any" and self.has_own_ends
        return self.varies_further or mixes_ends or (self.keeps_cages and breaks_out)

    @property
    def varies_further(self) -> bool:
        """Whether networks vary in more than ports in cages and one product at each end of the
        links of a level.
        """
        is_plain = self.nic_planes == self.gpus_per_nic == self.pod_bundles == (1,)
        by_choice = "any" in (self.domain_fill, self.tier_switches) or self.cables == "hall"
        return by_choice or not is_plain

    @property
    def keeps_cages(self) -> bool:
        """Whether some switch has fewer cages for modules than ports, and cages are kept."""
        return self.switch_cages == "kept" and any(
            ports_of_modules(way, 1) < way.radix for way in self.switch_modes
        )

    @property
    def has_own_ends(self) -> bool:
        """Whether the ends of a link have products of their own; with "any" only where some that
        are listed differ in what they carry, or meet.
        """
        fibres = [optic.fibre for optic in self.optics if optic.fibre is not None]
        may_differ = len(set(fibres)) < len(fibres) or any(optic.breakout for optic in self.optics)
        may_differ = may_differ or self.cables == "hall"
        return self.link_ends == "own" or (self.link_ends == "any" and may_differ)

    @model_validator(mode="after")
    def _takes_nics_of_servers(self, info: ValidationInfo) -> Self:
        """Take the NICs that all servers come with where none are listed, and of those that are
        listed the ones that all servers have on their boards.
        """
        bare = [domain.name for domain in self.hb_domains if not domain.nics]
        if not self.nics and bare:
            raise ValueError(
                f"no NIC is listed, and none comes with {both(bare)}, needs network.nics"
            )
        if not self.nics:
            names = dict.fromkeys(name for domain in self.hb_domains for name in domain.nics)
            self.__dict__["nics"] = tuple(find("nic", name, info.context) for name in names)
        elif self.buildable and all(domain.nics_on_board for domain in self.hb_domains):
            on_board = {name for domain in self.hb_domains for name in domain.nics}
            held = tuple(nic for nic in self.nics if nic.name in on_board)
            if any(self.joints(held)):  # others are noted
                self.__dict__["nics"] = held
        return self

    def joints(self, nics: Iterable[Nic]) -> Iterator[bool]:
        """Yield, of each run of these NICs with each switch and optic of its rate, whether a
        network may have them.
        """
        reach_m = self.needed_reach_m[0]
        for nic, planes, switch, optic in product(
            nics, self.nic_planes, self.switch_modes, self.optics
        ):
            # a module fills a cage, whose planes it breaks out into
            if (
                planes in nic.ports
                and switch.port_gbit_s == nic.gbit_s / planes
                and optic.reach_m >= reach_m
                and optic.links_of(nic.gbit_s / planes) == planes // nic.cages
            ):
                yield not self.mates or mate(nic, switch, optic)

    def is_limited(self, domain: HbDomain) -> bool:
        """Whether GPUs of a domain reach less of some NICs than these send."""
        nic_gbyte_s = max(nic.gbit_s for nic in self.nics) * max(self.nics_per_gpu) / 8
        return nic_gbyte_s > domain.to_nics_gbyte_s

    @property
    def switched(self) -> tuple[SwitchedKind, ...]:
        """The kinds of fabrics with switches."""
        return tuple(kind for kind in self.fabrics if kind != "direct")

    @property
    def ratios(self) -> tuple[float, ...] | None:
        """The allowed oversubscription ratios if listed; None if every ratio up to `largest_ratio`
        is allowed.
        """
        return self.oversubscription if isinstance(self.oversubscription, tuple) else None

    @property
    def largest_ratio(self) -> float:
        """Maximum allowed oversubscription."""
        return (
            max(self.oversubscription)
            if isinstance(self.oversubscription, tuple)
            else self.oversubscription
        )
