"""The least that one model at several sites can be worth: every ring, slowest rate and division
into shares.

A higher slowest rate takes more channels and lets everybody wait less, so that rates from r to R
cost no less than the channels of r and the networks that do with the waits of R. A range is halved
until that reaches the bound or one rate is left. Where the loss of a channel is to be survived, the
slowest rate without one is a second range, and the longer of the two is halved. The sites of a ring
are divided by a dynamic program over shares. Limits of all sites together are not counted: what is
found is no more than any plan is worth.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import cache, partial
from itertools import chain, combinations, count, pairwise, permutations
from typing import NamedTuple

from coopt.instance.couplings import Limits, Site, Wan
from coopt.instance.question import ObjectiveKind
from coopt.instance.schema import Instance
from coopt.instance.texts import alternatives, exact_amount, that_hold
from coopt.instance.variants import after_a_loss
from coopt.plan.schema import Plan
from coopt.verifier.checks.rivals import (
    Counterexample,
    check_claims,
    counterexample,
    may_check_bound,
    note_source,
)
from coopt.verifier.checks.verdict import LENIENT, SOLVERS_WORD, Ledger
from coopt.verifier.couplings.core import (
    Joint,
    core_ends,
    core_nics,
    families_joined,
    joint_of,
)
from coopt.verifier.couplings.fleet_paths import TooManyError
from coopt.verifier.couplings.ring import (
    ChannelEnd,
    border_at,
    channel_end,
    question_of_site,
    wait_for_gradients,
)
from coopt.verifier.couplings.sites import feeds_w, objective_at
from coopt.verifier.parts.bills import (
    CountedItem,
    bill,
    counting,
    decimal,
    exact_sum,
    owned_share,
)
from coopt.verifier.parts.enumeration import SLACK, design_chains, exact_limit
from coopt.verifier.parts.layouts import ceil_ratio, leaf_count
from coopt.verifier.parts.outages import YEAR_S
from coopt.verifier.parts.space import DesignFamily, core_switch, families
from coopt.verifier.parts.stages import GrowthStage
from coopt.verifier.parts.timings import Trainer
from coopt.verifier.parts.uptime import interrupted_at
from coopt.verifier.training.caching import kept

MOST_NETWORKS = 5_000
ENUMERATED = "every ring of sites, rate of its slowest link and division of GPUs among its sites"
"""Networks at sites that are listed or timed to confirm a bound."""

Waits = tuple[float, ...]
"""What each workload waits for gradients of other sites in an iteration (s)."""

Rates = tuple[Fraction, ...]
"""The slowest rate of a ring (Gbit/s), and that without a channel where its loss is to be
survived.
"""


class LinkedSites(NamedTuple):
    """Sites that train together, and the links between neighbours; none for one site."""

    sites: tuple[Site, ...]
    links: tuple[Wan, ...]


class LocalPrices(NamedTuple):
    """What a USD of purchase and a watt are worth at a site, the watts of IT that it feeds,
    exactly, and what ends in its border so many times.
    """

    usd: Fraction
    w: Fraction
    fed_w: Fraction
    ends: tuple[tuple[ChannelEnd | None, int], ...] = ()

    def of(self, usd: Fraction, w: Fraction) -> Fraction:
        """What is worth that costs and draws so much."""
        return self.usd * usd + self.w * w


def rings(instance: Instance) -> Iterator[LinkedSites]:
    """Every site alone, every pair with a link, and every cycle of links once."""
    links = {frozenset(wan.between): wan for wan in instance.wan}
    for size in range(1, len(instance.site) + 1):
        for first_site, *other_sites in combinations(instance.site, size):
            for order in permutations(other_sites):
                if len(order) > 1 and order[0].name > order[-1].name:
                    continue  # the same cycle, walked the other way
                sites = (first_site, *order)
                ends = [*pairwise(sites), *([(sites[-1], first_site)] if size > 2 else [])]
                ring_links = [links.get(frozenset((a.name, b.name))) for a, b in ends]
                links_there = tuple(link for link in ring_links if link is not None)
                if len(links_there) == len(ring_links):
                    yield LinkedSites(sites, links_there)


def local_prices(instance: Instance, kind: ObjectiveKind, site: Site, margin: float) -> LocalPrices:
    """What counts at a site, rounding of its power in favour of networks where `margin` is
    negative.
    """
    terms = objective_at(instance, site)
    kwh = decimal(terms.years) * 8760 / 1000 * decimal(terms.pue)
    # power may be over a limit by the rounding of its sums
    fed_w = feeds_w(site) / decimal(terms.pue) * (1 + (SLACK if margin < 0 else -SLACK))
    of_w = {"capex": Fraction(), "power": Fraction(1), "tco": kwh * decimal(terms.usd_per_kwh)}
    return LocalPrices(owned_share(terms, kind), of_w[kind], fed_w)


def most_links(instance: Instance, question: Instance) -> int:
    """The most links into the border of a site that modules of its channels may need, of which a
    ring has two links at a site; no more than its NICs have the rate for.
    """
    switch, network, at_sites = core_switch(question), question.network, [0]
    if switch is None:
        return 0
    for site in instance.site:
        ends = [
            (channel_end(instance, link), link.most)
            for link in instance.wan
            if site.name in link.between
        ]
        modules = sorted((end.modules * most for end, most in ends if end), reverse=True)
        at_sites.append(sum(modules[:2]))
    slowest = min(decimal(nic.gbit_s) for nic in core_nics(question)) * min(network.nics_per_gpu)
    if min(network.nics_per_gpu) == 1:
        slowest /= max(network.gpus_per_nic)
    of_nics = max(question.cluster.gpus) * slowest / decimal(switch.port_gbit_s)
    return min(max(at_sites), int(of_nics))


def link_counts(family: DesignFamily, most: int) -> list[int]:
    """The fewest links into a border with which networks differ, up to the most that are of use.

    All leaf switches have the same number, so that one more than these hold begins another network.
    """
    least, switches = family.to_core, {1}
    if family.attachment is not None:
        radix = family.attachment.switch.radix
        sharing = range(1, radix // family.ends + 1)
        switches = {ceil_ratio(family.planes, number) * family.copies for number in sharing}
        switches |= {
            leaf_count(family, down) * family.planes * family.copies for down in range(1, radix)
        }
    return sorted(
        {
            least,
            *(
                n
                for n in range(least + 1, most + 1)
                if any((n - 1) % number == 0 for number in switches)
            ),
        }
    )


def _distinct(rows: Iterable[GrowthStage]) -> Iterator[GrowthStage]:
    """The rows, each once: several numbers of links asked for may come to the same at each leaf."""
    seen = set[GrowthStage]()
    for row in rows:
        held = row.core_links if row.family.to_core else 0
        row = row._replace(family=row.family._replace(to_core=held))
        if row not in seen:
            seen.add(row)
            yield row


class ShareNetworks:
    """The networks that a site may have for a number of shares, and which are in time after which
    waits.
    """

    def __init__(
        self,
        instance: Instance,
        kind: ObjectiveKind,
        shares: int,
        note: Callable[[], None],
        margin: float,
    ) -> None:
        self._question, self._note = question_of_site(instance, shares), note
        self._most_links = most_links(instance, self._question)
        questions = [self._question]
        if "channel" in instance.losses:
            questions.append(after_a_loss(self._question, instance.losses["channel"]))
        self._trainers = [Trainer(question, margin) for question in questions]
        self._joints, self._rows = self._joined(kind)
        self._answers: dict[tuple[int, int], list[tuple[Waits, bool]]] = {}

    def _joined(self, kind: ObjectiveKind) -> tuple[list[Joint | None], list[GrowthStage]]:
        """The networks, and their links into the border of a site, once with each NIC that may
        start them where there is no leaf.
        """
        question, joints, rows = self._question, list[Joint | None](), list[GrowthStage]()
        spares = question.availability.at_each_site if question.availability else 0
        cored = chain.from_iterable(
            families_joined(question, kind, bare._replace(to_core=links, spares=spares))
            for bare in families(question)
            for links in link_counts(bare, self._most_links)
        )
        (first, *_) = question.workload
        joins_of = partial(core_ends, question, workload=first.name)
        for row in _distinct(design_chains(question, kind, cored, joins_of=joins_of)):
            self._note()
            lone = row.family.attachment is None
            for nic in (core_nics(question) if lone else ()) or question.network.nics[:1]:
                joints.append(joint_of(question, kind, row, nic))
                rows.append(row)
        return joints, rows

    @kept()
    def least_value(self, prices: LocalPrices, waits: Waits) -> Fraction | None:
        """What the cheapest network is worth that is in time and fed at a site; None where there is
        none.
        """
        least_value = None
        for value, number in self._by_value(prices):
            if least_value is not None and value >= least_value:
                break  # with the fewest uplinks already, and so are all others
            ups, joint = self._rows[number].uplinks, self._joints[number]
            border = border_at(self._question, joint, prices.ends)
            if joint is not None and border.channel_modules > joint.links:
                continue
            border_usd, border_w = _amounts(border.lines)
            fed_w = prices.fed_w - border_w
            if self._count(number, ups[0])[1] > fed_w or not self._trains(number, ups[-1], waits):
                continue  # the most uplinks are the fastest
            up = ups[bisect_left(ups, True, key=partial(self._trains, number, waits=waits))]
            usd, w = self._count(number, up)
            built = prices.of(usd + border_usd, w + border_w)
            if w <= fed_w and (least_value is None or built < least_value):
                least_value = built
        return least_value

    @kept(lambda self, prices: (prices.usd, prices.w))
    def _by_value(self, prices: LocalPrices) -> list[tuple[Fraction, int]]:
        """The rows by what they are worth with the fewest uplinks, ascending."""
        rows = ((n, row.uplinks[0]) for n, row in enumerate(self._rows) if row.uplinks)
        return sorted((prices.of(*self._count(n, up)), n) for n, up in rows)

    @kept()
    def _count(self, number: int, up: int) -> tuple[Fraction, Fraction]:
        """USD and watts of a design."""
        row = self._rows[number]
        lines = bill(self._question, row.family, row.levels(up), row.optics)
        joint = self._joints[number]
        return _amounts([*lines, *counting(self._question, joint.lines() if joint else [])])

    def _trains(self, number: int, up: int, waits: Waits) -> bool:
        """Whether a design is in time; who is after longer waits is, and who is not after shorter
        ones is not.
        """
        answers = self._answers.setdefault((number, up), [])
        for other_waits, answer in answers:
            shorter, longer = (waits, other_waits) if answer else (other_waits, waits)
            if all(a <= b for a, b in zip(shorter, longer, strict=True)):
                return answer
        row = self._rows[number]
        self._note()
        each = len(self._question.workload)
        answer = all(
            trainer.trains(row.family, row.reach(up), waits[n * each : (n + 1) * each])
            for n, trainer in enumerate(self._trainers)
        )
        answers.append((waits, answer))
        return answer


def _amounts(lines: Sequence[CountedItem]) -> tuple[Fraction, Fraction]:
    """USD and watts of the lines of a bill."""
    usd = exact_sum((line.amount, decimal(line.unit_usd)) for line in lines)
    return usd, exact_sum((line.amount, decimal(line.unit_w)) for line in lines)


def at_best(instance: Instance) -> Instance:
    """The question with all the days that any choice of sites can rely on: those of GPUs and hosts
    without a network.
    """
    failures, gpus = instance.availability, instance.cluster.most_gpus
    if failures is None:
        return instance
    per_year = {part: rate.at(failures.at) for part, rate in failures.rates.of_part.items()}
    of_gpus = gpus * (per_year["gpu"] + per_year["hbm"] + per_year["software"])
    rate = (of_gpus - (-gpus // failures.rates.gpus_per_host) * per_year["host"]) / YEAR_S
    longest = [
        workload.model_copy(
            update={
                "train_days": workload.train_days
                * interrupted_at(failures, workload, gpus, rate).trained
            }
        )
        if workload.train_days
        else workload
        for workload in instance.workload
    ]
    return instance.model_copy(update={"workload": tuple(longest)})


class SitesBound:
    """Find what is the least that one model at several sites can be worth.

    Parameters
    ----------
    ceiling
        In the unit of the objective: what is worth no less is of no interest; infinite where
        nothing is to be feasible.
    margin
        By which share bounds on time are taken short; negative to put rounding in favour of
        networks.
    most
        How many networks are listed or timed before `TooManyError` is raised.

    Attributes
    ----------
    least
        The least that is below the ceiling; None where nothing is.
    tried
        How many rings and ranges of slowest rates were looked into.
    """

    def __init__(
        self,
        instance: Instance,
        kind: ObjectiveKind,
        ceiling: float,
        margin: float = LENIENT,
        most: float = math.inf,
    ) -> None:
        instance = at_best(instance)
        self._instance, self.tried = instance, Counter[str]()
        self.least: Fraction | None = None
        self._most = exact_limit(ceiling)
        numbers = count(1)

        def note() -> None:
            """One more network is listed or timed."""
            if next(numbers) > most:
                raise TooManyError

        self._networks = cache(lambda shares: ShareNetworks(instance, kind, shares, note, margin))
        self._prices = {
            site.name: local_prices(instance, kind, site, margin) for site in instance.site
        }
        for ring in rings(instance):
            self._go_through(ring)

    def _go_through(self, ring: LinkedSites) -> None:
        # the slowest rate, and that without any one channel where its loss is to be survived
        lost = (0, 1) if "channel" in self._instance.losses else (0,)
        rates = [_rates(ring, n) if ring.links else [Fraction(1)] for n in lost]
        self.tried["rings"] += 1
        boxes = [tuple((0, len(choices) - 1) for choices in rates)] if all(rates) else []
        while boxes:
            box = boxes.pop()
            self.tried["ranges of the slowest link's rate"] += 1
            lows, highs = (
                tuple(choices[ends[n]] for choices, ends in zip(rates, box, strict=True))
                for n in (0, 1)
            )
            # waits of the highest rates and channels of the lowest: no rates of the ranges are
            # worth less
            networks = self._divided(ring, self._waits(ring, highs), lows)
            value = None if networks is None else networks + self._channels(ring, lows)
            if value is None or (self._most is not None and value >= self._most):
                continue
            low, high = widest = max(box, key=lambda ends: ends[1] - ends[0])
            if low == high:
                self._most = self.least = value
                continue
            split, at = (low + high) // 2, box.index(widest)
            boxes += [
                (*box[:at], half, *box[at + 1 :]) for half in ((low, split), (split + 1, high))
            ]

    def _waits(self, ring: LinkedSites, rates_gbit_s: Rates) -> Waits:
        late_s = max((link.latency_ms / 1e3 for link in ring.links), default=0.0)
        return tuple(
            wait_for_gradients(workload, len(ring.sites), late_s, float(rate))[1]
            for rate in rates_gbit_s
            for workload in self._instance.workload
        )

    def _channels(self, ring: LinkedSites, rates_gbit_s: Rates) -> Fraction:
        """What the fewest channels are worth that carry such rates on every link."""
        total = Fraction()
        for link in ring.links:
            # both sites of a link pay for half of each channel, and feed half of it
            halves = [
                self._prices[name].of(decimal(link.usd) / 2, decimal(link.w) / 2)
                for name in link.between
            ]
            total += _lit(link, rates_gbit_s) * sum(halves, Fraction())
        return total

    def _fed(self, ring: LinkedSites, site: Site, rates_gbit_s: Rates) -> LocalPrices:
        """What counts at a site that feeds its ends of the fewest channels that carry such
        rates.
        """
        lit = [(link, _lit(link, rates_gbit_s)) for link in ring.links if site.name in link.between]
        ends = tuple((channel_end(self._instance, link), channels) for link, channels in lit)
        w = sum((channels * decimal(link.w) / 2 for link, channels in lit), Fraction())
        prices = self._prices[site.name]
        return prices._replace(fed_w=prices.fed_w - w, ends=ends)

    def _divided(self, ring: LinkedSites, waits: Waits, rates_gbit_s: Rates) -> Fraction | None:
        """What the cheapest networks of all sites are worth that are in time after waits and fed
        beside the channels of such rates, whichever shares each site takes; None where there are
        none.
        """
        shares = self._instance.cluster.shares or 1
        least_values: dict[int, Fraction] = {0: Fraction()}
        for sites_left, site in zip(range(len(ring.sites) - 1, -1, -1), ring.sites, strict=True):
            next_values, prices = dict[int, Fraction](), self._fed(ring, site, rates_gbit_s)
            for shares_taken, value in least_values.items():
                # each site that is left takes a share at least, and the last one all that are left
                shares_left = shares - shares_taken
                for site_shares in range(
                    1 if sites_left else shares_left, shares_left - sites_left + 1
                ):
                    site_value = (
                        self._networks(site_shares).least_value(prices, waits)
                        if site_shares
                        else None
                    )
                    if site_value is not None:
                        total, total_shares = value + site_value, shares_taken + site_shares
                        next_values[total_shares] = min(next_values.get(total_shares, total), total)
            least_values = next_values
        return least_values.get(shares)


def _lit(link: Wan, rates_gbit_s: Rates) -> int:
    """The fewest channels of a link that carry the first rate, and the second one without any one
    of them.
    """
    return max(
        math.ceil(rate / decimal(link.gbit_s)) + lost for lost, rate in enumerate(rates_gbit_s)
    )


def _rates(ring: LinkedSites, lost: int) -> list[Fraction]:
    """Every rate that the slowest link of a ring may have with so many channels lost, ascending
    (Gbit/s).
    """
    channels = [(link.most - lost, decimal(link.gbit_s)) for link in ring.links]
    link_limits: Sequence[Fraction] = [most * gbit_s for most, gbit_s in channels]
    steps = {n * gbit_s for most, gbit_s in channels for n in range(1, most + 1)}
    # the slowest link has a whole number of channels, and no link has more than may be lit
    return sorted(rate for rate in steps if rate <= min(link_limits))


def check_sites_bound(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """Check bound and infeasibility by every ring, slowest rate and division into shares, where
    networks are few.

    Limits of all sites together are not counted, nor are interruptions but those of GPUs and hosts:
    where there are some, what is found below a bound may break them or be late, and refutes
    nothing. It takes longest, and is left out where something else is wrong.
    """
    kind = plan.objective.kind
    # what rings that are listed for a bound need not keep
    misses = that_hold(
        {
            "exceeds a limit on all sites together": instance.limits != Limits(),
            "is late with its interruptions": at_best(instance) != instance,
        }
    )

    def find(bound: float, margin: float) -> Counterexample | None:
        value = SitesBound(instance, kind, bound, margin, MOST_NETWORKS).least
        if value is None or not misses:
            return counterexample(kind, value)
        text = f"a ring of sites at {exact_amount(kind, float(value))} is not ruled out: that it"
        text += f" {alternatives(misses)} rests on {SOLVERS_WORD}"
        return Counterexample(text, float(value), is_open=True)

    if may_check_bound(ledger, plan):
        try:
            check_claims(ledger, plan, find, "ring of sites", f"{ENUMERATED} was enumerated")
        except TooManyError:
            many = "there are too many networks at sites to enumerate, so the claim rests on"
            note_source(ledger, plan, f"{many} {SOLVERS_WORD}")
