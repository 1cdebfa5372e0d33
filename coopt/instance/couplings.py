"""What couples the networks of a question: total limits, sharing between islands, phases, sites,
and losses to survive.
"""

from collections.abc import Mapping
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, get_args

from pydantic import BeforeValidator, Field, model_validator

from coopt.instance.base import (
    Count,
    Fraction,
    Name,
    NonNegative,
    Positive,
    Price,
    Table,
    Watts,
    one_or_many,
    one_or_series,
    series_of,
)
from coopt.instance.catalog import named
from coopt.instance.hardware import Optic, Switch, mate
from coopt.instance.texts import alternatives, counted, refuse

if TYPE_CHECKING:
    from coopt.instance.workload import Workload

Kind = Literal["hb", "nic", "switch", "optics", "gpu"]
BillKind = Literal["capex", "power", "tco"]
BracketPrices = Annotated[tuple[Price, ...], one_or_series]
Shares = Annotated[tuple[Fraction, ...], one_or_series]

PriceFactor = Annotated[float, Field(ge=0, le=1000)]
BOUND_KEYS = ("max_iteration_time_s", "min_tokens_per_s", "train_days", "train_tokens")

MAX_SITES = 6  # there are too many rings through more sites to enumerate


class Limits(Table):
    """Caps on totals of what `include` counts, and of days."""

    power_mw: Annotated[
        float | None, Field(ge=1e-6, le=1e15, description="cap on IT power (MW)")
    ] = None
    capex_usd: Annotated[
        float | None, Field(ge=1e-6, le=1e15, description="cap on purchase (USD)")
    ] = None
    racks: Annotated[
        float | None, Field(ge=1e-6, le=1e15, description="cap on racks for HB domains")
    ] = None
    train_days_total: Annotated[
        float | None,
        Field(
            ge=1e-6,
            le=1e15,
            description="cap on the sum of the days of workloads in turn",
        ),
    ] = None

    def against(self, *, usd: Any, w: Any, racks: Any) -> dict[str, tuple[Any, float]]:
        """Return the use of each given limit on a bill and the limit itself, in the limit's unit.

        `racks` may be unknown if they are not limited.
        """
        amounts = {"power_mw": w / 1e6, "capex_usd": usd, "racks": racks}
        return {
            key: (amount, cap)
            for key, amount in amounts.items()
            if (cap := self.given.get(key)) is not None
        }

    @property
    def given(self) -> dict[str, float]:
        """The limits given, by key, each in its own unit."""
        return {key: cap for key in LIMITED if (cap := getattr(self, key)) is not None}

    @property
    def sums(self) -> dict[BillKind, float]:
        """The limit on each sum of a bill that has one (USD or W)."""
        return {
            kind: cap * scale
            for kind, (key, scale) in OF_SUM.items()
            if (cap := getattr(self, key)) is not None
        }


LIMITED = {
    "power_mw": ("power", "MW"),
    "capex_usd": ("purchase", "USD"),
    "racks": ("racks", "racks"),
    "train_days_total": ("total days of training", "days"),
}
"""What the limits are on, and their units."""


def limit_check(key: str) -> str:
    """The name of the check of a limit: `limit-power` of `power_mw`."""
    return f"limit-{key.partition('_')[0]}"


OF_SUM: dict[BillKind, tuple[str, float]] = {
    "capex": ("capex_usd", 1.0),
    "power": ("power_mw", 1e6),
}
"""Sums of a bill that may have a limit: its key, and how many of the bill's units (USD or W) make
one of its own.
"""


class MostProducts(Table):
    """Maximum number of different products of a kind in use over all islands; unlimited if
    omitted.
    """

    hb: Annotated[Count | None, Field(description="kinds of HB domain")] = None
    nic: Annotated[Count | None, Field(description="network adapters")] = None
    switch: Annotated[Count | None, Field(description="switches")] = None
    optics: Annotated[Count | None, Field(description="optics")] = None

    @property
    def given(self) -> dict[str, int]:
        """The maximum number of products of each limited kind."""
        return {
            kind: limit
            for kind in type(self).model_fields
            if (limit := getattr(self, kind)) is not None
        }


