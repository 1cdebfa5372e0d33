"""Everything about a design but its ports: GPUs, HB domain, NIC, switch, fabric, links into a
core.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import product
from math import ceil
from typing import NamedTuple

from coopt.instance.catalog import box_of
from coopt.instance.hardware import HbDomain, Nic, Optic, Switch, SwitchMode
from coopt.instance.network import Discipline, Network, SwitchedKind
from coopt.instance.reserves import Availability
from coopt.instance.schema import Instance
from coopt.verifier.training.mappings import divisors
from coopt.verifier.training.placing import Rooms


def core_switch(instance: Instance) -> Switch | None:
    """The switch the core is asked to consist of; None where no core is asked for."""
    core, network = instance.sharing.core, instance.network
    switches = {switch.name: switch for switch in network.switches}
    if core is None or network.switch_cages == "told":
        return switches[core.switch] if core else None
    return _with_ports_for(switches[core.switch], core_links_carried(instance))


def core_links_carried(instance: Instance) -> int:
    """Links that a module in the core carries: those of the one it names, of the first of several;
    one where it names none.
    """
    core, network = instance.sharing.core, instance.network
    optics = [optic for optic in network.optics if core is not None and optic.name in core.optics]
    if core is None or not optics:
        return 1
    rate = next(switch.port_gbit_s for switch in network.switches if switch.name == core.switch)
    return links_carried(optics[0].gbit_s, optics[0].breakout, rate)


def cage_count(switch: Switch) -> int:
    """Modules that a switch takes, with ports kept free as many fewer; a switch at one rate of a
    box has its cages.
    """
    box = box_of(switch.name) or switch
    return int(switch.radix * Fraction(switch.port_gbit_s) / Fraction(box.cage_gbit_s))


def _with_ports_for(switch: Switch, links_of_module: int) -> Switch:
    """The switch with no more ports than its cages have modules for, of which each carries so many
    links.
    """
    ports = min(cage_count(switch) * links_of_module, switch.radix)
    return switch.model_copy(update={"radix": ports})


def links_needed(instance: Instance, gpus: int) -> int:
    """Links that carry what that many GPUs must send to other islands, in the decimals the instance
    is written in.
    """
    core, switch = instance.sharing.core, core_switch(instance)
    if core is None or switch is None:
        return 0
    links, remainder_gbit_s = divmod(
        gpus * Decimal(str(core.gbit_s_per_gpu)), Decimal(str(switch.port_gbit_s))
    )
    return int(links) + (remainder_gbit_s > 0)


NO_CHARGE = Discipline("ratio", 1.0, 1.0)
"""Where nothing is slowed, however traffic is charged."""


class OpticPair(NamedTuple):
    """What stands at the lower and at the upper ends of the links of a level."""

    below: Optic
    above: Optic

    @property
    def names(self) -> tuple[str, str]:
        """The products, the lower one first."""
        return self.below.name, self.above.name


class NicAttachment(NamedTuple):
    """The products that a network is made of, and its fabric."""

    kind: SwitchedKind
    nic: Nic
    per_gpu: int
    switch: Switch
    discipline: Discipline
    """What traffic that leaves its leaf is charged."""
    nic_planes: int = 1
    """Ports of each NIC, each of which leads to networks of its own."""
    gpus_per_nic: int = 1
    """GPUs of a domain that share a NIC, where each has one."""
    above: tuple[Switch, ...] = ()
    """The switches of the second tier and of the third, where products may differ by tier."""
    ports_in_plane: int = 1
    """Ports of a NIC that lead to the same networks: `per_gpu` and the rate count each alone."""
    ports_on_leaf: int = 1
    """The most of these that lead to one leaf switch."""

    @property
    def keeps_ports(self) -> bool:
        """Whether a NIC whose leaf is out has ports on others."""
        return self.nic_planes * self.ports_in_plane > self.ports_on_leaf

    def at(self, tier: int) -> Switch:
        """The switch of a tier, from 1."""
        return (
            self.switch
            if tier == 1 or not self.above
            else self.above[min(tier - 2, len(self.above) - 1)]
        )

    def is_named_once(self, tiers: int) -> bool:
        """Whether this is the one of several ways to name switches that are not built with so many
        tiers.
        """
        unused = range(max(tiers, 1) + 1, 4)
        return all(self.at(tier) == self.at(max(tiers, 1)) for tier in unused)

    def links_of(self, optic: Optic) -> int:
        """Links that one end with this optic carries; 0 where none has its rate."""
        return links_carried(optic.gbit_s, optic.breakout, self.nic.gbit_s, self.nic_planes)

    def carried(self, ends: OpticPair) -> tuple[int, int]:
        """Links that one module carries at the lower and at the upper end of a level."""
        return self.links_of(ends.below), self.links_of(ends.above)


@cache
def links_carried(
    optic_gbit_s: float, breakout: tuple[int, ...], nic_gbit_s: float, planes: int = 1
) -> int:
    """Links of one port of a NIC, on so many planes, that a module carries; 0 where it has not
    their rate.
    """
    share = Fraction(optic_gbit_s) * planes / Fraction(nic_gbit_s)
    return int(share) if share in (1, *breakout) else 0


class DesignFamily(NamedTuple):
    """Designs that differ in their ports only; `attachment` is None where one domain needs no
    network.

    `to_core` is how many links an island needs at least into a core shared with others,
    `core_module` how many of them a module at their lower ends carries, `spares` how many HB
    domains stand by without links of their own. What `stands` is none of the designs of this space,
    and `leaf_domains` are those of which its leaves hold NICs (0 where their ports say so).
    """

    gpus: int
    hb: HbDomain
    domains: int
    attachment: NicAttachment | None
    to_core: int = 0
    spares: int = 0
    core_module: int = 1
    stands: bool = False
    leaf_domains: int = 0

    @property
    def network(self) -> NicAttachment:
        """What joins the domains, of which there are several."""
        assert self.attachment is not None, "a single domain has no network"
        return self.attachment

    @property
    def active(self) -> int:
        """K: GPUs of a domain that train, in the mean and rounded up where domains are not filled
        alike.
        """
        return -(-self.gpus // self.domains)

    @property
    def rooms(self) -> Rooms | None:
        """The domains, where they are not filled alike; None where they are."""
        return Rooms(self.domains, self.hb.size) if self.gpus % self.domains else None

    @property
    def bought(self) -> int:
        """HB domains on the network and those that stand by."""
        return self.domains + self.spares

    @property
    def rails(self) -> int:
        """NICs of one domain, spare GPUs included."""
        return self.nics_of(self.hb.size)

    @property
    def adapters(self) -> int:
        """NICs of one domain as they are bought: one for all its ports."""
        return self.adapters_of(self.hb.size)

    @property
    def active_nics(self) -> int:
        """NICs of those GPUs of a domain that train; of all its GPUs where domains are not filled
        alike.
        """
        return self.nics_of(self.hb.size if self.rooms else self.active)

    @property
    def charges_loads(self) -> bool:
        """Whether traffic is charged by the loads of links, which depend on who lies next to
        whom.
        """
        return self.attachment is not None and self.attachment.discipline.charge == "loads"

    def holds(self, stages: int) -> bool:
        """Whether a domain may hold so many stages of a pipeline: GPUs that share a NIC are of one
        stage.
        """
        return (
            self.attachment is None
            or self.attachment.gpus_per_nic == 1
            or self.active_nics % stages == 0
        )

    def nics_of(self, gpus: int) -> int:
        """NICs of so many GPUs of a domain; 0 where one domain needs none."""
        return (
            gpus * self.attachment.per_gpu // self.attachment.gpus_per_nic if self.attachment else 0
        )

    def adapters_of(self, gpus: int) -> int:
        """NICs of so many GPUs as they are bought."""
        return self.nics_of(gpus) // (self.attachment.ports_in_plane if self.attachment else 1)

    @property
    def planes(self) -> int:
        """Networks that share no link, of those that one port of each NIC leads to."""
        return self.rails if self.attachment and self.attachment.kind == "rail-only" else 1

    def leaf_block(self, down: int) -> tuple[int, int]:
        """Rails and consecutive domains whose NICs are on a leaf with `down` of them: whole rails
        as long as one fits. Leaves of a clos take end points one after the other.
        """
        domains = self.leaf_domains or min(down, self.domains)
        return down // domains, domains

    def takes_turns(self, down: int) -> bool:
        """Whether leaves with `down` NICs have several rails of some domains, and neighbours are on
        different ones.
        """
        of_leaf, domains = self.leaf_block(down)
        return self.network.kind == "rail-optimized" and of_leaf > 1 and domains < self.domains

    @property
    def copies(self) -> int:
        """How many times these networks are built: once for each port of a NIC."""
        return self.attachment.nic_planes if self.attachment else 1

    @property
    def ends(self) -> int:
        """n: end points of one plane."""
        return self.domains * self.rails // self.planes

    def slowed(self, factor: float) -> DesignFamily:
        """The same with NICs whose rate is so many times less."""
        nic = self.network.nic
        slower = nic.model_copy(update={"gbit_s": nic.gbit_s / factor})
        return self._replace(attachment=self.network._replace(nic=slower))

    @property
    def nic_byte_s(self) -> float:
        """Bytes per second of one GPU between domains."""
        return self.network.per_gpu * self.network.nic.gbit_s * 1e9 / 8 / self.network.gpus_per_nic


def domain_counts(gpus: int, size: int, fill: str = "even", layers: int = 1) -> list[int]:
    """D: how many domains of `size` may hold so many GPUs.

    Parameters
    ----------
    layers
        Of the deepest model: domains that are not filled alike may fall into as many blocks, each
        of the same number.
    """
    # a single domain may stand idle by more than half, several may not
    if gpus <= size / 2:
        return [1]
    even_counts = [gpus // k for k in divisors(gpus) if size / 2 < k <= size]
    if fill == "even":
        return sorted(even_counts)
    of_any_fill = [-(-gpus // k) for k in range(1, size + 1) if k > size / 2]
    counts, blocks = set(even_counts), [block for block in divisors(gpus) if block <= layers]
    for group in divisors(gpus):
        if group <= size:
            # "fewest": uneven fillings count only below the domains of all even ones that keep such
            # groups whole
            rivals = (
                [count for count in even_counts if gpus % (count * group) == 0]
                if fill == "fewest"
                else []
            )
            rival_count = min(rivals, default=max(of_any_fill) + 1)
            domain_gpus = group * (size // group)
            group_counts = [
                block * -(-gpus // (block * domain_gpus)) for block in blocks
            ] + of_any_fill * (group == 1)
            counts.update(count for count in group_counts if count < rival_count)
    return sorted(counts)


def domain_counts_of(instance: Instance, gpus: int, size: int) -> list[int]:
    """How many domains of `size` may hold so many GPUs of an instance."""
    standing_counts = {
        network.installed
        for network in instance.existing
        if (network.gpus_per_domain, network.gpu or instance.cluster.gpu.name)
        == (size, instance.cluster.gpu.name)
        and network.gpus < 2 * gpus <= 2 * network.gpus
    }
    if instance.network.given:
        return sorted(standing_counts)
    layers = max(workload.model.layers for workload in instance.workload)
    counts = domain_counts(gpus, size, instance.network.domain_fill, layers)
    return sorted({*counts, *standing_counts})


def attachments(instance: Instance) -> Iterator[NicAttachment]:
    """All networks' parts whose ports fit together."""
    network, core = instance.network, core_switch(instance)
    kinds, counts = dict.fromkeys(network.switched), dict.fromkeys(network.nics_per_gpu)
    for kind, nic, per_gpu, planes in product(
        kinds, network.nics, counts, dict.fromkeys(network.nic_planes)
    ):
        for switch in network.switches:
            way = run_for(switch, nic, planes)
            is_linkable = not network.mates or linkable(nic, switch, *([core] if core else ()))
            if (
                way is not None
                and is_linkable
                and (core is None or core.port_gbit_s == way.port_gbit_s)
            ):
                # GPUs share NICs only where each would otherwise have one of its own
                for sharers in (
                    dict.fromkeys(network.gpus_per_nic)
                    if per_gpu == 1
                    else set(network.gpus_per_nic) & {1}
                ):
                    attachment = NicAttachment(
                        kind, nic, per_gpu, way, network.discipline, planes, sharers
                    )
                    yield attachment
                    if network.tier_switches == "any":
                        yield from _by_tier(attachment, network)


