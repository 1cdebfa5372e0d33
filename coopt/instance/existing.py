"""What already stands, as a design: all that a question of it alone has of a network, or what is
bought for nothing beside what is new.
"""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Annotated, Any

from pydantic import Field

from coopt.instance.base import Name
from coopt.instance.catalog import named
from coopt.instance.designs import PublishedDesign, contradictions
from coopt.instance.hardware import HbDomain, Optic, Switch
from coopt.instance.network import Network, SwitchedKind
from coopt.instance.texts import alternatives, both, broken, counted, refuse, that_hold

GIVEN = "network.given = true"
UNNAMED = "not named"
"""What a design with ports alone is made of: its price and power are not known, and count as 0."""


class Existing(PublishedDesign):
    """A network that stands."""

    hb_domain: Annotated[
        HbDomain | None,
        named("hb_domain", optional=True),
        Field(description="the kind of its HB domains; that of network.hb_domains if left out"),
    ] = None
    gpu: Annotated[
        Name | None, Field(description="the name of its GPUs; that of cluster.gpu if left out")
    ] = None

    def domain_in(self, network: Network) -> HbDomain | None:
        """The HB domain, as the question lists it; None where it is not told from others."""
        listed = [
            domain
            for domain in network.hb_domains
            if domain.size == self.gpus_per_domain
            and (self.hb_domain is None or domain.name == self.hb_domain.name)
        ]
        return listed[0] if len(listed) == 1 else self.hb_domain

    def holds(self, gpus: int) -> bool:
        """Whether so many GPUs fill more than half of what stands."""
        return self.gpus < 2 * gpus <= 2 * self.gpus

    @property
    def link_gbit_s(self) -> float:
        """Rate of a port of its NICs (Gbit/s)."""
        assert self.nic_gbit_s is not None, "checked as soon as the instance is read"
        return self.nic_gbit_s

    @property
    def joined_as(self) -> SwitchedKind:
        """The fabric: rails below pods of their own, which nothing joins, are networks apart, and
        leaves that the ports of a GPU take turns in have a share of the rails of some domains.
        """
        if self.pod == "rail" and len(self.tiers) == 2:
            return "rail-only"
        takes_turns = self.fabric == "clos" and self.leaf_rails > 1
        return "rail-optimized" if takes_turns else self.fabric

    @property
    def switches(self) -> tuple[Switch, ...]:
        """The switch of each tier, from the leaves up."""
        return tuple(
            tier.switch
            or Switch(
                name=f"{UNNAMED}, {tier.ports} ports",
                radix=tier.ports,
                port_gbit_s=tier.gbit_s or self.link_gbit_s,
                usd=0.0,
                w=0.0,
            )
            for tier in self.tiers
        )

    @property
    def ends(self) -> tuple[tuple[Optic, Optic], ...]:
        """The optics at the lower and at the upper ends of the cables below each tier."""
        unnamed = Optic(name=UNNAMED, gbit_s=self.link_gbit_s, reach_m=1.0, usd=0.0, w=0.0)
        return tuple(
            (tier.optic_below or tier.optic or unnamed, tier.optic or unnamed)
            for tier in self.tiers
        )


def entries_of(network: Mapping[str, Any], key: str) -> list[Any]:
    """The entries of a list of a raw table, which may also be one entry alone."""
    entries = network.get(key, ())
    return list(entries) if isinstance(entries, list | tuple) else [entries]


def with_lists(table: Mapping[str, Any]) -> Mapping[str, Any]:
    """The raw table of a question, in which a network that is given takes its lists from what
    stands, and the fastest mapping of a single workload is asked for unless something else is.

    Raises
    ------
    ValueError
        Where not exactly one network stands, or its NIC is not known.
    """
    network, rows = table.get("network"), table.get("existing", ())
    if not isinstance(network, Mapping):
        return table
    if network.get("given") is not True:
        if rows and "switches" not in network:
            raise ValueError(
                "existing: network.switches is missing, which says what may be bought beside the"
                f" existing network, needs the lists of [network], or {GIVEN} to buy nothing"
            )
        return table
    rows = [rows] if isinstance(rows, Mapping) else rows
    if not isinstance(rows, list | tuple) or len(rows) != 1:
        raise ValueError(
            f"{GIVEN}: needs exactly one [[existing]] table, which describes the network"
        )
    stands = rows[0]
    if not isinstance(stands, Mapping):
        return table
    domains = stands.get("hb_domain") or network.get("hb_domains")
    refuse(
        (
            "direct" in entries_of(network, "fabrics"),
            f"network.fabrics = {network.get('fabrics')!r}: the network that {GIVEN} keeps has"
            " switches, needs fabrics without 'direct'",
        ),
        (
            not stands.get("nic"),
            "existing[0].nic: is missing, needs the NIC of a GPU (its rate sets the"
            " network's speed)",
        ),
        (
            domains is None,
            "existing[0].hb_domain: is missing, needs the name of the existing HB domains, or an"
            " entry in network.hb_domains",
        ),
    )
    lists = {
        "hb_domains": domains,
        "fabrics": stands.get("fabric"),
        "nics": stands["nic"],
        # in their place come those of its tiers
        "switches": [{"name": UNNAMED, "radix": 2, "port_gbit_s": 1.0, "usd": 0.0, "w": 0.0}],
        "optics": [{"name": UNNAMED, "gbit_s": 1.0, "reach_m": 1.0, "usd": 0.0, "w": 0.0}],
    }
    workloads, objective = table.get("workload"), table.get("objective", {})
    single = isinstance(workloads, Mapping) or (
        isinstance(workloads, list | tuple) and len(workloads) == 1
    )
    if single and isinstance(objective, Mapping) and not table.get("robust"):
        objective = {"minimize": "time", **objective}
    # nothing is bought, so that no more domains stand by than are said to
    failures = table.get("availability")
    if isinstance(failures, Mapping):
        table = {**table, "availability": {"spare_domains": 0, **failures}}
    return {**table, "network": {**network, **lists}, "objective": objective}


