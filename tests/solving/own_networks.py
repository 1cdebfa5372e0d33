"""Networks of switches listed from docs/network.md alone, with what they cost and, from docs/days.md, the share of time
that trains on them: nothing here rests on the listings, bills or uptimes of planner and verifier.

Every fabric, way to fill leaves and pods, number of uplinks and choice of optics is tried; switches above are as few as
give all bundles ports. All tiers have one product, links carry one port each, and domains are filled alike.
"""

import math
from collections.abc import Iterator
from decimal import Decimal, localcontext
from functools import cache
from itertools import count, product
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from coopt.instance.hardware import HbDomain, Nic, Optic, Switch
from coopt.instance.reserves import Availability
from coopt.instance.schema import Instance
from coopt.verifier.parts.layouts import Ports
from coopt.verifier.parts.space import DesignFamily, NicAttachment
from coopt.verifier.parts.spans import Reach, reach_of

YEAR_S, HOUR_S = 365 * 86400.0, 3600.0


class Wiring(NamedTuple):
    """Ports of leaves (`down`, `up`) and of aggregation switches, which are 0 without a tier of them; over all planes
    the switches, and the links of each level."""

    down: int
    up: int
    pod_down: int
    pod_up: int
    switches: int
    links: tuple[int, ...]
    leaf_span: int
    pod_span: int


class Built(NamedTuple):
    """What joins some HB domains: `attachment` and `wiring` are None where there is but one."""

    gpus: int
    hb: HbDomain
    domains: int
    attachment: NicAttachment | None = None
    wiring: Wiring | None = None
    optics: tuple[Optic, ...] = ()
    spares: int = 0

    @property
    def family(self) -> DesignFamily:
        return DesignFamily(self.gpus, self.hb, self.domains, self.attachment)

    @property
    def nics(self) -> int:
        """NICs of a domain."""
        return self.hb.size * self.attachment.per_gpu if self.attachment else 0


def up(a: float, b: float) -> int:
    return math.ceil(a / b)


def ratios(instance: Instance) -> tuple[float, list[float]]:
    """The largest allowed ratio, and the list of ratios that leaves are held to."""
    asked = instance.network.oversubscription
    listed = [float(one) for one in asked] if isinstance(asked, list | tuple) else []
    return (max(listed), listed) if listed else (float(asked), [])  # type: ignore[arg-type]