def _by_tier(attachment: NicAttachment, network: Network) -> Iterator[NicAttachment]:
    """The NIC attachment with other switches above the leaves."""
    ways = [run_for(switch, attachment.nic, attachment.nic_planes) for switch in network.switches]
    for second, third in product([way for way in ways if way], repeat=2):
        if (
            linkable(attachment.switch, second)
            and linkable(second, third)
            and (second, third) != (attachment.switch, attachment.switch)
        ):
            yield attachment._replace(above=(second, third))


def linkable(*ends: Nic | Optic | Switch) -> bool:
    """Whether these speak one protocol over lanes of one rate; what is not known is no obstacle."""
    for key in ("protocol", "lane_gbit_s"):
        values = (getattr(end, key, None) for end in ends)
        known = [{*value} if isinstance(value, tuple) else {value} - {None} for value in values]
        if (able := list(filter(None, known))) and not set.intersection(*able):
            return False
    return True


def run_for(switch: Switch, nic: Nic, planes: int) -> Switch | None:
    """The switch run with ports of the rate of one of so many ports of a NIC; None where it cannot
    be.

    Its other modes are kept, so that the rate of its cages stays known.
    """
    own = SwitchMode(radix=switch.radix, port_gbit_s=switch.port_gbit_s)
    rate_gbit_s, modes = Fraction(nic.gbit_s) / planes, (*switch.modes, own)
    fitting = (mode for mode in (own, *switch.modes) if Fraction(mode.port_gbit_s) == rate_gbit_s)
    mode = next(fitting, None)
    if mode is None or planes not in nic.ports:
        return None
    return switch.model_copy(
        update={"radix": mode.radix, "port_gbit_s": mode.port_gbit_s, "modes": modes}
    )


