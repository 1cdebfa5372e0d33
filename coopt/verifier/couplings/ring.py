"""One model at several sites: their shares of its GPUs and batches, the ring that joins them with
its channels, and the gradients that go round it (docs/sites.md).

Each site is checked as a design of its own, then what couples them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import NamedTuple

from coopt.instance.couplings import Site, Wan, part_of
from coopt.instance.hardware import Optic
from coopt.instance.question import ObjectiveKind
from coopt.instance.reserves import Availability
from coopt.instance.schema import Instance
from coopt.instance.texts import counted
from coopt.instance.variants import after_a_loss
from coopt.instance.workload import Workload
from coopt.plan.couplings import Exchange, Part, Ring, SitePower
from coopt.plan.parts import Design, Uptime
from coopt.plan.schema import Plan
from coopt.verifier.checks.verdict import LENIENT, TOLERANCE, Ledger, UnsoundError, agree
from coopt.verifier.couplings.core import (
    Joint,
    JointsByPlace,
    check_core_end,
    check_cores,
    core_end_of,
    core_ends,
    joined_part,
    joining_nic,
    joint_of,
)
from coopt.verifier.couplings.prices import check_limits
from coopt.verifier.couplings.sites import check_facility, objective_at
from coopt.verifier.parts.bills import (
    CountedItem,
    bill,
    bill_total,
    counting,
    decimal,
    electricity_usd,
    owned_usd,
)
from coopt.verifier.parts.design_checks import check_design
from coopt.verifier.parts.layouts import ceil_ratio
from coopt.verifier.parts.outages import HOUR_S, YEAR_S
from coopt.verifier.parts.part_checks import (
    CountedPart,
    check_bill,
    check_objective,
    check_part,
    check_part_runs,
)
from coopt.verifier.parts.space import core_links_carried, core_switch, linkable
from coopt.verifier.parts.spans import reach_of, slowest_case
from coopt.verifier.parts.timings import Trainer
from coopt.verifier.parts.uptime import (
    failure_rate,
    interrupted_at,
    running_of,
    stops_as_claimed,
)
from coopt.verifier.parts.workload_checks import match_workloads
from coopt.verifier.training.mappings import ScalarMapping
from coopt.verifier.training.placing import held_parameters
from coopt.verifier.training.work import Clock

FACTS = ("gbit_s", "latency_s", "usd", "w", "modules")


def question_of_site(instance: Instance, shares: int) -> Instance:
    """The question of one site: its part of the GPUs and batches, the same times, the limits of all
    sites.
    """
    all_shares = instance.cluster.shares or 1
    workloads = tuple(part_of(workload, shares, all_shares) for workload in instance.workload)
    gpus = tuple(count * shares // all_shares for count in instance.cluster.gpus)
    cluster = instance.cluster.model_copy(update={"gpus": gpus})
    failures = instance.availability
    if failures is not None:
        failures = failures.model_copy(update={"spare_domains": (failures.at_each_site,)})
    changes = {"cluster": cluster, "workload": workloads, "availability": failures}
    return instance.model_copy(update=changes)


class ChannelEnd(NamedTuple):
    """What ends a channel in the border of a site: modules of an optic, and ports that they take
    there.
    """

    optic: Optic
    modules: int
    ports: int


def channel_end(instance: Instance, link: Wan) -> ChannelEnd | None:
    """The cheapest module that reaches as far as a link; None where channels end in no border.

    It takes a cage, and so as many ports as a module of the links from leaves.
    """
    switch = core_switch(instance)
    if switch is None:
        return None
    rate, km = decimal(switch.port_gbit_s), link.km or 0.0
    optics = [
        optic
        for optic in link.optics
        if decimal(optic.gbit_s) == rate and decimal(optic.reach_m) >= decimal(km) * 1000
        if not instance.network.mates or linkable(optic, switch)
    ]
    optic = sorted(optics, key=lambda optic: (optic.usd, optic.w, optic.name))[0]
    modules = math.ceil(decimal(link.gbit_s) / rate)
    return ChannelEnd(optic, modules, modules * core_links_carried(instance))


class Border(NamedTuple):
    """What stands between the network of a site and its channels: ports and modules that channels
    take, and lines of a bill, with the channels' modules at this end.
    """

    channel_ports: int
    channel_modules: int
    lines: list[CountedItem]

    @property
    def w(self) -> float:
        """Power (W)."""
        return math.fsum(line.amount * line.unit_w for line in self.lines)


def border_at(
    instance: Instance, joint: Joint | None, ends: Iterable[tuple[ChannelEnd | None, int]]
) -> Border:
    """The border of a site with what ends there, each so many times; nothing where there is no
    switch.
    """
    switch, lit = core_switch(instance), [(end, number) for end, number in ends if end]
    ports = sum(end.ports * number for end, number in lit)
    lines = [
        CountedItem("optics", end.optic.name, end.modules * number, end.optic.usd, end.optic.w)
        for end, number in lit
    ]
    if switch is not None and joint is not None:
        count = ceil_ratio(joint.core_ports + ports, switch.radix)
        lines.append(CountedItem("switch", switch.name, count, switch.usd, switch.w))
    modules = sum(end.modules * number for end, number in lit)
    return Border(ports, modules, counting(instance, lines))


class BuiltSite(NamedTuple):
    """A site that could be built: lines of its bill, power (W), racks, its links into a border if
    it has one, and that border.
    """

    site: Site
    lines: list[CountedItem]
    power_w: float
    racks: int
    joint: Joint | None
    border: Border = Border(0, 0, [])

    def drawn_w(self, ring: Ring) -> float:
        """Power with its border, and half of each channel that ends here (W)."""
        channels_w = sum(claim.w / 2 for claim in ring.wan if self.site.name in claim.between)
        return self.power_w + channels_w + self.border.w


class SiteClaim(NamedTuple):
    """What a plan claims of a site: the part built there with its design, shares and power."""

    part: Part
    design: Design
    shares: int
    power: SitePower


def claims_of(plan: Plan, ring: Ring) -> list[SiteClaim]:
    """The claims on the sites of a ring in its order.

    Raises
    ------
    UnsoundError
        Where parts or powers are of other sites, which the form of the plan tells.
    """
    parts, powers = plan.parts, plan.couplings.sites
    if not (
        ring.sites == tuple(part.site for part in parts) == tuple(fed.site for fed in powers)
        and len(ring.site_shares) == len(parts)
    ):
        raise UnsoundError
    return [
        SiteClaim(part, part.design, shares, power)
        for part, shares, power in zip(parts, ring.site_shares, powers, strict=True)
        if part.design is not None
    ]


def check_sites(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """Check shares, links, exchanges, every site, and the bill of everything."""
    ring = plan.couplings.ring
    if ring is None:
        return
    claims = claims_of(plan, ring)
    sites = _sites(ledger, instance, ring, claims)
    links = check_links(ledger, instance, sites, ring)
    waits_s, waits_left_s = check_exchanges(ledger, instance, ring, links, len(sites))
    counted_sites, built_sites = list[CountedSite](), list[BuiltSite]()
    for site, claim in zip(sites, claims, strict=True):
        ledger.turn_to(f"Site {site.name!r}")
        with suppress(UnsoundError):
            counted_sites.append(_counted(ledger, instance, plan, site, claim))
    uptimes = dict[str, tuple[Uptime, float]]()
    if instance.availability is not None and len(counted_sites) == len(sites):
        uptimes = uptimes_at(instance, instance.availability, counted_sites, ring, waits_s)
    for one in counted_sites:
        ledger.turn_to(f"Site {one.site.name!r}")
        with suppress(UnsoundError):
            bare = _site(ledger, instance, one, waits_s, waits_left_s, uptimes)
            built = bare._replace(border=_border(ledger, instance, ring, links, bare))
            built_sites.append(built)
            facility_w = built.drawn_w(ring) * objective_at(instance, one.site).pue
            check_facility(ledger, one.site, facility_w, one.claim.power)
    ledger.turn_to()
    if len(built_sites) == len(sites):
        if instance.sharing.core is not None:
            joints: JointsByPlace = {
                (None, built.site.name): {built.site.name: built.joint}
                for built in built_sites
                if built.joint is not None
            }
            ports = {built.site.name: built.border.channel_ports for built in built_sites}
            check_cores(ledger, instance, plan, joints, ports)
        _check_totals(ledger, instance, plan, ring, built_sites, links)


def _border(
    ledger: Ledger, instance: Instance, ring: Ring, links: Sequence[Wan], built: BuiltSite
) -> Border:
    """Check that a border has as many links to leaves as modules of channels; the border."""
    ends = [
        (channel_end(instance, link), claim.channels)
        for link, claim in zip(links, ring.wan, strict=True)
        if built.site.name in link.between
    ]
    border = border_at(instance, built.joint, ends)
    inward = 0 if built.joint is None else built.joint.links
    ledger.holds(
        "channels",
        border.channel_modules <= inward,
        border.channel_modules,
        inward,
        f"Channels end in {counted(border.channel_modules, 'module')} of the border switches, but"
        f" the network of the site has only {counted(inward, 'link')} to these.",
    )
    return border


def _sites(
    ledger: Ledger, instance: Instance, ring: Ring, claims: Sequence[SiteClaim]
) -> list[Site]:
    """The sites of the instance that the plan names; each once, with all shares between them."""
    sites_by_name = {site.name: site for site in instance.site}
    names = tuple(claim.part.name for claim in claims)
    ledger.require(
        "sites",
        bool(names) and len(set(names)) == len(names) and set(names) <= set(sites_by_name),
        names,
        tuple(sites_by_name),
        f"The plan builds at {', '.join(names) or 'no site'}; the instance has"
        f" {', '.join(sites_by_name)}, and each may be used once.",
    )
    all_shares, shares_taken = instance.cluster.shares, sum(claim.shares for claim in claims)
    ledger.require(
        "shares",
        ring.shares == all_shares == shares_taken and all(claim.shares >= 1 for claim in claims),
        shares_taken,
        all_shares,
        f"The sites take {shares_taken} shares of GPUs and batch in all, and the plan"
        f" states {ring.shares}; both have to be {all_shares}, with at least one for each site.",
    )
    return [sites_by_name[name] for name in names]


class CountedSite(NamedTuple):
    """A site with what a plan claims of it, and its network as it is counted."""

    site: Site
    claim: SiteClaim
    question: Instance
    part: CountedPart
    core_end: Optic | None
    kind: ObjectiveKind


def _counted(
    ledger: Ledger, instance: Instance, plan: Plan, site: Site, claim: SiteClaim
) -> CountedSite:
    """Check the design of one site as that of a cluster of its own."""
    question, design = question_of_site(instance, claim.shares), claim.design
    kind = plan.objective.kind
    domains = check_design(ledger, question, design)
    if (joined := plan.couplings.joint(claim.part)) is not None:
        asked, links = domains.to_core, joined.links.links
        ledger.holds(
            "core-links",
            links >= asked,
            links,
            asked,
            f"The border needs at least {counted(asked, 'link')} to the network of the site, but"
            f" has {links}.",
        )
        domains = domains._replace(to_core=max(links, asked))
    claimed = core_end_of(plan, claim.part.name)
    core_end, family = check_core_end(ledger, question, kind, domains, claimed.name)
    joins = core_ends(question, domains, core_end, claim.part.name)
    workloads = match_workloads(ledger, question.workload, claim.part.workloads)
    if not workloads:
        raise UnsoundError
    part = check_part(ledger, question, family, design, workloads, kind)
    part = joined_part(ledger, part, joins, question, kind, claimed)
    return CountedSite(site, claim, question, part, core_end, kind)


def uptimes_at(
    instance: Instance,
    availability: Availability,
    sites: Sequence[CountedSite],
    ring: Ring,
    waits_s: Mapping[str, float],
) -> dict[str, tuple[Uptime, float]]:
    """What interrupts each workload, which any failure at any site stops at all of them, and the
    share of its bound in which it runs.
    """
    parts = [site.part for site in sites]
    rate = math.fsum(failure_rate(availability, part.family, part.levels) for part in parts)
    running = math.prod(running_of(availability, part.family) for part in parts)
    outages_s = availability.repair_hours * HOUR_S
    of_channel = availability.rates.channel.at(availability.at) / YEAR_S * outages_s
    found = {}
    for workload in instance.workload:
        stops = interrupted_at(availability, workload, instance.cluster.most_gpus, rate)
        whole_s = _slowest_s(sites, workload.name, waits_s[workload.name])
        unhurt, per_s = 1.0, 0.0
        for lost in range(len(ring.wan)):
            # until then every channel of the links before is there
            share = unhurt * (1 - math.exp(-ring.wan[lost].channels * of_channel))
            unhurt -= share
            rates = [
                (link.channels - (number == lost)) * link.gbit_s
                for number, link in enumerate(ring.wan)
            ]
            if min(rates) > 0:
                latency_s = max(link.latency_s for link in ring.wan)
                wait_s = wait_for_gradients(workload, len(sites), latency_s, min(rates))[1]
                per_s += share / _slowest_s(sites, workload.name, wait_s)
        pace = (unhurt / whole_s + per_s) * whole_s
        uptime = stops_as_claimed(stops, running, pace, 1 - unhurt)
        found[workload.name] = uptime, uptime.promised if workload.calendar else 1.0
    return found


def _slowest_s(sites: Sequence[CountedSite], name: str, wait_s: float) -> float:
    """An iteration of a workload at its slowest site with that wait (s)."""
    return max(
        slowest_case(
            site.part.family,
            reach_of(site.part.family, site.part.ports),
            Clock(run.workload, site.question.cluster.gpu).work(run.split)._replace(wait_s=wait_s),
            run.place,
        ).seconds
        for site in sites
        for run in site.part.runs
        if run.workload.name == name
    )


def _site(
    ledger: Ledger,
    instance: Instance,
    counted: CountedSite,
    waits_s: Mapping[str, float],
    waits_left_s: Mapping[str, float],
    uptimes: Mapping[str, tuple[Uptime, float]],
) -> BuiltSite:
    """Check what one site trains and costs as a cluster of its own."""
    site, claim, question, part, core_end, kind = counted
    design = claim.design
    check_part_runs(ledger, part, question.cluster.gpu, waits_s, uptimes=uptimes)
    if waits_left_s:
        longer = after_a_loss(question, instance.losses["channel"])
        waits = tuple(waits_left_s[workload.name] for workload in longer.workload)
        reach = reach_of(part.family, part.ports)
        stands = Trainer(longer, LENIENT).trains(part.family, reach, waits)
        ledger.holds(
            "survives",
            stands,
            True,
            stands,
            "After the loss of a channel, the site misses the bounds that then apply.",
        )
    stage = part.stage((part.ports.up,), core_end)
    joint = None
    if question.sharing.core is not None:
        joint = joint_of(question, kind, stage, joining_nic(ledger, question, design))
    levels = stage.levels(part.ports.up) if part.laid else part.levels
    lines = bill(question, part.family, levels, stage.optics)
    lines += counting(question, [] if joint is None else joint.lines())
    sums = bill_total(lines, objective_at(instance, site))
    check_bill(ledger, lines, sums, claim.part.cost)
    return BuiltSite(site, lines, sums.power_w, design.racks or 0, joint)


def _check_totals(
    ledger: Ledger,
    instance: Instance,
    plan: Plan,
    ring: Ring,
    sites: Sequence[BuiltSite],
    links: Sequence[Wan],
) -> None:
    """Check the bill of all sites and channels, the limits of the whole, and the objective."""
    assert plan.cost is not None
    lines = [line for site in sites for line in (*site.lines, *site.border.lines)]
    lines += [
        CountedItem("wan", link.name, claim.channels, link.usd, link.w)
        for link, claim in zip(links, ring.wan, strict=True)
    ]
    # Electricity has the price and PUE of each site, to which half of each channel counts.
    energy = sum(
        electricity_usd(objective_at(instance, site.site), site.drawn_w(ring)) for site in sites
    )
    at_list_terms = bill_total(lines, instance.objective)
    sums = at_list_terms._replace(
        tco_usd=owned_usd(instance.objective, at_list_terms.capex_usd) + energy
    )
    check_bill(ledger, lines, sums, plan.cost)
    check_limits(ledger, instance, sums, sum(site.racks for site in sites))
    check_objective(ledger, plan, sums)


def check_links(ledger: Ledger, instance: Instance, sites: Sequence[Site], ring: Ring) -> list[Wan]:
    """Check links and channels; the links of the instance between neighbours of the ring."""
    ends = [frozenset(pair) for pair in pairwise(site.name for site in sites)]
    # Two sites share one link, which carries both directions; from three on a link closes the ring.
    if len(sites) > 2:
        ends.append(frozenset((sites[-1].name, sites[0].name)))
    links_by_ends = {frozenset(wan.between): wan for wan in instance.wan}
    claimed_ends = [frozenset(claim.between) for claim in ring.wan]
    claimed_texts, expected_texts = (
        tuple(sorted(" - ".join(sorted(pair)) for pair in pairs)) for pairs in (claimed_ends, ends)
    )
    ledger.require(
        "ring",
        claimed_texts == expected_texts and set(ends) <= set(links_by_ends),
        claimed_texts,
        expected_texts,
        f"The sites of the plan need these links: {', '.join(expected_texts) or 'none'}. The plan"
        f" has {', '.join(claimed_texts) or 'none'}, the instance"
        f" {', '.join(sorted(' - '.join(sorted(pair)) for pair in links_by_ends)) or 'none'}.",
    )
    links = [links_by_ends[pair] for pair in claimed_ends]
    for link, claim in zip(links, ring.wan, strict=True):
        end = channel_end(instance, link)
        figures = (
            link.gbit_s,
            link.latency_ms / 1e3,
            claim.channels * link.usd,
            claim.channels * link.w,
            0 if end is None else 2 * claim.channels * end.modules,
        )
        claimed_figures = (claim.gbit_s, claim.latency_s, claim.usd, claim.w, claim.modules)
        faults = [
            name
            for name, a, b in zip(FACTS, claimed_figures, figures, strict=True)
            if not agree(a, b)
        ]
        allowed = f"channels, of which it may have {'1' if link.most == 1 else f'1 to {link.most}'}"
        faults += [] if 1 <= claim.channels <= link.most else [allowed]
        faults += [] if claim.optic == (end and end.optic.name) else ["optic"]
        ledger.require(
            "channels",
            not faults,
            tuple(faults),
            (),
            f"Link {link.name} differs from the instance in: {'; '.join(faults)}.",
        )
    return links


def check_exchanges(
    ledger: Ledger, instance: Instance, ring: Ring, links: Sequence[Wan], count: int
) -> tuple[dict[str, float], dict[str, float]]:
    """Check exchanges; seconds that each workload waits for gradients of other sites, 2(S - 1)
    steps round the ring, and those without a channel where the loss of one is to be survived.
    """
    names = tuple(workload.name for workload in instance.workload)
    claimed_names = tuple(claim.workload for claim in ring.exchanges)
    ledger.same(
        "exchange",
        claimed_names,
        names,
        f"The plan has gradient exchanges of {', '.join(claimed_names) or 'no workload'}, but the"
        f" instance has the workloads {', '.join(names)}.",
    )
    waits_s, waits_left_s = dict[str, float](), dict[str, float]()
    # Every step of the exchange waits for the slowest link and the largest latency of the ring.
    lit = [(claim.channels, link.gbit_s) for claim, link in zip(ring.wan, links, strict=True)]
    rate, rate_left = (
        min(((channels - lost) * gbit_s for channels, gbit_s in lit), default=1.0)
        for lost in (0, 1)
    )
    survives = "channel" in instance.losses
    if survives:
        ledger.require(
            "survives",
            rate_left > 0,
            rate_left,
            "a rate above 0",
            "A link of the ring has a single channel, whose loss leaves it none.",
        )
    late_s = max((link.latency_ms / 1e3 for link in links), default=0.0)
    claims = {claim.workload: claim for claim in ring.exchanges}
    for workload in instance.workload:
        sent_bytes, wait_s = wait_for_gradients(workload, count, late_s, rate)
        later_s = wait_for_gradients(workload, count, late_s, rate_left)[1] if survives else None
        claim = claims.get(
            workload.name, Exchange(workload=workload.name, sent_bytes=-1.0, exchange_s=-1.0)
        )
        ledger.holds(
            "exchange",
            agree(claim.sent_bytes, sent_bytes)
            and agree(claim.exchange_s, wait_s)
            and agree(claim.without_channel_s, later_s),
            claim.exchange_s,
            wait_s,
            f"Each site sends {sent_bytes:.9g} bytes for {workload.name!r} in {wait_s:.9g} s"
            f"{_without_channel(later_s)}, but the plan "
            + (
                f"states {claim.sent_bytes:.9g} bytes in {claim.exchange_s:.9g} s"
                f"{_without_channel(claim.without_channel_s)}."
                if workload.name in claims
                else "lists no exchange for it."
            ),
            TOLERANCE,
        )
        waits_s[workload.name] = wait_s
        waits_left_s |= {} if later_s is None else {workload.name: later_s}
    return waits_s, waits_left_s


def _without_channel(later_s: float | None) -> str:
    return "" if later_s is None else f" ({later_s:.9g} s without one channel)"


def wait_for_gradients(
    workload: Workload, sites: int, latency_s: float, gbit_s: float
) -> tuple[float, float]:
    """Bytes that each of some sites sends round a ring in an iteration, and seconds that this takes
    at the slowest rate.
    """
    parameters = held_parameters(workload, ScalarMapping(1, 1, 1, 1, 1, 1, 1, "none", False, 0))
    gradient_bytes = workload.options.software.gradient_bytes * (
        parameters.common + parameters.experts
    )
    sent_bytes = 2 * (sites - 1) / sites * gradient_bytes
    return sent_bytes, (
        2 * (sites - 1) * latency_s + sent_bytes * 8 / (gbit_s * 1e9) if sites > 1 else 0.0
    )
