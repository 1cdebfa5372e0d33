"""Hardware of a cluster: GPUs, HB domains, NICs, switches, optics, fibre and panels."""

import math
import re
from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Literal, Self

from pydantic import Field, PrivateAttr, field_serializer, model_validator

from coopt.instance.base import (
    Count,
    Entry,
    Name,
    Positive,
    Price,
    Table,
    Watts,
    Whole,
    one_or_many,
)
from coopt.instance.numerics import EQUAL, REORDERED
from coopt.instance.texts import alternatives, counted, refuse
from coopt.instance.transformer import Efficiency, Reached

Precision = Literal["bf16", "fp16", "fp8", "fp4"]


IDLE, SPARE = " (idle)", " (spare)"
"""What stands behind a name in a bill: for GPUs that do not train, and for units that are bought
and not in use.
"""


class Gpu(Entry):
    """An accelerator."""

    generation: Annotated[
        str, Field(description="GPUs of one generation are calibrated together")
    ] = ""
    bf16_tflop_s: Annotated[Positive, Field(description="dense 16-bit peak (TFLOP/s)")]
    fp8_tflop_s: Annotated[Positive | None, Field(description="dense 8-bit peak (TFLOP/s)")] = None
    fp4_tflop_s: Annotated[Positive | None, Field(description="dense 4-bit peak (TFLOP/s)")] = None
    hbm_gb: Annotated[Positive, Field(description="memory capacity (10^9 bytes)")]
    hbm_gbyte_s: Annotated[Positive, Field(description="memory bandwidth (10^9 bytes/s)")]
    host_gbyte_s: Annotated[
        Positive | None,
        Field(
            description=(
                "reached one way to its host, and to NICs where its servers say nothing else"
                " (10^9 bytes/s)"
            )
        ),
    ] = None
    sm_count: Annotated[Count, Field(description="streaming multiprocessors or compute units")]
    usd: Annotated[Price, Field(description="street price of one GPU (USD)")]
    w: Annotated[Watts, Field(description="board power (W)")]
    efficiency: Annotated[Efficiency, Field(description="how much of the data sheet a run reaches")]

    _memory_margin: float = PrivateAttr(default=0.0)

    def with_memory_margin(self, share: float) -> Self:
        """Return the GPU with that share of its memory reserved."""
        return self.with_private(_memory_margin=share)

    @property
    def memory_margin(self) -> float:
        """Share of the memory that is reserved."""
        return self._memory_margin

    @property
    def usable_bytes(self) -> float:
        """Memory available to a plan (bytes)."""
        return self.hbm_gb * 1e9 * (1.0 - self._memory_margin)

    def whole_gb(self, used_bytes: float) -> float:
        """Return the total memory (10^9 bytes) whose usable part is `used_bytes`."""
        return used_bytes / 1e9 / (1.0 - self._memory_margin)

    @property
    def idle_name(self) -> str:
        """Name of idle GPUs in a bill."""
        return f"{self.name}{IDLE}"

    def peak_flop_s(self, precision: Precision) -> float:
        """Dense peak of a precision (FLOP/s); 0 if not supported."""
        return 1e12 * (
            {"fp8": self.fp8_tflop_s, "fp4": self.fp4_tflop_s}.get(precision, self.bf16_tflop_s)
            or 0.0
        )

    def reached(self, precision: Precision) -> Reached:
        """Return the efficiencies of a precision; without figures of its own, those of the next
        wider one.
        """
        efficiency = self.efficiency
        wide = Reached(gemm=efficiency.gemm, hbm=efficiency.hbm, kernel_s=efficiency.kernel_s)
        if precision == "fp4":
            return efficiency.fp4 or efficiency.fp8 or wide
        return (efficiency.fp8 or wide) if precision == "fp8" else wide

    def error(self, precision: Precision) -> float | None:
        """Mean absolute error of iteration times on published runs in this precision; None if
        unknown.
        """
        efficiency = self.efficiency
        if precision in ("fp8", "fp4"):
            table = efficiency.fp8 if precision == "fp8" else efficiency.fp4
            return table.error if table else None
        return efficiency.error


Cooling = Literal["air", "liquid"]


@dataclass(frozen=True)
class Servers:
    """Price and power of the servers that those of an HB domain include, for each GPU (USD, W):
    domains that differ in this alone are equal, since no table says it.
    """

    usd: float = field(default=0.0, compare=False)
    w: float = field(default=0.0, compare=False)