def in_cages(
    network: Network, family: DesignFamily, carried: Sequence[tuple[int, int]]
) -> DesignFamily:
    """The family on switches that have cages for modules which carry so many links at the ends of
    each level.

    A switch has the upper ends of one level and the lower ends of the next; where cages are kept,
    those of the two that carry fewer links decide, and on leaves those of links into a core as
    well.
    """
    if network.switch_cages == "told" or family.attachment is None or not carried:
        return family
    boxes = [family.attachment.at(tier) for tier in (1, 2, 3)]
    switches: list[Switch] = []
    for tier, (_, upper_links) in enumerate(carried, start=1):
        counts = [upper_links] if tier == len(carried) else [upper_links, carried[tier][0]]
        if tier == 1 and family.to_core:
            counts.append(family.core_module)
        switches.append(_with_ports_for(boxes[tier - 1], min(counts)))
    second, third = (*switches, switches[-1], switches[-1])[1:3]
    return family._replace(
        attachment=family.attachment._replace(switch=switches[0], above=(second, third))
    )


def families(
    instance: Instance,
    sizes: Iterable[int] | None = None,
    parts: Sequence[NicAttachment] | None = None,
) -> Iterator[DesignFamily]:
    """All families of an instance, or those of these numbers of GPUs whose network, if they have
    one, is made of some of these parts.
    """
    parts = list(attachments(instance)) if parts is None else parts
    for bare in domain_sets(instance, sizes):
        yield from _joined(bare, parts, instance.network.max_networks)


