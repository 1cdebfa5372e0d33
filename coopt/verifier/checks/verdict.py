"""Write down checks as they are made, and the verdict that they add up to.

Every check has a name, with what it asks, subject by subject.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from coopt.instance.couplings import LIMITED, limit_check
from coopt.instance.texts import frame, html
from coopt.plan.parts import Record
from coopt.plan.schema import ObjectiveClaim

SOLVERS_WORD = "the solver's word"
"""What a bound rests on that was not confirmed, or not in whole: words of the check `bound-source`.
"""

Value = bool | int | float | str | tuple[str, ...] | None


class Check(Record):
    """One claim against its recomputation; `why` says in a sentence what is wrong, and is empty
    when `ok`.

    `tolerance` is relative; None where the two have to be equal. `subject` is what of the plan the
    claim is about, such as a part or a phase, and `part` the name of the part where it is one; both
    are empty where it is the whole.
    """

    name: str
    claimed: Value
    recomputed: Value
    tolerance: float | None
    ok: bool
    why: str
    subject: str = ""
    part: str = ""


class UndecidedRival(Record):
    """The least that a rival below the bound may be worth, where none is found and none is ruled
    out.

    `value` is in the unit of the objective `kind`; `gap` is that of the plan if the rival counts,
    None where there is no plan.
    """

    kind: str
    value: float
    gap: float | None


class Verdict(Record):
    """All checks that were made; `accepted` when every one holds.

    `gap` is that of the plan, which is proven where no rival is `undecided`; `overridden` names the
    objective and the gap that were asked for in place of those of the instance.
    """

    accepted: bool
    checks: tuple[Check, ...]
    gap: float | None = None
    overridden: tuple[str, ...] = ()
    undecided: UndecidedRival | None = None

    def __repr__(self) -> str:
        failed = f", {len(self.failures)} of them fail" if self.failures else ""
        return (
            f"Verdict({'accepted' if self.accepted else 'rejected'}, {len(self.checks)}"
            f" checks{failed})"
        )

    __str__ = __repr__

    def _repr_html_(self) -> str:
        return html(repr(self), [check.why for check in self.failures], [self._rows()])

    def to_frame(self) -> Any:
        """The checks as a data frame (`coopt.instance.texts.frame`)."""
        return frame(self._rows())

    def _rows(self) -> list[dict[str, Any]]:
        """Every check, those that fail first; values of any kind as text."""
        ordered = sorted(self.checks, key=lambda check: check.ok)
        return [
            {
                "check": check.name,
                "claimed": str(check.claimed),
                "recomputed": str(check.recomputed),
                "ok": check.ok,
            }
            for check in ordered
        ]

    @property
    def failures(self) -> tuple[Check, ...]:
        """The checks that do not hold."""
        return tuple(check for check in self.checks if not check.ok)

    @property
    def on_trust(self) -> str:
        """What was accepted on the solver's word: a bound, or that nothing is feasible; empty where
        nothing was.
        """
        # Checks that rest on the solver's word hold, and say so where others say what was
        # recomputed.
        unconfirmed = [check for check in self.checks if SOLVERS_WORD in str(check.recomputed)]
        for check in unconfirmed:
            if check.name == "bound-source":
                return "that nothing is feasible" if isinstance(check.claimed, str) else "the bound"
        inside = any(check.name == "tp-inside-source" for check in unconfirmed)
        return "that nothing is feasible with TP groups inside HB domains" if inside else ""


TOLERANCE = 1e-9
"""Relative difference that two evaluations of the same formula may have in floating point."""

ROUNDING = 2.0**-48
"""Relative difference that two sums of the same amounts, none below 0, may have when they are added
in another order.

Values are told apart beyond it: a bound is compared with what other designs are worth to the last
digits of a float.
"""

STRICT, LENIENT = TOLERANCE, -TOLERANCE
"""By which share bounds of time and memory are taken short when rivals of a plan are looked for.

A rival that keeps every bound by more than rounding refutes a plan. One that keeps them only when
rounding is in its favour refutes nothing: it is undecided, and named. What a plan claims of itself
has rounding in its favour.
"""


def agree(claim: float, recomputed: float, tolerance: float = TOLERANCE) -> bool:
    """Whether two numbers agree up to rounding."""
    return abs(claim - recomputed) <= tolerance * max(abs(claim), abs(recomputed))


def is_below(value: float, bound: float) -> bool:
    """Whether a sum is less than a bound by more than its rounding."""
    return value < (bound - ROUNDING * abs(bound) if math.isfinite(bound) else bound)


def check_value(value: Value) -> Value:
    """The value as a check can carry it: an infinite number turns into a word."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