class HbDomain(Entry):
    """A group of GPUs joined at full bandwidth (NVLink class)."""

    size: Annotated[Count, Field(description="GPUs in one domain")]
    gbyte_s: Annotated[
        Positive,
        Field(description="one-way bandwidth of a GPU inside the domain (10^9 bytes/s, not bits)"),
    ]
    usd_per_gpu: Annotated[
        Price,
        Field(
            description="interconnect price for each GPU (USD); 0 where the server price holds it"
        ),
    ]
    w_per_gpu: Annotated[
        Watts, Field(description="interconnect power for each GPU (W); 0 where the server holds it")
    ]
    nics: Annotated[
        tuple[str, ...],
        one_or_many,
        Field(description="NICs that its servers come with; not known if left out"),
    ] = ()
    nics_on_board: Annotated[
        bool,
        Field(
            description="whether they are on its boards, so that what can be built has no others"
        ),
    ] = False
    nic_gbyte_s: Annotated[
        Positive | None,
        Field(
            description=(
                "rate at which a GPU reaches all its NICs, one way (10^9 bytes/s); host_gbyte_s of"
                " the GPU if left out"
            )
        ),
    ] = None
    gpus: Annotated[
        tuple[str, ...], one_or_many, Field(description="GPUs it is sold with; empty for any")
    ] = ()
    racks: Annotated[float | None, Field(gt=0, le=1e6, description="racks one domain fills")] = None
    cooling: Annotated[Cooling | None, Field(description="what cools it")] = None
    kg: Annotated[Positive | None, Field(description="weight of one domain (kg)")] = None
    host_usd_per_gpu: Annotated[
        Price | None,
        Field(
            description=(
                "price of the rest of server or rack for each GPU, without GPU, interconnect and"
                " NIC (USD)"
            )
        ),
    ] = None
    host_w_per_gpu: Annotated[
        Watts | None, Field(description="power of the same for each GPU (W)")
    ] = None

    _to_nics_gbyte_s: float = PrivateAttr(default=math.inf)
    _servers: Servers = PrivateAttr(default=Servers())

    def with_gpu(self, gpu: Gpu) -> Self:
        """Return the domain with GPUs of a kind, whose link to their host may limit their NICs."""
        return self.with_nics_at(self.nic_gbyte_s or gpu.host_gbyte_s or math.inf)

    def with_nics_at(self, gbyte_s: float) -> Self:
        """Return the domain with GPUs that reach their NICs at a rate (10^9 bytes/s)."""
        return self.with_private(_to_nics_gbyte_s=gbyte_s)

    @property
    def to_nics_gbyte_s(self) -> float:
        """Rate at which a GPU reaches its NICs, one way (10^9 bytes/s); infinite if unknown."""
        return self._to_nics_gbyte_s

    @property
    def rates(self) -> tuple[float, float]:
        """What times depend on: the rates inside the domain and to NICs (10^9 bytes/s)."""
        return self.gbyte_s, self._to_nics_gbyte_s

    def with_hosts(self) -> Self:
        """Return the domain with the rest of its servers or racks included in its price and
        power.
        """
        usd, w = self.host_usd_per_gpu or 0.0, self.host_w_per_gpu or 0.0
        figures = {"usd_per_gpu": self.usd_per_gpu + usd, "w_per_gpu": self.w_per_gpu + w}
        held_usd, held_w = self.servers
        whole = self.model_copy(update={**figures, "host_usd_per_gpu": 0.0, "host_w_per_gpu": 0.0})
        return whole.with_servers(held_usd + usd, held_w + w)

    def with_servers(self, usd: float, w: float) -> Self:
        """Return the domain with servers of that price and power for each GPU (USD, W) as a part of
        its own.
        """
        return self.with_private(_servers=Servers(usd, w))

    @property
    def servers(self) -> tuple[float, float]:
        """Price and power of servers for each GPU (USD, W) that those of the domain include."""
        return self._servers.usd, self._servers.w

    def study_note(self, gpu: str) -> str:
        """Return a note that the domain is not sold, or not with this GPU; empty if it is."""
        if self.gpus and gpu not in self.gpus:
            return (
                f"{self.name} is sold with {alternatives(self.gpus)}. With {gpu} it is"
                " hypothetical, unless that is one of these under another name."
            )
        if any("size" in source.fields and source.tag == "D" for source in self.sources):
            return (
                f"This hardware is hypothetical: nobody sells {self.name}, whose size is assumed."
            )
        return ""