class Discount(Table):
    """Prices of one product by the quantity bought over all islands."""

    kind: Annotated[
        Kind,
        Field(
            description="what the product is: hb counts GPUs in HB domains, gpu the idle ones too"
        ),
    ]
    item: Annotated[Name, Field(description="name of the product")]
    begins: Annotated[
        tuple[Count, ...],
        one_or_series,
        Field(
            alias="from", min_length=1, description="units from which on each price holds, rising"
        ),
    ]
    usd: Annotated[
        BracketPrices | None, Field(description="price of a unit from each of them on (USD)")
    ] = None
    off: Annotated[Shares | None, Field(description="or the share of the price taken off")] = None
    applies: Annotated[
        Literal["all-units", "incremental"],
        Field(
            description=(
                "whether a price holds for every unit bought or for those beyond its threshold"
            )
        ),
    ] = "all-units"

    @model_validator(mode="after")
    def _one_price_each(self) -> Self:
        subject = f"discount on {self.item!r}"
        prices = self.usd or self.off or ()
        refuse(
            (
                (self.usd is None) == (self.off is None),
                f"{subject}: needs either usd or off, with one value for each threshold in `from`",
            ),
            (
                len(prices) != len(self.begins),
                f"{subject}: has {counted(len(self.begins), 'threshold')} and"
                f" {counted(len(prices), 'value')}, needs one value for each threshold",
            ),
            (
                list(self.begins) != sorted(set(self.begins)),
                f"{subject}: from = {list(self.begins)}, needs rising thresholds",
            ),
        )
        return self

    def prices(self, usd: float) -> tuple[float, ...]:
        """Return the price from each threshold on (USD) for a product at list price `usd`; shares
        are rounded to cents.
        """
        if self.usd is not None:
            return self.usd
        assert self.off is not None
        return tuple(round(usd * (1 - off), 2) for off in self.off)


class Sharing(Table):
    """How workloads share the cluster: one after the other on all of it, or each on its own island
    of HB domains.
    """

    mode: Annotated[
        Literal["time", "partition"],
        Field(description="all of the cluster in turn, or a part of it each"),
    ] = "time"
    most_products: Annotated[
        MostProducts, Field(description="partition: most different products of a kind")
    ] = MostProducts()
    discount: Annotated[
        tuple[Discount, ...],
        one_or_many,
        Field(description="partition: prices by the quantity of all islands"),
    ] = ()
    core: Annotated[
        "Core | None",
        Field(
            description=(
                "switches that join the islands of a site, or its network with its channels; none"
                " if left out"
            )
        ),
    ] = None
    mixed_gpus: Annotated[
        bool,
        Field(
            description=(
                "partition: whether each island chooses its GPUs among those that cluster.gpu lists"
            )
        ),
    ] = False

    @property
    def of_one_part(self) -> "Sharing":
        """The settings that apply to a single part: its links into the core."""
        return Sharing(core=self.core)

    @property
    def optic_in_use(self) -> str | None:
        """The optic named for the core, if any, which is in use whatever islands consist of; the
        first of several.
        """
        return None if self.core is None else next(iter(self.core.optics), None)


def _name_or_several(value: Any) -> Any:
    """A list as a tuple, one name as itself."""
    if not isinstance(value, list | tuple):
        return value
    return value[0] if len(value) == 1 else tuple(value)


class Core(Table):
    """Switches between islands, or between the network of a site and its channels, and the
    bandwidth required through them.
    """

    switch: Annotated[
        Name, Field(description="name of a listed switch, which the core consists of")
    ]
    gbit_s_per_gpu: Annotated[
        Positive,
        Field(description="what every GPU that trains can send to other islands or sites (Gbit/s)"),
    ]
    optic: Annotated[
        Name | Annotated[tuple[Name, ...], Field(min_length=1)] | None,
        BeforeValidator(_name_or_several),
        Field(
            description=(
                "name of the listed optic at both ends of its links, or with link_ends = 'any' at"
                " those in the core (several with cables = 'hall'); chosen where left out, needed"
                " with [[wan]]"
            )
        ),
    ] = None

    @property
    def optics(self) -> tuple[str, ...]:
        """The optics that are named; none where any may be."""
        return (self.optic,) if isinstance(self.optic, str) else self.optic or ()


class PhaseWorkload(Table):
    """A workload of `[[workload]]` that trains in a phase; a bound given here replaces its own."""

    name: Annotated[Name, Field(description="name of the workload")]
    max_iteration_time_s: Annotated[
        Positive | None, Field(description="bound: time of one iteration (s)")
    ] = None
    min_tokens_per_s: Annotated[
        Positive | None, Field(description="bound: pace of the training (tokens/s)")
    ] = None
    train_days: Annotated[
        Positive | None, Field(description="bound: time to train `train_tokens` (days)")
    ] = None
    train_tokens: Annotated[
        Positive | None, Field(description="tokens of the whole training run")
    ] = None

    @property
    def bound(self) -> dict[str, float]:
        """The keys of the bound given here; empty if the workload keeps its own."""
        return {key: value for key in BOUND_KEYS if (value := getattr(self, key)) is not None}


