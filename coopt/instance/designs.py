"""Network designs without a workload: the format of files such as
`instances/designs/published.toml`.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, Tag, ValidationError

from coopt.instance.base import Count, Name, Positive, Table, Whole, one_or_many, one_or_series
from coopt.instance.catalog import named, sentences
from coopt.instance.hardware import Fibre, Nic, Optic, Switch
from coopt.instance.network import Hall, SpareRates, WorkRates
from coopt.instance.quotes import CatalogFiles, validated
from coopt.instance.texts import InstanceError, broken, counted, file_of, read_toml

LEAST_PORTS = 2  # of a switch
MOST_TIERS = 3
Ports = Annotated[Whole, Field(ge=1, le=100_000)]
Counts = Annotated[
    tuple[Annotated[Whole, Field(ge=0)], ...],
    one_or_series,
    Field(min_length=1, max_length=MOST_TIERS),
]


class TierForm(Table):
    """One tier of a design, with identical switches."""

    ports: Annotated[Whole, Field(ge=LEAST_PORTS, le=100_000, description="ports of a switch")]
    down: Annotated[
        Ports | None, Field(description="most cables down; a spine of two tiers may keep ports so")
    ] = None
    up: Annotated[Ports | None, Field(description="cables up; 1:1 if left out")] = None
    gbit_s: Annotated[
        Positive | None, Field(description="rate of a port that is not broken out (Gbit/s)")
    ] = None
    down_gbit_s: Annotated[Positive | None, Field(description="rate of a cable down (Gbit/s)")] = (
        None
    )
    up_gbit_s: Annotated[Positive | None, Field(description="rate of a cable up (Gbit/s)")] = None
    switch: Annotated[
        Switch | None, named("switch"), Field(description="the product: catalog name or table")
    ] = None
    optic: Annotated[
        Optic | None,
        named("optic"),
        Field(description="both ends of a cable down: catalog name or table"),
    ] = None
    optic_below: Annotated[
        Optic | None,
        named("optic"),
        Field(description="the lower end, where it is another product over the same fibre"),
    ] = None


class ByHbDomain(Table):
    """End points of a network beside that of a plan: a number per HB domain of the plan, plus a
    constant.
    """

    per_hb_domain: Annotated[
        Count, Field(description="for each HB domain of the plan, as its hosts")
    ]
    more: Annotated[
        Whole, Field(ge=0, le=10**9, description="for the whole, as nodes of the storage")
    ] = 0


class Published(Table):
    """The counts that a source states."""

    switches: Annotated[Counts, Field(description="of each tier over all planes, leaves first")]
    links: Annotated[
        Counts | None, Field(description="cables of one port each below each tier")
    ] = None
    optics: Annotated[
        dict[Name, Annotated[Whole, Field(ge=0)]] | None,
        Field(description="modules of each product that tiers name, over all tiers"),
    ] = None


class PublishedDesign(Table):
    """A network: its end points, how leaves are filled, and its tiers from the leaves up
    (docs/designs.md).
    """

    id: Annotated[Name, Field(description="how answers call it")]
    source: Annotated[str, Field(description="where its counts stand")] = ""
    tag: Annotated[
        str | None,
        Field(
            max_length=100,
            description="how they are known, in words or with the tags of the catalog",
        ),
    ] = None
    domains: Annotated[
        Count | Annotated[ByHbDomain, Tag("table by HB domains")],
        Field(
            description="HB domains installed; beside a plan, a table counts them by its HB domains"
        ),
    ]
    gpus_per_domain: Annotated[Count, Field(description="GPUs in each")]
    rails: Annotated[
        Count | None,
        Field(
            description=(
                "rails of a domain with leaves of their own: gpus_per_domain (if left out), a"
                " divisor of it, or as many as it has ports in a plane; in a clos the leaves that"
                " the ports of each GPU take turns in (1 if left out)"
            )
        ),
    ] = None
    nics_per_gpu: Annotated[
        Count, Field(description="NICs of a GPU, which share its `nic_ports`")
    ] = 1
    nic_ports: Annotated[Count, Field(description="network ports of a GPU")] = 1
    planes: Annotated[
        Count, Field(description="equal networks that the ports of a GPU are spread over")
    ] = 1
    gpus_per_cage: Annotated[
        Count, Field(description="GPUs whose NICs share a cage, and so a module")
    ] = 1
    fabric: Annotated[
        Literal["rail-only", "rail-optimized", "clos"],
        Field(description="what end points of a leaf have in common"),
    ]
    unit_domains: Annotated[
        Count | None, Field(description="domains of a scalable unit; leaves serve one unit")
    ] = None
    leaf_domains: Annotated[
        Count | None, Field(description="domains a leaf serves; as many as half its ports")
    ] = None
    pod: Annotated[
        Literal["unit", "rail"] | None,
        Field(description="leaves below the same spines; as many as half their ports"),
    ] = None
    bundles: Annotated[
        Literal["even", "any"],
        Field(description="even: the switches above divide the cables of each bundle"),
    ] = "even"
    tiers: Annotated[
        tuple[TierForm, ...],
        one_or_series,
        Field(min_length=1, max_length=MOST_TIERS, description="from the leaves up"),
    ]
    nic: Annotated[
        Nic | None,
        named("nic", optional=True),
        Field(description="NIC of a GPU, or each of several"),
    ] = None
    hall: Annotated[Hall | None, Field(description="where racks stand, for cables by length")] = (
        None
    )
    fibre: Annotated[
        tuple[Annotated[Fibre, named("fibre")], ...],
        one_or_many,
        Field(description="cables and splitters, with a hall; unbilled where standing"),
    ] = ()
    spares: Annotated[SpareRates, Field(description="what is bought beside what is in use")] = (
        SpareRates()
    )
    work: Annotated[WorkRates, Field(description="labour and support, as shares of the price")] = (
        WorkRates()
    )
    published: Annotated[Published | None, Field(description="what the source counts")] = None

    @property
    def gpus(self) -> int:
        """Number of GPUs installed."""
        return self.installed * self.gpus_per_domain

    @property
    def leaf_rails(self) -> int:
        """Number of positions of a domain with leaves of their own."""
        return self.rails or (1 if self.fabric == "clos" else self.gpus_per_domain)

    @property
    def ports_in_plane(self) -> int:
        """Ports of a GPU that lead to one plane."""
        return self.nic_ports // self.planes

    @property
    def nic_gbit_s(self) -> float | None:
        """Rate of a port of its NICs (Gbit/s); None where these are not named."""
        if self.nic is None:
            return None
        return self.nic.gbit_s * self.nics_per_gpu / self.nic_ports

    @property
    def unit(self) -> int:
        """Number of domains whose leaves serve no others."""
        return self.unit_domains or self.installed

    @property
    def domain_ends(self) -> int:
        """Number of end points of a domain in a plane."""
        return self.gpus_per_domain * self.nic_ports // self.planes

    @property
    def block(self) -> int:
        """Number of end points of a domain that one leaf serves together."""
        return self.domain_ends // self.leaf_rails

    @property
    def optics(self) -> tuple[Optic, ...]:
        """The optics of all tiers."""
        ends = (optic for tier in self.tiers for optic in (tier.optic, tier.optic_below))
        return tuple(optic for optic in ends if optic is not None)

    @property
    def installed(self) -> int:
        """Number of HB domains installed, or of hosts for a network beside that of a plan."""
        assert isinstance(self.domains, int), "counted by a plan as soon as the file is read"
        return self.domains

    def at_prices(self, factors: Mapping[str, float]) -> Self:
        """Return the design with prices multiplied by a factor per kind of product (1 if
        omitted).
        """

        def priced(kind: str, product: Any) -> Any:
            return product and product.model_copy(
                update={"usd": product.usd * factors.get(kind, 1.0)}
            )

        tiers = (
            tier.model_copy(
                update={
                    "switch": priced("switch", tier.switch),
                    "optic": priced("optics", tier.optic),
                    "optic_below": priced("optics", tier.optic_below),
                }
            )
            for tier in self.tiers
        )
        by = factors.get("optics", 1.0)  # a bill has fibre where it has optics
        return self.model_copy(
            update={
                "nic": priced("nic", self.nic),
                "tiers": tuple(tiers),
                "fibre": tuple(one.times(by) for one in self.fibre),
            }
        )


class DesignFile(Table):
    """A file of designs."""

    schema_: Annotated[Literal[1], Field(alias="schema", description="version of this form")]
    catalog: Annotated[
        CatalogFiles, Field(description="products of your own, for names in designs")
    ] = CatalogFiles()
    design: Annotated[
        tuple[PublishedDesign, ...],
        one_or_series,
        Field(min_length=1, description="one network each"),
    ]


def read_designs(path: str | Path, hb_domains: int | None = None) -> tuple[PublishedDesign, ...]:
    """Read and check a file of designs.

    Parameters
    ----------
    hb_domains
        Number of HB domains of the plan that the designs are built beside, if any.

    Raises
    ------
    InstanceError
        With all complaints: file, design, key, given value, requirement.
    """
    file = file_of("designs", path, "the path of a file of designs")
    table = read_toml(file, "a file of designs (docs/designs.md describes the form)")
    try:
        designs = validated(DesignFile, table, file.parent).design
    except ValidationError as error:
        raise InstanceError(
            f"{file.name}: {_with_id(line, table)}" for line in sentences(error, DesignFile)
        ) from None
    ids = Counter(design.id for design in designs)
    repetitions = [
        f"{file.name}: design {name!r}: this id appears more than once, needs different ids"
        for name in ids
        if ids[name] > 1
    ]
    if repetitions:
        raise InstanceError(repetitions)
    names_by_plan = [design.id for design in designs if isinstance(design.domains, ByHbDomain)]
    if names_by_plan and hb_domains is None:
        raise InstanceError(
            f"{file.name}: design {name!r}: domains refers to the HB domains of a plan, needs"
            f" that plan (coopt bom INSTANCE PLAN.json --beside {file.name}) or a number"
            for name in names_by_plan
        )
    return tuple(_beside(design, hb_domains) for design in designs)


def _beside(design: PublishedDesign, hb_domains: int | None) -> PublishedDesign:
    """Return the design with its domains counted by those of a plan."""
    by = design.domains
    if not isinstance(by, ByHbDomain) or hb_domains is None:
        return design
    return design.model_copy(update={"domains": by.per_hb_domain * hb_domains + by.more})


def _with_id(sentence: str, table: dict[str, Any]) -> str:
    """Replace the number of a design in a sentence by its id."""
    match = re.match(r"design\[(\d+)\]\.?", sentence)
    rows = table.get("design")
    row = rows[int(match[1])] if match and isinstance(rows, list) else None
    if match is None or not isinstance(row, dict) or not isinstance(row.get("id"), str):
        return sentence
    return f"design {row['id']!r}: {sentence[match.end() :].removeprefix(': ')}"


def contradictions(design: PublishedDesign) -> Iterator[str]:
    """Yield one sentence for each contradiction between keys of a design."""
    rails, unit, leaf = design.leaf_rails, design.unit_domains, design.leaf_domains
    is_clos = design.fabric == "clos"
    has, published = design.nic_ports, design.published
    yield from broken(
        (
            is_clos and design.ports_in_plane % rails,
            f"rails = {rails}: in a clos these are the leaves that the ports of each GPU in a plane"
            f" take turns in, needs a divisor of nic_ports / planes = {design.ports_in_plane}, or"
            " another fabric",
        ),
        (
            is_clos and rails > 1 and len(design.tiers) == 1,
            f"rails = {rails}: no second tier joins the leaves that the ports of a GPU lead to,"
            " needs a second tier"
            + f", or planes = {design.planes * rails} in place of rails"
            * (design.ports_in_plane % (rails * design.nics_per_gpu) == 0),
        ),
        (
            not is_clos and design.gpus_per_domain % rails and rails != design.domain_ends,
            f"rails = {rails}: needs a divisor of gpus_per_domain = {design.gpus_per_domain}"
            + f", or {design.domain_ends}, a rail for each port in a plane" * (has > design.planes),
        ),
        (
            has // design.planes % design.nics_per_gpu,
            f"nics_per_gpu = {design.nics_per_gpu}: the NICs of a GPU cannot share"
            f" {counted(has, 'port')} in {counted(design.planes, 'plane')} equally, needs a"
            f" multiple of {design.nics_per_gpu * design.planes} in nic_ports",
        ),
        (
            has % design.planes,
            f"planes = {design.planes}: does not divide the network ports of a GPU, needs a divisor"
            f" of nic_ports = {has}",
        ),
        (
            design.gpus_per_domain % design.gpus_per_cage,
            f"gpus_per_cage = {design.gpus_per_cage}: needs a divisor of gpus_per_domain ="
            f" {design.gpus_per_domain}",
        ),
        (
            unit is not None and leaf is not None and leaf > unit,
            f"leaf_domains = {leaf}: {leaf} HB domains take {(leaf or 0) * design.block:,} ports"
            f" of a leaf, but a whole unit of {unit} takes only {(unit or 0) * design.block:,},"
            f" needs at most unit_domains = {unit}",
        ),
        (
            design.fibre and design.hall is None,
            "fibre: is priced by lengths in a hall, needs `hall` or no fibre",
        ),
        (
            design.pod is not None and len(design.tiers) == 1,
            f"pod = {design.pod!r}: a network with one tier has no pods, needs two or more tiers",
        ),
        (
            design.pod == "rail" and is_clos,
            "pod = 'rail': every leaf of a clos serves all rails, needs pod = 'unit' or another"
            " fabric",
        ),
        *(
            (
                name not in {optic.name for optic in design.optics},
                f"published.optics: {name!r}: no tier has this optic, needs an optic of one of the"
                " tiers",
            )
            for name in (published and published.optics) or {}
        ),
    )
    for number, tier in enumerate(design.tiers):
        yield from _tier_contradictions(f"tiers[{number}]", tier)


def _tier_contradictions(key: str, tier: TierForm) -> Iterator[str]:
    if tier.switch is None:
        return
    product = tier.switch
    rate = tier.gbit_s or product.port_gbit_s
    split = product.port_gbit_s / rate
    if split < 1 or not split.is_integer():
        yield (
            f"{key}.gbit_s = {rate:g}: ports of {product.name} have {product.port_gbit_s:g} Gbit/s,"
            " needs that rate or one that it breaks out to"
        )
    elif tier.ports > product.radix * split:
        most = f"{product.radix * split:g}"
        parts = -(-tier.ports // product.radix)
        finer = (
            f", or gbit_s = {product.port_gbit_s / parts:g} for breakout ports"
            if parts in {2, 4, 8}
            else ""
        )
        yield (
            f"{key}.ports = {tier.ports}: {product.name} has {most} ports of {rate:g} Gbit/s, needs"
            f" at most {most}{finer}"
        )