def wirings(instance: Instance, kind: str, domains: int, rails: int, radix: int) -> Iterator[Wiring]:
    """Every way to join so many domains, with so many NICs each, by switches of one radix."""
    planes = rails if kind == "rail-only" else 1
    n = domains * rails // planes
    if n <= radix:
        yield Wiring(n, 0, 0, 0, up(planes, radix // n), (domains * rails,), domains, domains)
        return
    for down in downs(instance, kind, domains, rails, radix):
        for uplinks, bound in uplink_counts(instance, down, radix):
            leaves = leaves_of(kind, domains, rails, down)
            if leaves <= radix and instance.network.max_tiers >= 2:
                yield from two_tiers(instance, kind, domains, rails, radix, down, uplinks, bound=bound)
            elif leaves > radix and instance.network.max_tiers >= 3:
                yield from three_tiers(instance, kind, domains, rails, radix, down, uplinks)


def whole(kind: str, domains: int, rails: int, nominal: int) -> int:
    """The ports of a leaf to NICs so that its blocks stay whole."""
    if kind == "rail-only":
        return min(nominal, domains)
    block = domains if kind == "rail-optimized" else rails
    return block * (nominal // block) if nominal >= block else nominal


def leaves_of(kind: str, domains: int, rails: int, down: int) -> int:
    """Leaves of a plane."""
    if kind == "rail-only":
        return up(domains, down)
    if kind == "rail-optimized":
        return rails * up(domains, down) if down < domains else up(rails, down // domains)
    return up(domains * rails, down)


def downs(instance: Instance, kind: str, domains: int, rails: int, radix: int) -> set[int]:
    """The ports to NICs that leaves may have: the splits of a switch and, for each number of leaves, the fewest."""
    largest, _ = ratios(instance)
    splits = [whole(kind, domains, rails, radix - up(radix, o + 1)) for o in range(1, int(largest) + 1)]
    found = set(splits)
    if instance.network.leaf_fill == "any":
        by_leaves: dict[int, list[int]] = {}
        for nominal in range(1, radix):
            down = whole(kind, domains, rails, nominal)
            if down + up(down, largest) <= radix:
                by_leaves.setdefault(leaves_of(kind, domains, rails, down), []).append(down)
        most = leaves_of(kind, domains, rails, splits[0])
        found |= {min(some) for leaves, some in by_leaves.items() if leaves <= most}
    return found


def uplink_counts(instance: Instance, down: int, radix: int) -> Iterator[tuple[int, bool]]:
    """Uplinks of a leaf, and whether they are always offered."""
    largest, listed = ratios(instance)
    most = min(down, radix - down)
    if listed:
        yield from {(up(down, ratio), True) for ratio in listed if up(down, ratio) <= most}
    else:
        yield from ((uplinks, uplinks == most) for uplinks in range(up(down, largest), most + 1))


def fewest_switches(links: int, below: int, radix: int, *, even: bool) -> int:
    """The fewest switches above that have ports for the links of each of the switches below; if even, each has as many
    links to every one below."""
    if even:
        return next(s for s in range(1, links + 1) if links % s == 0 and below * (links // s) <= radix)
    return next(s for s in count(1) if up(below * links, s) <= radix)


def two_tiers(
    instance: Instance, kind: str, domains: int, rails: int, radix: int, down: int, uplinks: int, *, bound: bool
) -> Iterator[Wiring]:
    planes, leaves = (rails if kind == "rail-only" else 1), leaves_of(kind, domains, rails, down)
    even = instance.network.bundles == "even"
    spines = fewest_switches(uplinks, leaves, radix, even=even)
    if bound or not even or spines == next(s for s in count(1) if leaves * up(uplinks, s) <= radix):
        links = (domains * rails, planes * leaves * uplinks)
        yield Wiring(down, uplinks, 0, 0, planes * (leaves + spines), links, span(kind, domains, rails, down), domains)


def span(kind: str, domains: int, rails: int, down: int) -> int:
    """Consecutive domains of a leaf."""
    return down // rails if kind == "clos" else min(down, domains)


def three_tiers(
    instance: Instance, kind: str, domains: int, rails: int, radix: int, down: int, uplinks: int
) -> Iterator[Wiring]:
    planes, leaves = (rails if kind == "rail-only" else 1), leaves_of(kind, domains, rails, down)
    largest, listed = ratios(instance)
    overs = {1, *(int(one) for one in listed if one == int(one))} if listed else range(1, int(largest) + 1)
    splits = {
        (pod_down, pod_up)
        for over in overs
        for pod_down in [radix - up(radix, over + 1)]
        for pod_up in range(up(pod_down, over), min(pod_down, radix - pod_down) + 1)
    }
    leaf_span = span(kind, domains, rails, down)
    of_rail = leaves // rails if kind == "rail-optimized" and down < domains else leaves
    for pod_down, pod_up in splits:
        pods = up(leaves, pod_down)
        if pods <= radix:
            cores = fewest_switches(pod_up, pods, radix, even=instance.network.bundles == "even")
            switches = planes * (leaves + uplinks * pods + uplinks * cores)
            links = (domains * rails, planes * leaves * uplinks, planes * pods * uplinks * pod_up)
            within = leaf_span
            if leaf_span >= domains or (of_rail % pod_down and pod_down % of_rail == 0):
                within = domains
            elif of_rail % pod_down == 0:
                within = pod_down * leaf_span
            yield Wiring(down, uplinks, pod_down, pod_up, switches, links, leaf_span, within)


def networks(instance: Instance) -> Iterator[Built]:
    """Every network, with every choice of optics."""
    network = instance.network
    for gpus, hb in product(instance.cluster.gpus, network.hb_domains):
        if 2 * gpus <= hb.size:
            yield Built(gpus, hb, 1)
            continue
        for active in (k for k in range(1, hb.size + 1) if 2 * k > hb.size and gpus % k == 0):
            if gpus == active:
                yield Built(gpus, hb, 1)
                continue
            for kind, nic, per_gpu, switch in product(
                network.switched, network.nics, network.nics_per_gpu, network.switches
            ):
                if switch.port_gbit_s == nic.gbit_s:
                    yield from joined(instance, Built(gpus, hb, gpus // active), kind, nic, per_gpu, switch)


def joined(instance: Instance, bare: Built, kind: str, nic: Nic, per_gpu: int, switch: Switch) -> Iterator[Built]:
    """Networks of these products."""
    network = instance.network
    attachment = NicAttachment(kind, nic, per_gpu, switch, network.discipline)  # type: ignore[arg-type]
    for wiring in set(wirings(instance, kind, bare.domains, bare.hb.size * per_gpu, switch.radix)):
        levels = [
            [one for one in network.optics if one.gbit_s == nic.gbit_s and one.reach_m >= reach_m]
            for reach_m, _ in zip(network.link_reach_m, wiring.links, strict=False)
        ]
        for optics in product(*levels):
            yield bare._replace(attachment=attachment, wiring=wiring, optics=optics)


def reach(instance: Instance, built: Built) -> Reach:
    """What traffic sees: from the ratio of ports here, from the loads of links as the verifier counts them."""
    wiring, domains = built.wiring, built.domains
    if wiring is None or not wiring.up:
        return Reach(domains, domains, domains, 1.0, 1.0)
    in_pod = wiring.down / wiring.up
    if instance.network.charge == "ratio":
        beyond = in_pod * (wiring.pod_down / wiring.pod_up if wiring.pod_up else 1.0)
        return Reach(domains, wiring.leaf_span, wiring.pod_span, in_pod, beyond, instance.network.discipline)
    even = int(instance.network.bundles == "even")
    ports = Ports(len(wiring.links), wiring.down, wiring.up, wiring.pod_down, wiring.pod_up, bundle=even)
    return reach_of(built.family, ports)


def bill(instance: Instance, built: Built) -> tuple[float, float]:
    """Purchase (USD) and power (W) of what counts."""
    gpu, hb, domains = instance.cluster.gpu, built.hb, built.domains + built.spares
    idle = domains * hb.size - built.gpus
    lines = [
        ("hb", domains * hb.size, hb.usd_per_gpu, hb.w_per_gpu),
        ("hb", idle, gpu.usd, gpu.w),
        ("gpu", built.gpus, gpu.usd, gpu.w),
    ]
    if built.attachment is not None and built.wiring is not None:
        nic, switch = built.attachment.nic, built.attachment.switch
        lines += [
            ("nic", domains * built.nics, nic.usd, nic.w),
            ("switch", built.wiring.switches, switch.usd, switch.w),
        ]
        pairs = zip(built.optics, built.wiring.links, strict=True)
        lines += [("optics", 2 * links, optic.usd, optic.w) for optic, links in pairs]
    counted = [(units, usd, w) for kind, units, usd, w in lines if kind in instance.objective.include]
    return math.fsum(units * usd for units, usd, _ in counted), math.fsum(units * w for units, _, w in counted)


def calendar_s(instance: Instance, built: Built, iteration_s: float) -> float:
    """An iteration with its share of interruptions: on average by Daly's formula over the states of domains, or so that
    days are kept with the confidence that is asked for."""
    asked, (workload,) = instance.availability, instance.workload
    if asked is None or not workload.calendar:
        return iteration_s
    year = {part: rate.at(asked.at) for part, rate in (*asked.rates.of_part.items(), ("flap", asked.rates.flap))}
    links, gpus = (built.wiring.links if built.wiring else ()), built.gpus
    per_nic = built.attachment.per_gpu if built.attachment else 0
    fails = gpus * (year["gpu"] + year["hbm"] + year["software"] + per_nic * year["nic"])
    fails += up(gpus, asked.rates.gpus_per_host) * year["host"] + built.domains * year["domain"]
    fails += 2 * sum(links) * year["optic"] + (built.wiring.switches if built.wiring else 0) * year["switch"]
    moved_s = workload.model.parameters * (2 + workload.options.software.state_bytes)
    moved_s /= gpus * asked.checkpoint_gbyte_s_per_gpu * 1e9
    restart_s = asked.restart_s + gpus / 1000 * asked.restart_s_per_1000_gpus + moved_s
    trains, spread = trained_share(
        fails / YEAR_S, asked.checkpoint_s or moved_s, restart_s, asked.checkpoint_interval_s
    )
    waits = math.exp(-2 * links[0] * year["flap"] / YEAR_S * asked.flap_s) if links else 1.0
    runs, waiting = running(asked, built, per_nic)
    if trains * runs * waits <= 1e-9:  # nothing ever ends
        return math.inf
    if asked.confidence is None or not math.isfinite(iteration_s):
        return iteration_s / (trains * waits * runs)
    work_s, mean = iteration_s / waits * workload.iterations, 1 / trains / runs
    deviation_s = math.sqrt((spread + waiting * mean) * work_s) / runs
    return (mean * work_s + NormalDist().inv_cdf(asked.confidence) * deviation_s) / workload.iterations


@cache
def trained_share(per_s: float, saved_s: float, restart_s: float, interval_s: float | None) -> tuple[float, float]:
    """T / E at the interval that is given, or at the best one, and the variance of E over T (s)."""

    def share(train_s: float) -> float:
        exponent = per_s * (train_s + saved_s)
        if per_s * restart_s + exponent > 600:
            return 0.0
        return per_s * train_s / (math.exp(per_s * restart_s) * math.expm1(exponent))

    if per_s == 0.0:
        return (1.0 if interval_s is None else interval_s / (interval_s + saved_s)), 0.0
    low, high = (interval_s, interval_s) if interval_s is not None else (0.0, 1 / per_s)
    for _ in range(100):  # the share rises to its top, where its logarithm has no slope, and falls
        middle = (low + high) / 2
        rises = per_s * middle < -math.expm1(-per_s * (middle + saved_s))
        low, high = (middle, high) if rises else (low, middle)
    if not share(low):
        return 0.0, 0.0
    _, variance = tried(per_s, low + saved_s, *tried(per_s, restart_s, 0.0, 0.0))
    return share(low), variance / low


def tried(per_s: float, length_s: float, further_s: float, further_variance: float) -> tuple[float, float]:
    """Mean and variance of what it takes until a length goes by without a failure, each of which takes something
    further: a geometric number of exponential times that are shorter than the length. Of rare failures few digits are
    left, so that more of them are carried."""
    if length_s == 0.0:
        return 0.0, 0.0
    with localcontext(prec=50):
        rate, length, extra, spread = map(Decimal, (per_s, length_s, further_s, further_variance))
        stays = (-rate * length).exp()
        mean = 1 / rate - length * stays / (1 - stays)
        square = 2 / rate**2 - (length**2 + 2 * length / rate) * stays / (1 - stays)
        each, variance, number = mean + extra, square - mean**2 + spread, (1 - stays) / stays
        return float(length + number * each), float(number * variance + number / stays * each**2)


def running(asked: Availability, built: Built, per_nic: int) -> tuple[float, float]:
    """Probability that no more domains are out than stand by, from all numbers of GPUs out, host by host, and how much
    the time in which that is so varies (s), of a chain of losses and repairs."""
    rates, hours = asked.rates, asked.repair_hours

    def out(*parts: str) -> float:
        per_hour = sum(rates.of_part[part].at(asked.at) for part in parts) / (365 * 24)
        return per_hour * hours / (1 + per_hour * hours)

    gpu, host = out("gpu", "hbm", *["nic"] * per_nic), out("host")
    working = np.ones(1)
    for first in range(0, built.hb.size, rates.gpus_per_host):
        held = min(rates.gpus_per_host, built.hb.size - first)
        of_host = np.array([math.comb(held, k) * (1 - gpu) ** k * gpu ** (held - k) for k in range(held + 1)])
        of_host *= 1 - host
        of_host[0] += host
        working = np.convolve(working, of_host)
    lost = 1 - (1 - out("domain")) * working[built.gpus // built.domains :].sum()
    domains = built.domains + built.spares
    down = np.arange(domains + 1)
    chance = np.array([math.comb(domains, k) * lost**k * (1 - lost) ** (domains - k) for k in down])
    enough = down <= built.spares
    share = float(chance[enough].sum())
    if not 0 < lost < 1 - 1e-9 or asked.confidence is None:
        return share, 0.0
    rate = np.zeros((domains + 1, domains + 1))
    rate[down[:-1], down[1:]] = (domains - down[:-1]) * lost / (1 - lost) / (hours * HOUR_S)
    rate[down[1:], down[:-1]] = down[1:] / (hours * HOUR_S)
    rate -= np.diag(rate.sum(axis=1))
    drift, *_ = np.linalg.lstsq(rate, share - enough, rcond=None)
    return share, float(2 * (chance * (enough - share)) @ drift)