class PriceFactors(Table):
    """Prices of a phase relative to those of the instance, by kind of the bill; 1 is the same
    price.
    """

    hb: Annotated[
        PriceFactor,
        Field(description="HB domains with their idle GPUs; in a fleet these go by gpu"),
    ] = 1.0
    nic: Annotated[PriceFactor, Field(description="NICs")] = 1.0
    switch: Annotated[PriceFactor, Field(description="switches")] = 1.0
    optics: Annotated[PriceFactor, Field(description="optics and fibre")] = 1.0
    gpu: Annotated[PriceFactor, Field(description="GPUs that train")] = 1.0
    energy: Annotated[
        PriceFactor, Field(description="electricity, from this phase to the next")
    ] = 1.0


def _workload_row(value: Any) -> Any:
    """Accept the name of a workload in place of a table."""
    return {"name": value} if isinstance(value, str) else value


NamedWorkload = Annotated[
    PhaseWorkload, BeforeValidator(_workload_row, json_schema_input_type=str | PhaseWorkload)
]


class Phase(Table):
    """A step of growth: the cluster from `year` on, until the next phase."""

    year: Annotated[
        float, Field(ge=0, le=10_000, description="when it begins, such as 2027 or 1.5")
    ]
    gpus: Annotated[Count, Field(description="GPUs that train, those of earlier phases included")]
    workloads: Annotated[
        tuple[NamedWorkload, ...],
        one_or_many,
        Field(
            description="workloads that train, by name or with a bound of their own; left out: all"
        ),
    ] = ()
    price: Annotated[
        PriceFactors, Field(description="prices of this phase over those of the instance")
    ] = PriceFactors()
    retrofit_usd_per_link: Annotated[
        Price, Field(description="labour for an uplink added to a switch that stood before (USD)")
    ] = 0.0


class Site(Table):
    """A datacenter."""

    name: Annotated[Name, Field(description="how the answer calls it")]
    power_mw: Annotated[
        Positive, Field(description="facility power it can feed: IT power times PUE (MW)")
    ]
    pue: Annotated[
        float | None, Field(ge=1, le=100, description="facility over IT power; else objective.pue")
    ] = None
    usd_per_kwh: Annotated[
        float | None,
        Field(
            ge=0,
            le=1000,
            description="price of electricity (USD/kWh); objective.usd_per_kwh if left out",
        ),
    ] = None


class Wan(Table):
    """Wide-area channels that can be lit between two sites."""

    between: Annotated[tuple[Name, Name], one_or_many, Field(description="the two sites")]
    gbit_s: Annotated[
        Positive, Field(description="what gradients get of one channel, each way (Gbit/s)")
    ]
    usd: Annotated[
        Price,
        Field(
            description=(
                "price of one channel, its share of the fibre and what `sharing.core` does not"
                " count of both ends (USD)"
            )
        ),
    ]
    w: Annotated[
        Watts,
        Field(description="power of one channel, half at each end (W)"),
    ] = 0.0
    latency_ms: Annotated[NonNegative, Field(description="time that a signal takes one way (ms)")]
    most: Annotated[Count, Field(description="channels that can be lit")]
    km: Annotated[
        NonNegative | None,
        Field(description="length of the fibre (km), by which `sharing.core` gets its optics"),
    ] = None
    optics: Annotated[
        tuple[Annotated[Optic, named("optic")], ...],
        one_or_many,
        Field(description="ends of channels in ports of `sharing.core`: the cheapest that reach"),
    ] = ()

    @property
    def name(self) -> str:
        """Name of the channels between two sites: `east - west`."""
        return " - ".join(self.between)

    def optics_in(self, switch: Switch, *, mates: bool) -> tuple[Optic, ...]:
        """The optics that fill a port of a switch, on request those alone that mate with it."""
        return tuple(
            optic
            for optic in self.optics
            if optic.links_of(switch.port_gbit_s) == 1 and (not mates or mate(optic, switch))
        )


def part_of(workload: "Workload", shares: int, all_shares: int) -> "Workload":
    """Return what a site with some of the shares trains: its part of every batch, in the same
    time.
    """
    return workload.model_copy(
        update={
            "global_batch": workload.global_batch * shares // all_shares,
            "max_iteration_time_s": workload.required_s,
        }
        | dict.fromkeys(("min_tokens_per_s", "train_days", "train_tokens"))
    )