class UnsoundError(Exception):
    """A check has failed that those to come build on; the ledger tells which."""


class Ledger:
    """The checks made so far, in order; `turn_to` says what those to come are about."""

    def __init__(self) -> None:
        self.checks: list[Check] = []
        self.overridden: list[str] = []
        self.undecided: list[float] = []
        self.turn_to()

    def turn_to(self, subject: str = "", *, part: str = "", aside: bool = False) -> None:
        """Say what the checks to come are about: a subject that leads their reasons, and which part
        of the plan it is; those of what the plan stands beside, or of what it becomes, are `aside`.
        """
        self.subject, self.part, self.aside = (
            subject or (f"Part {part!r}" if part else ""),
            part,
            aside,
        )

    def holds(
        self,
        name: str,
        ok: bool,
        claim: Value,
        recomputed: Value,
        fault: str,
        tolerance: float | None = None,
    ) -> bool:
        """Note a check; `fault` is kept where it fails. Returns `ok`."""
        assert name in NAMES, name
        self.checks.append(
            Check(
                name=name,
                claimed=check_value(claim),
                recomputed=check_value(recomputed),
                tolerance=tolerance,
                ok=ok,
                why="" if ok else f"{self.subject}: {fault}" if self.subject else fault,
                subject=self.subject,
                part=self.part,
            )
        )
        return ok

    def require(self, name: str, ok: bool, claim: Value, recomputed: Value, fault: str) -> None:
        """Note a check without which those to come mean nothing."""
        if not self.holds(name, ok, claim, recomputed, fault):
            raise UnsoundError(name)

    def among(self, name: str, claim: Value, allowed: Iterable[object], fault: str) -> bool:
        """Note that a value has to be one of some."""
        choices = tuple(allowed)
        return self.holds(name, claim in choices, claim, tuple(map(str, choices)), fault)

    def same(self, name: str, claim: Value, recomputed: Value, fault: str) -> bool:
        """Note that two values have to be equal."""
        return self.holds(name, claim == recomputed, claim, recomputed, fault)

    def close(self, name: str, claim: float, recomputed: float, fault: str) -> bool:
        """Note that two numbers have to agree up to rounding."""
        return self.holds(name, agree(claim, recomputed), claim, recomputed, fault, TOLERANCE)

    def take(self, checks: Iterable[Check]) -> None:
        """Note checks that were made apart."""
        for check in checks:
            self.holds(
                check.name, check.ok, check.claimed, check.recomputed, check.why, check.tolerance
            )

    def say_once(self, since: int) -> None:
        """Leave out checks since a number of them that repeat each other, as those of bounds on
        several choices do.
        """
        self.checks[since:] = dict.fromkeys(self.checks[since:])

    def note_rival(self, value: float, bound: float | None) -> None:
        """Note what an undecided rival may be worth, as a share of the bound where there is one:
        questions that a plan chose among have bounds of their own.
        """
        if bound is None or bound > 0:
            self.undecided.append(value if bound is None else value / bound)

    def verdict(self, claim: ObjectiveClaim | None = None) -> Verdict:
        """The answer on a plan that claims that of its objective."""
        return Verdict(
            accepted=all(check.ok for check in self.checks),
            checks=tuple(self.checks),
            gap=None if claim is None else claim.gap,
            overridden=tuple(self.overridden),
            undecided=None if claim is None else self._undecided_rival(claim),
        )

    def _undecided_rival(self, claim: ObjectiveClaim) -> UndecidedRival | None:
        """The cheapest of the undecided rivals that are below the bound of a claim."""
        # Rivals are shares of the bounds of their own questions, and count as such shares of the
        # bound claimed.
        least_share, bound, value = min(self.undecided, default=math.inf), claim.bound, claim.value
        if bound is None or math.isinf(least_share):
            return (
                None
                if math.isinf(least_share)
                else UndecidedRival(kind=claim.kind, value=least_share, gap=None)
            )
        rival = least_share * bound
        gap = None if value is None else (value - rival) / value
        return (
            UndecidedRival(kind=claim.kind, value=rival, gap=gap)
            if is_below(rival, bound)
            else None
        )


