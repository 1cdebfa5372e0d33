"""Check what joins the sites of a plan: the ring, its channels, and the gradients that go round it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from coopt.instance.schema import Instance
from coopt.instance.sites import Site, Wan
from coopt.plan.sites import Exchange, Together
from coopt.verifier.checks.verdict import TOLERANCE, Ledger, agree
from coopt.verifier.training.mappings import WorkloadSplit
from coopt.verifier.training.shards import held_parameters

FACTS = ("gbit_s", "latency_s", "usd", "w")


def check_links(ledger: Ledger, instance: Instance, sites: Sequence[Site], together: Together) -> list[Wan] | None:
    """The links of the instance between neighbours of the ring, with channels that can be lit."""
    ends = [frozenset(pair) for pair in pairwise(site.name for site in sites)]
    if len(sites) > 2:
        ends.append(frozenset((sites[-1].name, sites[0].name)))
    known = {frozenset(wan.between): wan for wan in instance.wan}
    given = [frozenset(claim.between) for claim in together.wan]
    why = "The links of the plan are not those between neighbours of its ring, or the instance lacks one."
    said, wanted = (tuple(sorted(" - ".join(sorted(pair)) for pair in pairs)) for pairs in (given, ends))
    if not ledger.holds("ring", said == wanted and set(ends) <= set(known), said, wanted, why):
        return None
    links, sound = [known[pair] for pair in given], True
    for link, claim in zip(links, together.wan, strict=True):
        found = (link.gbit_s, link.latency_ms / 1e3, claim.channels * link.usd, claim.channels * link.w)
        said_of = (claim.gbit_s, claim.latency_s, claim.usd, claim.w)
        wrong = [name for name, a, b in zip(FACTS, said_of, found, strict=True) if not agree(a, b)]
        wrong += [] if 1 <= claim.channels <= link.most else ["channels"]
        why = f"Link {link.name} has 1 to {link.most} channels at its own figures; the plan differs in {wrong}."
        sound &= ledger.holds("channels", not wrong, tuple(wrong), (), why, TOLERANCE)
    return links if sound else None


def check_exchanges(ledger: Ledger, instance: Instance, together: Together, links: Sequence[Wan]) -> dict[str, float]:
    """Check exchanges; seconds that each workload waits for gradients of other sites: 2(S - 1) steps round the ring."""
    names = tuple(workload.name for workload in instance.workload)
    told = tuple(claim.workload for claim in together.exchanges)
    ledger.same("exchange", told, names, f"The plan has exchanges of {told}, the instance workloads {names}.")
    count, waits_s = len(together.sites), dict[str, float]()
    rate = min((c.channels * link.gbit_s for c, link in zip(together.wan, links, strict=True)), default=1.0)
    late_s = max((link.latency_ms / 1e3 for link in links), default=0.0)
    said = {claim.workload: claim for claim in together.exchanges}
    alone = WorkloadSplit(1, 1, 1, 1, 1, 1, 1, "none", False, 0)
    for workload in instance.workload:
        held = held_parameters(workload, alone)
        sent = 2 * (count - 1) / count * workload.options.software.gradient_bytes * (held.common + held.experts)
        wait_s = 2 * (count - 1) * late_s + sent * 8 / (rate * 1e9) if count > 1 else 0.0
        claim = said.get(workload.name, Exchange(workload=workload.name, sent_bytes=-1.0, exchange_s=-1.0))
        fine = agree(claim.sent_bytes, sent) and agree(claim.exchange_s, wait_s)
        why = (
            f"Each site sends {sent:.6g} bytes of {workload.name!r} in {wait_s:.6g} s, "
            f"the plan says {claim.sent_bytes:.6g} in {claim.exchange_s:.6g}."
        )
        ledger.holds("exchange", fine, claim.exchange_s, wait_s, why, TOLERANCE)
        waits_s[workload.name] = wait_s
    return waits_s