Lost = Literal["nic", "leaf", "plane", "domain", "channel"]
Factor = Annotated[float, Field(gt=0, le=1000)]
Interval = Annotated[tuple[Factor, Factor], series_of("least", "most")]
MAX_SLOWDOWN = 1000
Longer = Annotated[float, Field(ge=1, le=MAX_SLOWDOWN)]
Losses = Mapping[Lost, float]
"""Parts of which any one may be lost, each with the factor by which bounds are longer then."""
LOST: Mapping[Lost, str] = {
    "nic": "NIC",
    "leaf": "leaf",
    "plane": "plane",
    "domain": "HB domain",
    "channel": "channel between sites",
}
"""What may be lost, in words."""


class Prices(Table):
    """Intervals of factors on the prices of a kind of item; [1, 1] if omitted."""

    hb: Annotated[Interval, Field(description="HB domains; their idle GPUs go by gpu")] = (1.0, 1.0)
    nic: Annotated[Interval, Field(description="NICs")] = (1.0, 1.0)
    switch: Annotated[Interval, Field(description="switches")] = (1.0, 1.0)
    optics: Annotated[Interval, Field(description="optics and fibre")] = (1.0, 1.0)
    gpu: Annotated[Interval, Field(description="GPUs, those that stay idle too")] = (1.0, 1.0)

    @model_validator(mode="after")
    def _rising(self) -> Self:
        for kind, (low, high) in self.intervals.items():
            if low > high:
                raise ValueError(f"{kind} = [{low:g}, {high:g}]: needs the smaller factor first")
        return self

    @property
    def intervals(self) -> dict[str, tuple[float, float]]:
        """The interval of every kind."""
        return {kind: getattr(self, kind) for kind in type(self).model_fields}

    @property
    def worst(self) -> dict[str, float]:
        """The upper end of every interval."""
        return {kind: high for kind, (_, high) in self.intervals.items()}


class Slower(Table):
    """Factors on bounds while a part is lost; 1 if omitted, or one number for all parts."""

    nic: Annotated[Longer, Field(description="while a NIC is lost")] = 1.0
    leaf: Annotated[Longer, Field(description="while a leaf switch is lost")] = 1.0
    plane: Annotated[Longer, Field(description="while a plane is lost")] = 1.0
    domain: Annotated[Longer, Field(description="while an HB domain is lost")] = 1.0
    channel: Annotated[Longer, Field(description="while a channel between sites is lost")] = 1.0

    @property
    def of_part(self) -> dict[Lost, float]:
        """The factor of every part."""
        return {part: getattr(self, part) for part in get_args(Lost)}


def _slower(value: Any) -> Any:
    """Apply a single number to every part."""
    if isinstance(value, Mapping | Slower):
        return value
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not 1 <= value <= MAX_SLOWDOWN
    ):
        raise ValueError(
            f"needs a factor from 1 to {MAX_SLOWDOWN}, or a table of factors by what is lost"
            f" ({alternatives(Slower.model_fields)})"
        )
    return dict.fromkeys(Slower.model_fields, float(value))


class Robust(Table):
    """Losses to survive, and intervals of possible prices and efficiency."""

    survive: Annotated[
        tuple[Lost, ...],
        one_or_many,
        Field(
            description=(
                "parts of which any one may be lost: nic, leaf, plane, domain; or channel, where"
                " sites train one model"
            )
        ),
    ] = ()
    slower: Annotated[
        Slower,
        BeforeValidator(_slower, json_schema_input_type=Longer | Slower),
        Field(
            description=(
                "bounds grow by this factor while a part is lost; a table has one for each part"
            )
        ),
    ] = Slower()
    prices: Annotated[
        Prices, Field(description="factors on prices: [least, most]; electricity has none")
    ] = Prices()
    efficiency: Annotated[
        Interval,
        Field(
            description=(
                "factors on what compute and memory of the GPU reach: [least, most]; the least"
                " must do"
            )
        ),
    ] = (1.0, 1.0)
    aim: Annotated[
        Literal["worst-case", "regret"],
        Field(
            description=(
                "least cost at the worst prices, or least excess over the best plan at any prices"
            )
        ),
    ] = "worst-case"

    def surviving(self, losses: Losses) -> "Robust":
        """Return a copy with only these losses, each with its factor on bounds."""
        return self.model_copy(
            update={"survive": tuple(losses), "slower": Slower.model_validate(losses)}
        )

    @property
    def certain(self) -> "Robust":
        """Return a copy with the losses but without uncertain prices and efficiency."""
        return Robust(survive=self.survive, slower=self.slower)


def corners(prices: Prices) -> list[dict[str, float]]:
    """Return every combination of interval ends: cost is linear in prices, so extremes lie
    there.
    """
    ends = {kind: tuple(dict.fromkeys(interval)) for kind, interval in prices.intervals.items()}
    return [dict(zip(ends, factors, strict=True)) for factors in product(*ends.values())]