Protocol = Literal["ethernet", "infiniband"]
LaneRate = Annotated[Positive, Field(description="rate of a lane (Gbit/s)")]


class Nic(Entry):
    """A network adapter with one port, or with several ports on separate planes."""

    gbit_s: Annotated[
        Positive, Field(description="rate of all its ports together (Gbit/s, not GB/s)")
    ]
    ports: Annotated[
        tuple[Count, ...],
        one_or_many,
        Field(min_length=1, description="numbers of equal ports it can be run with"),
    ] = (1,)
    cages: Annotated[
        Count,
        Field(
            description=(
                "modules it takes; each holds an equal share of the ports, and breaks out into them"
            )
        ),
    ] = 1
    protocol: Annotated[
        tuple[Protocol, ...],
        one_or_many,
        Field(description="what it can speak; not known if left out"),
    ] = ()
    lane_gbit_s: Annotated[
        tuple[LaneRate, ...],
        one_or_many,
        Field(description="rates its lanes can be run at (Gbit/s); not known if left out"),
    ] = ()
    ethernet_port_gbit_s: Annotated[
        Positive | None,
        Field(description="its fastest Ethernet port (Gbit/s); as on InfiniBand if left out"),
    ] = None
    usd: Annotated[Price, Field(description="price (USD)")]
    w: Annotated[Watts, Field(description="power (W)")]

    @model_validator(mode="after")
    def _ports_fill_cages(self) -> Self:
        refuse(
            *(
                (ports % self.cages, f"ports = {ports}: needs a multiple of cages = {self.cages}")
                for ports in self.ports
            )
        )
        return self


Radix = Annotated[Whole, Field(ge=2, le=4096, description="ports")]
PortRate = Annotated[Positive, Field(description="rate of a port (Gbit/s, not GB/s)")]


class SwitchMode(Table):
    """Another mode of a switch: a number of ports of one rate."""

    radix: Radix
    port_gbit_s: PortRate


MIN_PORTS = 2
CAGES = 4
"""Ports that stay together on large switches, as modules that break out fill cages of theirs."""


def _ports_left(radix: int, share: float) -> int:
    """Number of ports in use where a share stays free: whole cages on switches with at least 32
    ports.
    """
    cage = math.gcd(radix, CAGES) if radix >= 8 * CAGES else 1
    return int(radix * (1.0 - share) * (1.0 + REORDERED)) // cage * cage


