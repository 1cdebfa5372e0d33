"""A site: its part of the question, its price of electricity, and the power it can feed.

What joins sites is checked too: the ring, its channels, and the gradients that go round it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import pairwise

from coopt.instance.couplings import Site, Wan, part_of
from coopt.instance.schema import Instance, Objective
from coopt.instance.workload import Workload
from coopt.plan.couplings import Exchange, SitePower
from coopt.plan.schema import Plan
from coopt.plan.schema_one import SitePlan, Together
from coopt.verifier.checks.claims import Place
from coopt.verifier.checks.verdict import TOLERANCE, Ledger, agree
from coopt.verifier.parts.bills import decimal, keeps
from coopt.verifier.training.mappings import ScalarMapping
from coopt.verifier.training.placing import held_parameters

FACTS = ("gbit_s", "latency_s", "usd", "w")


def ring_places(instance: Instance, plan: Plan) -> Iterator[Place]:
    """The parts of a plan for one model at several sites: those of its ring."""
    ring = plan.couplings.ring
    return (Place(name, name) for name in (ring.sites if ring is not None else ()))


def question_of_site(instance: Instance, shares: int) -> Instance:
    """The question of one site: its part of the GPUs and batches, the same times, the limits of all sites."""
    all_shares = instance.cluster.shares or 1
    workloads = tuple(part_of(workload, shares, all_shares) for workload in instance.workload)
    gpus = tuple(count * shares // all_shares for count in instance.cluster.gpus)
    cluster = instance.cluster.model_copy(update={"gpus": gpus})
    return instance.model_copy(update={"cluster": cluster, "workload": workloads})


def objective_at(instance: Instance, site: Site) -> Objective:
    """The objective with the site's PUE and price of electricity."""
    terms = {"pue": site.pue, "usd_per_kwh": site.usd_per_kwh}
    return instance.objective.model_copy(update={key: value for key, value in terms.items() if value is not None})


def channels_w(together: Together, site: Site) -> float:
    """Power of the channels that end at a site: half of each."""
    return sum(claim.w / 2 for claim in together.wan if site.name in claim.between)


def check_site_power(
    ledger: Ledger, instance: Instance, together: Together, site: Site, power_w: float, claim: SitePlan
) -> None:
    """Check the facility power of a site whose network and GPUs draw `power_w`."""
    facility_w = (power_w + channels_w(together, site)) * objective_at(instance, site).pue
    _check_facility(ledger, site, facility_w, claim)


def check_fed_sites(
    ledger: Ledger, powers: Sequence[tuple[float | None, Site, float]], claims: Sequence[SitePower]
) -> None:
    """Check what each site feeds in each phase.

    Parameters
    ----------
    powers
        Year of the phase, site, and facility power of everything that stands there then (W).
    """
    expected = tuple(_when(site.name, year) for year, site, _ in powers)
    claimed = tuple(_when(claim.site, claim.phase) for claim in claims)
    asked = ", ".join(expected) or "no site"
    why = f"The plan states the power of {', '.join(claimed) or 'no site'}, the instance asks for that of {asked}."
    if not ledger.same("sites", claimed, expected, why):
        return
    for (year, site, facility_w), claim in zip(powers, claims, strict=True):
        ledger.turn_to(f"Site {_when(site.name, year)}")
        _check_facility(ledger, site, facility_w, claim)
    ledger.turn_to()


def sites_fed(powers: Iterable[tuple[Site, float]], margin: float) -> bool:
    """Whether each site can feed its facility power (W); with a negative `margin` to within the rounding of sums."""
    return all(keeps(facility_w, site.power_mw * 1e6, margin) for site, facility_w in powers)


def feeds_w(site: Site) -> Fraction:
    """The facility power that a site can feed, exactly (W)."""
    return decimal(site.power_mw) * 1_000_000


def power_name(site: Site) -> str:
    """What the power of a site goes by in proofs."""
    return f"power_w of {site.name}"


def _check_facility(ledger: Ledger, site: Site, facility_w: float, claim: SitePlan | SitePower) -> None:
    """Check the facility power of a site against the claim and what it can feed."""
    limit_w = site.power_mw * 1e6
    why = f"It draws {facility_w:,.0f} W with its PUE, the plan says {claim.facility_w:,.0f}."
    ledger.close("site-power", claim.facility_w, facility_w, why)
    why = f"It can feed {limit_w:,.0f} W and draws {facility_w:,.0f}; the plan says {claim.facility_limit_w:,.0f}."
    holds = facility_w <= limit_w * (1 + TOLERANCE) and agree(claim.facility_limit_w, limit_w)
    ledger.holds("site-power-limit", holds, claim.facility_limit_w, limit_w, why, TOLERANCE)


