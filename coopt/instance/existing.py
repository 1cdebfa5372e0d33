"""What already stands, as a design, and the network tables of a question about it alone."""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Annotated, Any

from pydantic import Field

from coopt.instance.catalog import named
from coopt.instance.designs import PublishedDesign, contradictions
from coopt.instance.hardware import HbDomain, Optic, Switch
from coopt.instance.network import Network, SwitchedKind
from coopt.instance.texts import both, broken

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

    @property
    def ports_in_plane(self) -> int:
        """Ports of a GPU that lead to one plane."""
        return self.nic_ports // self.planes

    @property
    def link_gbit_s(self) -> float:
        """Rate of a port of its NICs (Gbit/s)."""
        assert self.nic is not None, "checked as soon as the instance is read"
        return self.nic.gbit_s / self.nic_ports

    @property
    def joined_as(self) -> SwitchedKind:
        """The fabric: rails below pods of their own, which nothing joins, are networks apart."""
        apart = self.pod == "rail" and len(self.tiers) == 2
        return "rail-only" if apart else self.fabric

    @property
    def switches(self) -> tuple[Switch, ...]:
        """The switch of each tier, from the leaves up."""
        return tuple(
            tier.switch
            or Switch(
                name=f"{UNNAMED}, {tier.ports} ports",
                radix=max(tier.ports, 2),
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
        if rows:
            raise ValueError(f"existing: is timed as it stands, needs {GIVEN}")
        return table
    rows = [rows] if isinstance(rows, Mapping) else rows
    if not isinstance(rows, list | tuple) or len(rows) != 1:
        raise ValueError(f"{GIVEN}: needs one [[existing]] that says what stands")
    stands = rows[0]
    if not isinstance(stands, Mapping):
        return table
    if not stands.get("nic"):
        raise ValueError(
            "existing[0].nic: left out, needs the NIC of a GPU: at its rate the network is timed"
        )
    lists = {
        "hb_domains": stands.get("hb_domain") or network.get("hb_domains"),
        "fabrics": stands.get("fabric"),
        "nics": stands["nic"],
        # in their place come those of its tiers
        "switches": [{"name": UNNAMED, "radix": 2, "port_gbit_s": 1.0, "usd": 0.0, "w": 0.0}],
        "optics": [{"name": UNNAMED, "gbit_s": 1.0, "reach_m": 1.0, "usd": 0.0, "w": 0.0}],
    }
    if lists["hb_domains"] is None:
        raise ValueError(
            "existing[0].hb_domain: left out, needs the kind of its HB domains, or one in"
            " network.hb_domains"
        )
    workloads, objective = table.get("workload"), table.get("objective", {})
    single = isinstance(workloads, Mapping) or (
        isinstance(workloads, list | tuple) and len(workloads) == 1
    )
    if single and isinstance(objective, Mapping):
        objective = {"minimize": "time", **objective}
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
        nics_per_gpu=(stands.ports_in_plane,),
        nic_planes=(stands.planes,),
        switches=tuple(
            switch.model_copy(update={"usd": 0.0, "optics_inside": False})
            for switch in switches.values()
        ),
        optics=tuple(optic.model_copy(update=unpriced) for optic in optics.values()),
        bundles=stands.bundles,
    )


def given_complaints(question: Any) -> Iterator[str]:
    """Sentences about a network that is given and cannot be what the question is about."""
    network, (stands,) = question.network, question.existing
    domain = network.hb_domains[0]
    row = f"existing[0] {stands.id!r}"
    yield from (f"{row}: {line}" for line in contradictions(stands))
    tables = {
        "[[site]]": question.site,
        "[[phase]]": question.phase,
        "[robust]": question.robust,
        "[availability]": question.availability,
        "sharing.mode = 'partition'": question.sharing.mode == "partition",
        "a list in cluster.gpu": question.cluster.generations,
        "network.switch_cages = 'kept'": network.switch_cages == "kept",
    }
    asked = [name for name, is_asked in tables.items() if is_asked]
    if not isinstance(stands.domains, int):
        yield f"{row}: domains are counted by those of a plan, needs a number"
        return
    least, most = stands.domains * domain.size // 2 + 1, stands.domains * domain.size
    yield from broken(
        (bool(asked), f"{GIVEN}: nothing is built, which does not go with {both(asked)}"),
        (
            len(network.hb_domains) > 1,
            f"network.hb_domains: {len(network.hb_domains)} kinds, needs the one that stands, or"
            " existing[0].hb_domain",
        ),
        (
            stands.gpus_per_domain != domain.size,
            f"{row}: gpus_per_domain = {stands.gpus_per_domain}: {domain.name!r} has"
            f" {domain.size}, needs that, or another hb_domain",
        ),
        *(
            (
                not least <= gpus <= most,
                f"cluster.gpus = {gpus}: {row} has {stands.domains:,} domains of {domain.size}"
                f" GPUs, needs {least:,} to {most:,}",
            )
            for gpus in question.cluster.gpus
        ),
        (
            stands.domains == 1,
            f"{row}: domains = 1: a single HB domain has no network, needs two or more",
        ),
        (
            stands.gpus_per_cage > 1,
            f"{row}: gpus_per_cage = {stands.gpus_per_cage}: modules that GPUs share are counted in"
            " bills of designs alone, needs 1",
        ),
    )
