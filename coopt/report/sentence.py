"""The question in a few rows, and the decision in one sentence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from coopt.instance.couplings import LIMITED, Discount, Site
from coopt.instance.errors import both
from coopt.instance.numerics import EQUAL
from coopt.instance.schema import Instance
from coopt.plan.couplings import Part, Ring
from coopt.plan.parts import DirectLinks
from coopt.plan.schema import Cost, Plan
from coopt.report import words
from coopt.report.couplings import doubt_rows, phase_rows
from coopt.report.notes import kept_free
from coopt.report.parts import training_text, without_gpus

MINIMISED = {
    "capex": "the purchase",
    "power": "the power",
    "tco": "{owned}",
    "time": "the time of training",
    "usd_per_token": "{owned} for each token",
    "carbon": "the carbon of the electricity that training takes",
}
TIMED = {
    "time": "the fastest",
    "usd_per_token": "the least for a token",
    "carbon": "the least carbon",
}


def headline(instance: Instance, plan: Plan) -> str:
    """What to build and what is proven about it, or why there is nothing to build."""
    claim, regret = plan.objective, instance.minimizes_regret
    if plan.status == "infeasible":
        return "No design meets the bounds; proven infeasible."
    searched, decided = f"{plan.timing_s.total:.1f} s of search", decision(instance, plan)
    verbs = ("draws", "draws less") if claim.kind == "power" else ("costs", "is cheaper")
    if decided is None or plan.cost is None:
        bound = None if claim.bound is None else words.amount(claim.kind, claim.bound)
        less = f"has a regret below {bound}" if regret else f"{verbs[0]} less than {bound}"
        proven = "nothing is proven" if bound is None else f"it is proven that no plan {less}"
        return (
            f"Stopped early ({plan.stop_reason}) before any design was found, after {searched};"
            f" {proven}."
        )
    phases = len(plan.couplings.years)
    build = f"{f'Grow in {phases} phases to' if phases > 1 else 'Build'} {decided}"
    value, gap = words.amount(claim.kind, claim.value or 0.0), claim.gap
    prices = " at the worst prices" if plan.at_worst_prices else ""
    if plan.status != "optimal":
        best = f"a regret of {value}" if regret else f"{value}{prices}"
        known = "unknown" if gap is None else words.percent(gap)
        return (
            f"{build}; stopped early ({plan.stop_reason}), best so far: {best}, gap {known},"
            f" {searched}."
        )
    within = f"proven within {words.percent(gap or 0.0)} of the optimum"
    proof = "proven optimal" if gap is None or gap < EQUAL else within
    if regret:
        return f"{build}: whatever prices come, no plan {verbs[1]} by more than {value}; {proof}."
    cost = price(instance, claim.kind, plan.cost, prices)
    timed = _timed(instance, plan, value) if claim.kind in TIMED else ""
    return f"{build}, {cost}{timed}; {proof}."


def _timed(instance: Instance, plan: Plan, value: str) -> str:
    """`, the fastest: 61.4 days for 1.05 trillion tokens`; `, the least for a token: $0.7 per
    million tokens`.
    """
    claim, workload = plan.objective, instance.workload[0]
    if claim.kind == "time":
        value = workload.in_own_units(claim.value or 0.0) or value
    is_undisturbed = instance.availability is None or workload.calendar
    return f", {TIMED[claim.kind]}: {value}{'' if is_undisturbed else ' if nothing fails'}"


def decision(instance: Instance, plan: Plan) -> str | None:
    """What is built, of whatever kind of problem; None without a plan."""
    last = [part for part in plan.parts if part.phase == plan.parts[-1].phase]
    if plan.couplings.ring is not None:
        return _sites_text(last, plan.couplings.ring)
    if instance.sharing.mode == "partition" and last:
        return _islands_text(last)
    if last and last[0].links is not None:
        return _links_text(last[0].links)
    return words.design_text(last[0].design) if last and last[0].design is not None else None


def _sites_text(parts: Sequence[Part], ring: Ring) -> str:
    """`718,848 GPUs at east and 958,464 at west, joined by 69 wide-area channels`."""
    gpus = [(part.design.gpus if part.design else 0, part.site) for part in parts]
    texts = [
        f"{words.count(number)}{' GPUs' if place == 0 else ''} at {site}"
        for place, (number, site) in enumerate(gpus)
    ]
    channels = sum(link.channels for link in ring.wan)
    links = f", joined by {words.counted(channels, 'wide-area channel')}" if channels else ""
    return f"{words.both(texts)}{links}"


def _islands_text(parts: Sequence[Part]) -> str:
    """`8 islands with 130,560 GPUs in all`; where they stand, if there are sites."""
    gpus = words.count(sum(part.design.gpus for part in parts if part.design is not None))
    sites = dict.fromkeys(part.site for part in parts if part.site is not None)
    place = f" at {words.both(sites)}" if sites else ""
    total = f"of {gpus} GPUs" if len(parts) == 1 else f"with {gpus} GPUs in all"
    return f"{words.counted(len(parts), 'island')} {total}{place}"


def _links_text(direct: DirectLinks) -> str:
    """`32 x gb200-nvl72 joined by 656 direct links through patch-panel`."""
    domains = words.times(direct.hb_domain.count, direct.hb_domain.name)
    panel = f" through {direct.panel} ports" if direct.panel else ""
    return f"{domains} joined by {words.counted(direct.links, 'direct link')}{panel}"


def owning(instance: Instance) -> list[str]:
    """What the total cost of ownership holds."""
    terms = instance.objective
    work = {"labour": terms.labour_share, "support": terms.support_share * terms.years}
    return ["purchase", *(name for name, share in work.items() if share), "electricity"]


def price(instance: Instance, kind: str, cost: Cost, prices: str = "") -> str:
    """The objective's value as it stands in a sentence; `prices` says at which, where not at those
    of the instance.
    """
    if kind == "power":
        return f"which draws {words.power(cost.power_w)}"
    gpus = f" {without_gpus(cost)}".rstrip()
    if kind == "tco":
        return f"for {words.money(cost.tco_usd)} in {both(owning(instance))}{prices}{gpus}"
    return f"for {words.money(cost.capex_usd)}{prices}{gpus}"


def question_rows(instance: Instance) -> Iterator[tuple[str, str]]:
    """What is trained and how fast, what may be built, and what is minimised."""
    network, terms = instance.network, instance.objective
    planes, shared = network.nic_planes, network.gpus_per_nic
    nics = [
        words.alternatives(nic.name for nic in network.nics),
        f"{_counts(network.nics_per_gpu)} per GPU",
        f"{_counts(shared)} GPUs to one" if shared != (1,) else "",
        f"{_counts(planes)} planes" if planes != (1,) else "",
    ]
    fabrics = words.alternatives(network.fabrics)
    rows = {
        **{
            f"Train {workload.name}": f"{training_text(workload)}; {words.required_bound(workload)}"
            for workload in instance.workload
        },
        "GPUs": f"{instance.cluster.counts_text} x {instance.cluster.gpu.name}",
        "HB domains": words.alternatives(domain.name for domain in network.hb_domains),
        "Networks": f"{fabrics}, up to {words.counted(network.max_tiers, 'tier')}",
        "Oversubscription": _ratios(instance),
        "NICs": ", ".join(filter(None, nics)),
        "Switches": words.alternatives(switch.name for switch in network.switches),
        "Optics": words.alternatives(optic.name for optic in network.optics),
        "Minimised": MINIMISED[terms.minimize].format(owned=" plus ".join(owning(instance))),
        "Limits": ", ".join(_limit(key, cap) for key, cap in instance.limits.given.items()),
        "Failures": _failures(instance),
        "Kept free": "" if instance.margin is None else kept_free(instance, instance.margin),
        **{f"Site {site.name}": _site(instance, site) for site in instance.site},
        **dict(phase_rows(instance)),
        **_joint_purchases(instance),
        **dict(doubt_rows(instance)),
    }
    yield from ((name, text) for name, text in rows.items() if text)


def _counts(numbers: Iterable[int]) -> str:
    return words.alternatives(map(words.count, numbers))


def _site(instance: Instance, site: Site) -> str:
    """What a site feeds, and at which price of electricity."""
    terms = instance.objective
    pue = terms.pue if site.pue is None else site.pue
    usd_per_kwh = terms.usd_per_kwh if site.usd_per_kwh is None else site.usd_per_kwh
    return f"feeds {site.power_mw:g} MW at a PUE of {pue:g}, ${usd_per_kwh:g} a kWh"


def _failures(instance: Instance) -> str:
    """What interrupts training; empty where nothing counts."""
    terms = instance.availability
    if terms is None:
        return ""
    end = "" if terms.at == "published" else f", the {terms.at} ends of their intervals"
    spares = "as few as it takes" if terms.spare_domains is None else _counts(terms.spares)
    return (
        f"rates of {terms.rates.name}{end}; repairs take {terms.repair_hours:g} h; {spares} spare"
        " domains"
    )


def _joint_purchases(instance: Instance) -> dict[str, str]:
    """What islands buy together: volume prices, products of a kind, a core."""
    sharing, core = instance.sharing, instance.sharing.core
    most = sharing.most_products.given.items()
    return {
        **{f"Volume price of {discount.item}": _steps(discount) for discount in sharing.discount},
        "Most products": ", ".join(f"{kind} {count}" for kind, count in most),
        "Core": f"{core.switch}, {core.gbit_s_per_gpu:g} Gbit/s for each GPU that trains"
        if core
        else "",
    }


def _steps(discount: Discount) -> str:
    off, usd = discount.off or (), discount.usd or ()
    prices = [*(f"{words.percent(share)} off" for share in off), *(f"${each:,g}" for each in usd)]
    steps = (
        f"{price} from {begin:,} on" for begin, price in zip(discount.begins, prices, strict=True)
    )
    return f"{', '.join(steps)} ({discount.applies})"


def _ratios(instance: Instance) -> str:
    ratios = instance.network.ratios
    if ratios is not None:
        return words.alternatives(map(words.ratio, ratios))
    max_ratio = instance.network.largest_ratio
    return "none" if max_ratio <= 1 else f"up to {words.ratio(max_ratio)}"


def _limit(key: str, cap: float) -> str:
    name, unit = LIMITED[key]
    return f"at most {words.money(cap)} of {name}" if unit == "USD" else f"at most {cap:g} {unit}"