class Switch(Entry):
    """A packet switch; all ports have the same rate, in its default mode or in one of its
    `modes`.
    """

    radix: Radix
    port_gbit_s: PortRate
    protocol: Annotated[
        Protocol | None,
        Field(
            description=(
                "what its ports speak; switches of two protocols do not mate; not known if left out"
            )
        ),
    ] = None
    lane_gbit_s: Annotated[
        LaneRate | None,
        Field(
            description=(
                "rate of a lane of its ports (Gbit/s); unlike ones do not mate; not known if"
                " left out"
            )
        ),
    ] = None
    modes: Annotated[
        tuple[SwitchMode, ...],
        one_or_many,
        Field(description="other ways to run the same box, each at another rate"),
    ] = ()
    cages: Annotated[
        Count | None,
        Field(
            description=(
                "modules it takes, each for an equal share of its ports; one for each port, or for"
                " each port of its fastest mode, if left out"
            )
        ),
    ] = None
    reduces: Annotated[bool, Field(description="it adds up what passes through it (SHARP)")] = False
    rack_units: Annotated[
        Positive | None,
        Field(
            description=(
                "height in rack units, for the racks that switches fill; no plan depends on it"
            )
        ),
    ] = None
    usd: Annotated[Price, Field(description="price of the whole switch (USD)")]
    optics_inside: Annotated[
        bool,
        Field(
            description="co-packaged optics: its ports take no modules, price and power hold them"
        ),
    ] = False
    w: Annotated[
        Watts,
        Field(description="power of the whole switch, without optics unless they are inside (W)"),
    ]

    _port_margin: float = PrivateAttr(default=0.0)
    _full_ports: tuple[int, tuple[SwitchMode, ...]] | None = PrivateAttr(default=None)

    @field_serializer("radix")
    def _whole_radix(self, radix: int) -> int:
        return self._full_ports[0] if self._full_ports else radix

    @field_serializer("modes")
    def _whole_modes(self, modes: tuple[SwitchMode, ...]) -> tuple[SwitchMode, ...]:
        return self._full_ports[1] if self._full_ports else modes

    def with_port_margin(self, share: float) -> Self:
        """Return the switch with that share of its ports reserved: `radix` and `modes` exclude
        them, but serialisation includes them.

        Raises
        ------
        ValueError
            If fewer than two ports remain.
        """
        radix, modes = self._full_ports or (self.radix, self.modes)
        ports_left = [
            _ports_left(ports_of_box, share)
            for ports_of_box in (radix, *(mode.radix for mode in modes))
        ]
        if min(ports_left) < MIN_PORTS:
            raise ValueError(
                f"margin.ports = {share:g}: leaves switch {self.name!r} only"
                f" {counted(min(ports_left), 'port')}, needs a smaller share that leaves at least"
                f" {MIN_PORTS}"
            )
        smaller_modes = tuple(
            mode.model_copy(update={"radix": ports})
            for mode, ports in zip(modes, ports_left[1:], strict=True)
        )
        switch = self.model_copy(update={"radix": ports_left[0], "modes": smaller_modes})
        full_ports = (radix, modes) if share else None
        return switch.with_private(_port_margin=share, _full_ports=full_ports)

    @property
    def free_ports(self) -> int:
        """Number of reserved ports in the default mode."""
        return self._full_ports[0] - self.radix if self._full_ports else 0

    @property
    def port_margin(self) -> float:
        """Minimum share of the ports that is reserved."""
        return self._port_margin

    @model_validator(mode="after")
    def _one_box(self) -> Self:
        rates = Counter([self.port_gbit_s, *(mode.port_gbit_s for mode in self.modes)])
        refuse(
            (
                self.cages is not None and (self.modes or self.radix % self.cages),
                f"cages = {self.cages}: needs a divisor of radix = {self.radix}, and no modes",
            ),
            *(
                (
                    rates[mode.port_gbit_s] > 1,
                    f"modes: ports of {mode.port_gbit_s:g} Gbit/s come twice (port_gbit_s is a"
                    " mode too), needs one mode per port rate",
                )
                for mode in self.modes
            ),
        )
        return self

    @property
    def in_each_mode(self) -> tuple["Switch", ...]:
        """The switch in its default mode, then in each other mode."""
        return _in_each_mode(self)

    @property
    def cage_gbit_s(self) -> float:
        """Rate of the modules of a cage (Gbit/s): of all its ports, or of the fastest port."""
        if self.cages is not None:
            return (
                (self._full_ports[0] if self._full_ports else self.radix)
                // self.cages
                * self.port_gbit_s
            )
        return max(self.port_gbit_s, *(mode.port_gbit_s for mode in self.modes), 0.0)


@lru_cache(maxsize=1 << 8)
def _in_each_mode(switch: Switch) -> tuple[Switch, ...]:
    modes = (SwitchMode(radix=switch.radix, port_gbit_s=switch.port_gbit_s), *switch.modes)
    return tuple(
        switch.model_copy(
            update={**dict(mode), "modes": tuple(other for other in modes if other != mode)}
        )
        for mode in modes
    )