def given_network(network: Network, stands: Existing) -> Network:
    """The tables of a network that is given: what it consists of, at no price."""
    optics = {optic.name: optic for optic in chain.from_iterable(stands.ends)}
    switches = {switch.name: switch for switch in stands.switches}
    assert stands.nic is not None, "checked before"
    unpriced = {"usd": 0.0}
    return network.having(
        hb_domains=tuple(
            domain.model_copy(update={"usd_per_gpu": 0.0, "host_usd_per_gpu": 0.0})
            for domain in network.hb_domains
        ),
        fabrics=(stands.joined_as,),
        nics=(stands.nic.model_copy(update=unpriced),),
        nics_per_gpu=(stands.nics_per_gpu,),
        nic_planes=(stands.planes,),
        switches=tuple(
            switch.model_copy(update={"usd": 0.0, "optics_inside": False})
            for switch in switches.values()
        ),
        optics=tuple(optic.model_copy(update=unpriced) for optic in optics.values()),
        bundles=stands.bundles,
    )


def _products(stands: Existing) -> Iterator[tuple[str, str, Any]]:
    """The key of each product of what stands, the list of the network that may have it, and the
    product; None where it is not named.
    """
    yield "nic", "nics", stands.nic
    for number, tier in enumerate(stands.tiers):
        yield f"tiers[{number}].switch", "switches", tier.switch
        yield f"tiers[{number}].optic", "optics", tier.optic
        if tier.optic_below is not None and tier.optic_below != tier.optic:
            yield f"tiers[{number}].optic_below", "optics", tier.optic_below


def _unlisted(stands: Existing, network: Network, *, with_servers: bool) -> Iterator[str]:
    """Sentences about products of what stands that are not listed, so that islands that share its
    units could not buy one more; islands of other GPUs need none of its servers and NICs.
    """
    nic, *products = _products(stands)
    servers = [nic] if with_servers else []
    if with_servers and stands.hb_domain is not None:
        servers.append(("hb_domain", "hb_domains", stands.hb_domain))
    for key, listed, entry in (*servers, *products):
        if entry is None:
            yield (
                f"{key}: is missing, needs the name of the product, since the networks of several"
                " workloads divide its units among them"
            )
        elif entry.name not in {product.name for product in getattr(network, listed)}:
            yield (
                f"{key} = {entry.name!r}: is not in network.{listed}, needs to be listed there at"
                " the price of a further unit"
            )


def _of_other_power(stands: Existing, network: Network) -> Iterator[str]:
    """Sentences about products of what stands that are listed with another power: a bill counts
    both under one name.
    """
    for key, listed, entry in _products(stands):
        for product in getattr(network, listed):
            if entry is not None and product.name == entry.name and product.w != entry.w:
                yield (
                    f"{key}.w = {entry.w:g}: network.{listed} has {entry.name!r} with"
                    f" {product.w:g} W, needs the same power, or another name"
                )


def further_tables(question: Any) -> dict[str, Any]:
    """The tables of a question that go neither with what stands nor with several kinds of GPUs."""
    return {
        "[[site]]": question.site,
        "[[phase]]": question.phase,
        "[robust]": question.robust,
        "[availability]": question.availability,
        "[sharing.core]": question.sharing.core,
        "[[sharing.discount]]": question.sharing.discount,
        "sharing.most_products": question.sharing.most_products.given,
    }