def _when(site: str, year: float | None) -> str:
    return site if year is None else f"{site} in {year:.10g}"


def check_links(ledger: Ledger, instance: Instance, sites: Sequence[Site], together: Together) -> list[Wan] | None:
    """Check links and channels; the links of the instance between neighbours of the ring, None where they differ."""
    ends = [frozenset(pair) for pair in pairwise(site.name for site in sites)]
    if len(sites) > 2:
        ends.append(frozenset((sites[-1].name, sites[0].name)))
    links_by_ends = {frozenset(wan.between): wan for wan in instance.wan}
    given = [frozenset(claim.between) for claim in together.wan]
    why = "The links of the plan are not those between neighbours of its ring, or the instance lacks one."
    claimed, expected = (tuple(sorted(" - ".join(sorted(pair)) for pair in pairs)) for pairs in (given, ends))
    if not ledger.holds("ring", claimed == expected and set(ends) <= set(links_by_ends), claimed, expected, why):
        return None
    links, all_sound = [links_by_ends[pair] for pair in given], True
    for link, claim in zip(links, together.wan, strict=True):
        figures = (link.gbit_s, link.latency_ms / 1e3, claim.channels * link.usd, claim.channels * link.w)
        claimed_figures = (claim.gbit_s, claim.latency_s, claim.usd, claim.w)
        faults = [name for name, a, b in zip(FACTS, claimed_figures, figures, strict=True) if not agree(a, b)]
        faults += [] if 1 <= claim.channels <= link.most else ["channels"]
        why = f"Link {link.name} has 1 to {link.most} channels at its own figures; the plan differs in {faults}."
        all_sound &= ledger.holds("channels", not faults, tuple(faults), (), why, TOLERANCE)
    return links if all_sound else None


def check_exchanges(ledger: Ledger, instance: Instance, together: Together, links: Sequence[Wan]) -> dict[str, float]:
    """Check exchanges; seconds that each workload waits for gradients of other sites: 2(S - 1) steps round the ring."""
    names = tuple(workload.name for workload in instance.workload)
    claimed = tuple(claim.workload for claim in together.exchanges)
    ledger.same("exchange", claimed, names, f"The plan has exchanges of {claimed}, the instance workloads {names}.")
    count, waits_s = len(together.sites), dict[str, float]()
    rate = min((c.channels * link.gbit_s for c, link in zip(together.wan, links, strict=True)), default=1.0)
    late_s = max((link.latency_ms / 1e3 for link in links), default=0.0)
    claims = {claim.workload: claim for claim in together.exchanges}
    for workload in instance.workload:
        sent_bytes, wait_s = wait_for_gradients(workload, count, late_s, rate)
        claim = claims.get(workload.name, Exchange(workload=workload.name, sent_bytes=-1.0, exchange_s=-1.0))
        holds = agree(claim.sent_bytes, sent_bytes) and agree(claim.exchange_s, wait_s)
        why = (
            f"Each site sends {sent_bytes:.6g} bytes of {workload.name!r} in {wait_s:.6g} s, "
            f"the plan says {claim.sent_bytes:.6g} in {claim.exchange_s:.6g}."
        )
        ledger.holds("exchange", holds, claim.exchange_s, wait_s, why, TOLERANCE)
        waits_s[workload.name] = wait_s
    return waits_s


def wait_for_gradients(workload: Workload, sites: int, latency_s: float, gbit_s: float) -> tuple[float, float]:
    """Bytes that each of some sites sends round a ring in an iteration, and seconds that this takes at the slowest
    rate."""
    parameters = held_parameters(workload, ScalarMapping(1, 1, 1, 1, 1, 1, 1, "none", False, 0))
    gradient_bytes = workload.options.software.gradient_bytes * (parameters.common + parameters.experts)
    sent_bytes = 2 * (sites - 1) / sites * gradient_bytes
    return sent_bytes, 2 * (sites - 1) * latency_s + sent_bytes * 8 / (gbit_s * 1e9) if sites > 1 else 0.0