class Optic(Entry):
    """One end of a link: transceiver and half a cable; a breakout module ends several slower
    links.
    """

    gbit_s: Annotated[Positive, Field(description="rate (Gbit/s, not GB/s)")]
    breakout: Annotated[
        tuple[Count, ...],
        one_or_many,
        Field(description="numbers of equal links that one end may be split into"),
    ] = ()
    connectors: Annotated[
        Count,
        Field(description="connectors for fibres; more links than these need splitter cables"),
    ] = 1
    lane_gbit_s: Annotated[
        LaneRate | None,
        Field(description="rate of a lane towards NIC or switch (Gbit/s); not known if left out"),
    ] = None
    fibre: Annotated[
        Name | None,
        Field(
            description=(
                "what each pair of its fibres carries, its rate first, as '100gbase-dr' (without a"
                " rate a link has one pair): modules that say the same may be two ends of a link;"
                " what says nothing is at both"
            )
        ),
    ] = None
    whole_cable: Annotated[
        bool,
        Field(
            description=(
                "it is one end of a cable that comes with both, of copper or active: a purchase"
                " list has the cable; no plan depends on it"
            )
        ),
    ] = False
    reach_m: Annotated[Positive, Field(description="longest link (m)")]
    usd: Annotated[Price, Field(description="price of one end (USD)")]
    w: Annotated[Watts, Field(description="power of one end (W)")]

    def meets(self, optic: "Optic") -> bool:
        """Whether the two can be the ends of one link: the same product, or modules for the same
        fibre and signal.
        """
        return self.name == optic.name or (self.fibre is not None and self.fibre == optic.fibre)

    def pairs_of(self, gbit_s: float) -> int:
        """Pairs of fibres of a link of a rate (Gbit/s); 0 without fibres of its own."""
        if self.fibre is None or self.whole_cable:
            return 0
        number = re.match(r"[1-9]\d*", self.fibre)
        return math.ceil(gbit_s / int(number[0]) * (1 - EQUAL)) if number else 1

    def pairs_together(self, gbit_s: float) -> int:
        """Pairs of a link of a rate (Gbit/s) that leave by one of its connectors."""
        return -(-self.pairs_of(gbit_s) // max(1, self.connectors // max(1, self.links_of(gbit_s))))

    def split_at(self, gbit_s: float) -> int:
        """Links of a rate (Gbit/s) that one of its connectors serves."""
        return -(-self.links_of(gbit_s) // self.connectors)

    def links_of(self, gbit_s: float) -> int:
        """Number of links of a rate (Gbit/s) that a fully used end carries; 0 if it carries
        none.
        """
        if gbit_s == self.gbit_s:
            return 1  # asked for every network that is listed
        return next(
            (
                count
                for count in (1, *self.breakout)
                if math.isclose(count * gbit_s, self.gbit_s, rel_tol=EQUAL)
            ),
            0,
        )


def mate(*parts: Nic | Optic | Switch) -> bool:
    """Whether these can be the ends of a link: the same protocol and lane rate, where stated."""
    for key in ("protocol", "lane_gbit_s"):
        values_by_part = [getattr(part, key, None) for part in parts]
        value_sets = [
            set(values) if isinstance(values, tuple) else {values}
            for values in values_by_part
            if values
        ]
        if value_sets and not set.intersection(*value_sets):
            return False
    return True


METRE = " (m)"
"""What a bill puts behind the name of fibre that is sold by the metre."""


class Fibre(Entry):
    """What joins modules: a cable, or what splits a connector."""

    carries: Annotated[
        tuple[Name, ...],
        one_or_many,
        Field(min_length=1, description="`fibre` of the optics it is for"),
    ]
    pairs: Annotated[Count, Field(description="pairs of fibres in its connector")]
    links: Annotated[
        Count, Field(description="links it splits a connector into; 1 for a cable")
    ] = 1
    usd: Annotated[Price, Field(description="price of one, with its ends (USD)")]
    usd_per_m: Annotated[Price, Field(description="price of each metre besides (USD)")] = 0.0

    @model_validator(mode="after")
    def _no_metre(self) -> Self:
        text = f"name = {self.name!r}: in bills{METRE} marks fibre by the metre, needs another name"
        refuse((self.name.endswith(METRE), text))
        return self

    def joins(self, fibre: str | None, links: int, pairs: int) -> bool:
        """Whether it is a cable for a connector of so many pairs of a fibre, or splits one into so
        many links.
        """
        return self.links == links and self.pairs >= pairs and fibre in self.carries

    @property
    def metre(self) -> str:
        """What a bill calls a metre of it."""
        return f"{self.name}{METRE}"

    def times(self, factor: float) -> Self:
        """The same at so many times its prices."""
        return self.having(usd=self.usd * factor, usd_per_m=self.usd_per_m * factor)

    @property
    def sold(self) -> tuple[tuple[str, float], tuple[str, float]]:
        """What a bill calls one of it, and a metre of it, with their prices (USD)."""
        return (self.name, self.usd), (self.metre, self.usd_per_m)


class Panel(Entry):
    """A patch panel or optical circuit switch for direct links."""

    usd_per_port: Annotated[Price, Field(description="price of one port (USD)")]
    w_per_port: Annotated[Watts, Field(description="power of one port (W)")]