def existing_complaints(question: Any) -> Iterator[str]:
    """Sentences about what stands and cannot be what the question is about."""
    network, is_given = question.network, question.network.given
    is_parted = question.sharing.mode == "partition"
    tables = further_tables(question) | {
        "[availability]": question.availability if not is_given else None,
        "[robust]": question.robust if not is_given else None,
        f"robust.prices or robust.efficiency beside {GIVEN}": is_given
        and question.robust is not None
        and question.robust != question.robust.certain,
        f"sharing.mode = 'partition' beside {GIVEN}": is_given and is_parted,
        "'direct' in network.fabrics": "direct" in network.fabrics,
        "cluster.idle_gpus": question.cluster.idle_gpus,
        f"a list in cluster.gpu beside {GIVEN}": is_given and question.cluster.generations,
        f"network.buildable = true beside {GIVEN}": is_given and network.buildable,
        f"network.switch_cages = 'kept' beside {GIVEN}": is_given
        and network.switch_cages == "kept",
    }
    asked = that_hold(tables)
    if asked or len(question.existing) > 1:
        yield from broken(
            (
                bool(asked),
                f"existing: an existing network is not supported together with {both(asked)},"
                f" needs a question without {'them' if len(asked) > 1 else 'this'}, or without"
                " [[existing]]",
            ),
            (
                len(question.existing) > 1,
                f"existing: there are {len(question.existing)} [[existing]] tables, needs exactly"
                " one",
            ),
        )
        return
    (stands,) = question.existing
    row = f"existing[0] {stands.id!r}"
    yield from (f"{row}: {line}" for line in contradictions(stands))
    domain = stands.domain_in(network)
    gpus = [gpu.name for gpu in question.cluster.kinds]
    if is_parted:
        kept = stands.gpu in (None, *gpus)
        yield from (f"{row}: {line}" for line in _unlisted(stands, network, with_servers=kept))
    if not is_given:
        yield from (f"{row}: {line}" for line in _of_other_power(stands, network))
    ports = stands.nic_ports // stands.nics_per_gpu
    # a NIC that says nothing of its ports may have any
    if stands.nic is not None and stands.nic.ports != (1,) and ports not in stands.nic.ports:
        needed = alternatives(str(count * stands.nics_per_gpu) for count in stands.nic.ports)
        shared = f" with nics_per_gpu = {stands.nics_per_gpu}" if stands.nics_per_gpu > 1 else ""
        yield (
            f"{row}: nic_ports = {stands.nic_ports}: {stands.nic.name} runs with"
            f" {alternatives(map(str, stands.nic.ports))} ports, needs nic_ports = {needed}{shared}"
        )
    if stands.nic is None:
        yield (
            "existing[0].nic: is missing, needs the NIC of a GPU (its rate sets the network's"
            " speed)"
        )
    if not isinstance(stands.domains, int):
        yield f"{row}: domains refers to the HB domains of a plan, needs a number"
        return
    if domain is None:
        sizes = both(f"{hb.name!r} with {counted(hb.size, 'GPU')}" for hb in network.hb_domains)
        yield (
            f"{row}: gpus_per_domain = {stands.gpus_per_domain}: network.hb_domains has {sizes},"
            f" needs exactly one entry with {counted(stands.gpus_per_domain, 'GPU')}, or"
            " existing[0].hb_domain"
        )
        return
    yield from broken(
        (
            stands.gpus_per_domain != domain.size,
            f"{row}: gpus_per_domain = {stands.gpus_per_domain}: {domain.name!r} has"
            f" {counted(domain.size, 'GPU')}, needs {domain.size}, or another hb_domain",
        ),
        *(
            (
                is_given and not stands.holds(count),
                f"cluster.gpus = {count}: {row} has {counted(stands.domains, 'HB domain')} of"
                f" {counted(domain.size, 'GPU')}, needs {stands.gpus // 2 + 1:,} to"
                f" {stands.gpus:,} (more than half of them)",
            )
            for count in question.cluster.gpus
        ),
        (
            stands.domains == 1,
            f"{row}: domains = 1: a single HB domain has no network, needs two or more",
        ),
        (
            stands.gpus_per_cage > 1,
            f"{row}: gpus_per_cage = {stands.gpus_per_cage}: modules that GPUs share are supported"
            " only in bills of designs, needs 1",
        ),
        (
            not is_given and stands.ports_in_plane > stands.nics_per_gpu,
            f"{row}: nic_ports = {stands.nic_ports}: a network in which a NIC has several ports"
            f" in one plane cannot grow, needs more planes or nics_per_gpu, or {GIVEN}",
        ),
        (
            stands.gpu is None and len(gpus) > 1,
            (
                "existing[0].gpu: is missing, needs the name of the existing GPUs, such as"
                f" {gpus[0]!r}"
            ),
        ),
        (
            is_given and stands.gpu not in (None, gpus[0]),
            f"existing[0].gpu = {stands.gpu!r}: differs from cluster.gpu, needs {gpus[0]!r}",
        ),
        (
            stands.gpu is not None and bool(domain.gpus) and stands.gpu not in domain.gpus,
            f"existing[0].gpu = {stands.gpu!r}: HB domain {domain.name!r} is not sold with it,"
            f" needs {alternatives(map(repr, domain.gpus))}",
        ),
    )