def domain_sets(instance: Instance, sizes: Iterable[int] | None = None) -> Iterator[DesignFamily]:
    """Domains that may hold these numbers of GPUs, or those of the instance; what joins them is
    left open.
    """
    for gpus in dict.fromkeys(instance.cluster.gpus if sizes is None else sizes):
        to_core = links_needed(instance, gpus)
        for hb in instance.network.hb_domains:
            for domains in domain_counts_of(instance, gpus, hb.size):
                yield DesignFamily(gpus, hb, domains, None, to_core)
    if sizes is None and instance.cluster.idle_gpus:
        yield from _partly_idle(instance)


def _partly_idle(instance: Instance) -> Iterator[DesignFamily]:
    """Domains of which some GPUs are bought to stand idle."""
    for hb in instance.network.hb_domains:
        for gpus in range(1, max(instance.cluster.gpus)):
            if gpus not in instance.cluster.gpus:
                for domains in domain_counts(gpus, hb.size):
                    spares = idle_domains(instance, gpus, hb.size, domains)
                    if spares is not None:
                        yield DesignFamily(gpus, hb, domains, None, spares=spares)


def idle_domains(instance: Instance, gpus: int, size: int, domains: int) -> int | None:
    """How many domains of `size` are bought beside those that train so many GPUs; None where GPUs
    may not be left idle so.
    """
    allowed, larger = instance.cluster.idle_gpus, [n for n in instance.cluster.gpus if n >= gpus]
    if allowed is False or not larger:
        return 0 if gpus in instance.cluster.gpus else None
    bought = min(larger)
    limit = Fraction(bought, 4) if allowed is True else Fraction(allowed)
    if bought - gpus > limit:
        return None
    whole = ceil(Fraction(bought, size))
    # an idle GPU is none that is bought on top
    return None if gpus < bought and domains > whole else max(0, whole - domains)


def _joined(
    bare: DesignFamily, parts: Sequence[NicAttachment], most_networks: int | None
) -> Iterator[DesignFamily]:
    """Domains with each of these parts that joins them in so many networks; one needs none."""
    if bare.domains == 1:
        yield bare
        return
    domain_sizes = bare.hb.size, -(-bare.gpus // bare.domains)
    fitting = (
        attachment
        for attachment in parts
        if not any(number % attachment.gpus_per_nic for number in domain_sizes)
    )
    for family in (bare._replace(attachment=attachment) for attachment in fitting):
        if most_networks is None or family.planes * family.copies <= most_networks:
            yield family


def spare_choices(availability: Availability | None, idle: int) -> Sequence[int]:
    """The numbers of domains that may stand by where so many are idle in any case, rising."""
    if availability is None:
        return (idle,)
    if not idle:
        return availability.spares
    more = [spares for spares in availability.spares if spares > idle]
    return [idle, *more] if len(more) < len(availability.spares) else more