CHECKS: tuple[tuple[str, str], ...] = (
    ("numbers", "every number of the plan is of a size one can count with"),
    ("instance", "the plan answers this instance: same name, same sha256"),
    (
        "replaced",
        (
            "the values that the plan says were set in the instance change nothing when they are"
            " set in it once more"
        ),
    ),
    (
        "chosen",
        (
            "GPU and batches are a choice that the instance leaves open; bounds hold for every"
            " other choice too"
        ),
    ),
    (
        "tp-open",
        (
            "TP groups may extend over HB domains where the instance leaves that open alone, and"
            " where nothing is feasible"
        ),
    ),
    ("status", "the status agrees with what the plan holds and with its gap"),
    (
        "objective-kind",
        "the objective is that of the instance, or the plan says that another one was asked for",
    ),
    (
        "gap-target",
        "the gap aimed at is that of the instance, or the plan says that another one was asked for",
    ),
    ("objective", "the objective value is the cost of its kind"),
    (
        "timed-objective",
        "the time, the price of a token or the carbon is that of one workload on one network",
    ),
    ("gap", "the gap is (value - bound) / value"),
    ("parts", "the plan has the parts of its question, each with its name, site and phase"),
    ("coupled", "sites, phases, cores and losses of the couplings are those of the parts"),
    ("part-networks", "each part has a design, or direct links where these are allowed"),
    ("part-power", "the power of each part is that of its bill, and of its phase"),
    (
        "repeated",
        (
            "design, workloads and cost at the top are those of the only part; of several parts"
            " none is there"
        ),
    ),
    ("gpus", "the number of training GPUs is one the instance allows"),
    (
        "hb-domain",
        "the HB domain is listed, has the size listed and an allowed number of active GPUs",
    ),
    ("domain-count", "the domains hold exactly the training GPUs"),
    ("spares", "the spare GPUs are the idle ones of all domains, those that stand by among them"),
    (
        "spare-domains",
        "as many domains stand by as the instance allows, none where it has no word on failures",
    ),
    ("racks", "the racks are those of all domains, rounded up"),
    ("fabric", "the fabric is one the instance allows"),
    ("nic", "the NIC is listed"),
    ("nics-per-gpu", "the NICs of a GPU are a number the instance allows"),
    (
        "gpus-per-nic",
        "the GPUs that share a NIC are a number the instance allows, and whole in a domain",
    ),
    ("nic-planes", "the planes that the ports of a NIC lead to are a number the instance allows"),
    (
        "switch",
        (
            "the switch is listed and its ports, in one of its modes, have the rate of those of"
            " the NIC"
        ),
    ),
    (
        "tier-products",
        "tiers of other products are allowed, and the switches of each mate with those below",
    ),
    ("planes", "the fabric has as many planes as its kind and the ports of a NIC ask for"),
    ("tiers", "the tiers are the fewest that reach all end points, and no more than allowed"),
    ("levels", "the plan describes each tier once, from the leaves up"),
    ("leaf-ports", "the ports of a leaf towards NICs are one of the fillings of docs/network.md"),
    (
        "uplinks",
        "the uplinks of a leaf respect the radix, the oversubscription allowed and even bundles",
    ),
    ("pod-ports", "the ports of an aggregation switch are one of the splits of docs/network.md"),
    ("oversubscription", "the oversubscription is that of the ports in use"),
    ("end-to-end", "the oversubscription of leaf and pod together is within its bound, if any"),
    ("routing", "the discipline or factor of routing is that of the instance, and 1 on one tier"),
    (
        "optics",
        (
            "the ends of every level fit, meet and reach, and no others that carry as many links"
            " are cheaper; any that do where optics are a choice or do not count"
        ),
    ),
    ("tier-switches", "the switches of each level, counted on the graph"),
    ("tier-ports", "the ports in use of each level, counted on the graph"),
    ("tier-links", "the links of each level, counted on the graph"),
    ("switch-count", "all switches, counted on the graph"),
    (
        "transceiver-count",
        (
            "all transceivers, at both ends of the links of the graph; a module that breaks out is"
            " the end of several"
        ),
    ),
    ("radix", "no switch of the graph has more links than ports"),
    ("cages", "where cages are kept, no switch takes more modules than it has cages"),
    (
        "bundles",
        (
            "where bundles are even, every spine has equally many links to each leaf of its plane"
            " on the graph, and every core to each aggregation switch of its group"
        ),
    ),
    ("attached", "every NIC has its one link to a leaf of the graph"),
    ("connected", "every pair of GPUs that has to communicate is connected on the graph"),
    (
        "locality",
        "groups charged for less than the whole network stay inside a leaf or a pod of the graph",
    ),
    (
        "link-loads",
        (
            "what each kind of traffic loads the busiest link with, all flows routed over the"
            " graph; up to 1,024 nodes, where bundles of links are even"
        ),
    ),
    ("route-paths", "every route that is given is a path of the network; where flows are pinned"),
    (
        "route-flows",
        "every flow that workloads send between domains has a route, and no other flow has any",
    ),
    (
        "route-loads",
        (
            "no link carries more whole flows than the traffic is charged for, or the plan says of"
            " the routes found"
        ),
    ),
    ("bill-lines", "the bill lists what the design needs, at the prices and watts of the instance"),
    (
        "bill-products",
        (
            "every line of the bill is its count times its unit, and its words are what it has"
            " units of"
        ),
    ),
    ("capex", "the capital cost is the sum of the bill"),
    ("power", "the power is the sum of the bill"),
    ("tco", "the total cost adds the electricity of all years"),
    *((limit_check(key), f"the limit on {name} holds") for key, (name, _) in LIMITED.items()),
    ("workloads", "the plan runs the workloads of the instance, in order"),
    ("workload-gpus", "the workload runs on all GPUs that train"),
    ("mapping", "the mapping divides evenly and is one the instance allows"),
    ("placement", "each part of the mapping is split over inside and across, and fills the domain"),
    (
        "knobs",
        (
            "the plan names partial synchronisation, gradients hidden or late, transports other"
            " than RDMA, and stragglers"
        ),
    ),
    (
        "collectives",
        (
            "the plan names the algorithm of each kind of traffic that is fastest, where there is a"
            " choice"
        ),
    ),
    ("iteration-time", "the iteration time, by the scalar model"),
    ("breakdown", "each part of the iteration time, by the scalar model"),
    (
        "uptime",
        (
            "failures, checkpoints, restarts and the share of the time that trains, by numbers of"
            " their own"
        ),
    ),
    (
        "promise",
        (
            "of runs drawn event by event as many keep their days as promised, where a probability"
            " is asked for"
        ),
    ),
    (
        "bound-time",
        "the time bound is the one the instance asks for, less what interruptions take of days",
    ),
    ("deadline", "the iteration time is within the bound"),
    (
        "routes",
        (
            "the slowdowns of the routes that a plan says were found are no less than those of any"
            " paths, where flows are pinned to paths"
        ),
    ),
    ("routes-deadline", "the iteration time with these routes is within the bound"),
    ("memory", "the memory of the fullest GPU, by the scalar model"),
    ("memory-capacity", "the memory limit is the capacity of the GPU"),
    ("memory-fits", "the memory is within the capacity"),
    ("mfu", "model FLOPs utilisation, by the scalar model"),
    ("hfu", "hardware FLOPs utilisation, by the scalar model"),
    ("mfu-causal", "model FLOPs utilisation with causal attention, by the scalar model"),
    ("tokens", "tokens trained each second"),
    ("bound", "no feasible design costs less than the bound: all of them were gone through"),
    ("infeasible", "no design is feasible: all of them were gone through"),
    ("tp-inside", "where a plan says so, nothing is feasible with TP groups inside HB domains"),
    ("robust-terms", "aim and efficiency are those of the instance"),
    (
        "losses",
        (
            "what a lost part takes from a domain, how much longer its traffic takes, and by how"
            " much bounds are longer"
        ),
    ),
    (
        "survives",
        (
            "after the loss of any one NIC, leaf or plane some mapping of every workload meets its"
            " longer bound"
        ),
    ),
    ("restarted", "the plan says how every workload runs without a domain"),
    (
        "place-left",
        "a workload that runs without a domain fits on the others, with no more GPUs than before",
    ),
    ("list-value", "the objective at list prices"),
    (
        "turns",
        (
            "what the plan and the best one cost, however prices turn out: all designs were gone"
            " through"
        ),
    ),
    ("sites", "the plan builds at sites of the instance, each once"),
    ("shares", "the sites take all shares of GPUs and batch, at least one each"),
    ("ring", "the links are those between neighbours of the ring of sites"),
    ("channels", "the channels of a link can be lit, at its rate, latency, price and power"),
    ("exchange", "bytes and seconds of the gradients that sites exchange"),
    ("site-power", "the facility power of a site: IT power and half of its channels, times PUE"),
    ("site-power-limit", "the facility power is within what the site can feed"),
    (
        "island-size",
        (
            "an island has GPUs, no more than there are, and a size listed for its workload where"
            " some are"
        ),
    ),
    ("limit-gpus", "the GPUs that train on all islands are within those there are"),
    ("most-products", "all islands together use no more products of a kind than allowed"),
    ("core", "a plan has a core where the instance asks for one, of the switch it names"),
    ("core-rate", "the NIC of an island that joins a core has the rate of its ports"),
    (
        "core-links",
        (
            "an island has the links into the core that its GPUs need, by its modules, as many from"
            " each leaf"
        ),
    ),
    (
        "core-switches",
        "the core has the ports for every link, in whole modules, and no switch more",
    ),
    (
        "core-optic",
        (
            "links into the core have the optic named or one a level may have, at islands one that"
            " meets it"
        ),
    ),
    ("core-power", "the power of the core is that of its switches"),
    (
        "bound-source",
        (
            "what bounds of partitions, sites, direct links rest on: a search, lengths, or the"
            " solver's word"
        ),
    ),
    (
        "tp-inside-source",
        "what it rests on that nothing is feasible with TP groups inside HB domains",
    ),
    ("panel", "links are patched through the cheapest listed panel"),
    ("crossing", "stages that hold the same parameters are in one domain or in neighbours"),
    ("grid", "the grid of domains is that of the mapping"),
    ("links", "bundles join two domains each, once, and add up to the links"),
    (
        "links-bound",
        (
            "the links said to be needed are no more than are built, nor fewer than what domains"
            " send takes"
        ),
    ),
    (
        "link-lengths",
        "lengths of links that prove a bound are those of a grid of domains that some mapping has",
    ),
    ("link-ports", "no domain has more links than ports"),
    ("link-phases", "the plan routes every kind of traffic that crosses domains"),
    ("link-routes", "routes run over links that are there and carry all that is sent"),
    ("link-pace", "a phase is as fast as its busiest link"),
    ("rivals", "the plan is the cheaper of direct links and switches"),
    (
        "rivals-bound",
        "the bound is the lower of those of direct links and of switches, where either is there",
    ),
    (
        "rival-bound",
        "no feasible cluster with switches costs less than their bound, nor than that of the plan",
    ),
    (
        "rival-none",
        (
            "no cluster with switches is feasible where the plan says so: all of them were gone"
            " through"
        ),
    ),
    ("rival-value", "some feasible cluster with switches costs exactly what the plan says"),
    (
        "cliff",
        "what little money or time buys can be built, and is as fast as the plan says",
    ),
    (
        "better-number",
        "a number near one that was typed saves as much time as the plan says",
    ),
    ("assumption", "training takes as long as the plan says where an assumption does not hold"),
    (
        "next-best",
        "the next best choice can be built in time, and turns at the price that the plan says",
    ),
    (
        "runner-up-place",
        "runners-up stand beside an optimal plan, with a word on why there are no more",
    ),
    ("runner-up-proof", "every runner-up has a gap within the one aimed at"),
    (
        "runner-up-distinct",
        "the runners-up differ from the plan and from each other in what is built",
    ),
    (
        "runner-up-bound",
        "no feasible design that is not listed before a runner-up costs less than its bound",
    ),
    (
        "runner-up-none-left",
        "where no other design is said to be left, every feasible design is listed",
    ),
    ("phases", "the plan has the phases of the instance, each with its year"),
    (
        "growth",
        (
            "one network of docs/phased.md stands in every phase as the plan says, and uplinks"
            " never fall"
        ),
    ),
    (
        "bought-lines",
        (
            "what a phase buys is listed at its prices, with labour for links added to switches"
            " that stood"
        ),
    ),
    ("in-place", "what stands in a phase was bought in it or before"),
    ("stored", "what is bought and does not stand is in store; in the end nothing is left"),
    ("phase-capex", "what a phase spends is the sum of its lines"),
    ("phase-power", "the power of a phase is that of everything that stands"),
    ("phase-energy", "electricity of a phase until the next one, at its price"),
    (
        "phase-work",
        "labour for what a phase buys, and support until the next one of what stands in it",
    ),
    ("phase-years", "a phase lasts until the next one, the last as long as the objective says"),
    ("phased-bill", "the bill of the plan lists what all phases buy, each line with its year"),
    ("myopic", "a plan of phases says what planning phase by phase ends in"),
    ("myopic-step", "each of its steps adds the least that serves its phase, on what stands"),
    ("myopic-end", "it ends with the last phase, or where nothing that stands can serve the next"),
    ("myopic-value", "its value is that of its steps, its saving the difference to the plan"),
    (
        "place",
        (
            "an island stands at one site of the instance, where there are sites, in every phase"
            " since its first"
        ),
    ),
    ("part-losses", "a fleet tells of the losses of every part on which a workload trains"),
    (
        "cheapest-orders",
        (
            "all phases together buy what stands at the least cost, volume prices of each phase"
            " included"
        ),
    ),
)

NAMES: frozenset[str] = frozenset(name for name, _ in CHECKS)
