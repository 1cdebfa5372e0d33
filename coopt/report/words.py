"""Numbers as a planner reads them, and what is told by a few of them in cells of tables."""

from __future__ import annotations

import math

from coopt.instance.errors import alternatives as alternatives
from coopt.instance.errors import both as both
from coopt.instance.errors import counted as counted
from coopt.instance.numerics import EQUAL
from coopt.instance.workload import LONGEST_S, Workload
from coopt.plan.parts import DirectLinks, WorkloadPlan
from coopt.plan.schema import Design

NO_BOUND = "none"
SCALES = ((1e9, "B"), (1e6, "M"), (1e3, "k"))
BYTES = ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "bytes"))
HOURS = ((3600.0, "h"), (60.0, "min"))
WATTS = ((1e6, "MW"), (1e3, "kW"))


def count(number: int) -> str:
    """`32,768`."""
    return f"{number:,}"


def kind(name: str) -> str:
    """`hb/GPU`, `switch`: the kind of an item of the bill, and what HB domains are counted by."""
    return "hb/GPU" if name == "hb" else name


def times(number: int, name: str) -> str:
    """`4,096 x hgx-h100-8`: how many of a product."""
    return f"{count(number)} x {name}"


def money(usd: float) -> str:
    """`$94.3 M`: three digits, for sentences."""
    value, unit = _scaled(abs(usd), SCALES)
    sign = "-" if usd < 0 else ""
    return f"{sign}${value} {unit}".rstrip()


def power(w: float) -> str:
    """`2.31 MW`: three digits, for sentences."""
    value, unit = _scaled(abs(w), WATTS)
    sign = "-" if w < 0 else ""
    return f"{sign}{value} {unit or 'W'}"


def amount(kind: str, value: float) -> str:
    """A value of the objective `kind` with its unit, for sentences."""
    if kind == "time":
        return f"{seconds(value)} an iteration"
    if kind == "usd_per_token":
        return f"${digits(1e6 * value, 4)} per million tokens"
    if kind == "carbon":
        return f"{digits(value / 1000, 4)} t of CO2"
    return power(value) if kind == "power" else money(value)


def ratio(oversubscription: float) -> str:
    """`2:1`, `1.67:1`."""
    return f"{oversubscription:.3g}:1"


def with_unit(value: float, unit: str) -> str:
    """A value with its unit, for tables: dollars and watts in full, everything else with four
    digits.
    """
    if unit.lower() in ("usd", "$"):
        return f"${exact(value)}" if value >= 0 else f"-${exact(-value)}"
    number = exact(value) if unit in ("W", "GPUs", "racks") else digits(value, 4)
    return f"{number} {unit}".rstrip()


def byte_scale(size_bytes: float) -> tuple[float, str]:
    """Bytes of the largest unit that goes into a number of bytes, and its name."""
    return next(pair for pair in BYTES if size_bytes >= pair[0] or pair[0] == 1.0)


def exact(number: float) -> str:
    """`94,306,304`, or `6.90` and `37.975` where it is not whole: for bills."""
    if number == round(number):
        return f"{number:,.0f}"
    # Two decimals at least, as money has, and more only where they are not zeros.
    integer, decimals = f"{number:,.4f}".split(".")
    return f"{integer}.{decimals[:2]}{decimals[2:].rstrip('0')}"


def seconds(s: float) -> str:
    """`11.82 s`: four digits, never fewer than the whole seconds."""
    return f"{digits(s, 4)} s"


def time(s: float) -> str:
    """`5.68 min`: three digits, in hours or minutes where these are two or more."""
    scale, unit = next(((scale, unit) for scale, unit in HOURS if s >= 2 * scale), (1.0, "s"))
    return f"{digits(s / scale, 3)} {unit}"


def bound(bound_s: float) -> str:
    """`12.00 s`, or `none` where any time will do."""
    return seconds(bound_s) if bound_s < LONGEST_S else NO_BOUND


def allowed(time_s: float, bound_s: float) -> str:
    """`11.82 s of at most 12.00 s`, or the time alone where any will do."""
    return (
        f"{seconds(time_s)} of at most {seconds(bound_s)}"
        if bound_s < LONGEST_S
        else seconds(time_s)
    )


def free(slack: float, bound_s: float) -> str:
    """How far a time stays within its bound: `1.5%`, or `-` where it has none."""
    return percent(slack) if bound_s < LONGEST_S else "-"


def digits(number: float, significant: int) -> str:
    """A number in plain notation with that many significant digits."""
    if number == 0 or not math.isfinite(number):
        return f"{number:.0f}"
    # In plain notation so small a number would be mostly zeros.
    if abs(number) < 1e-6:
        return f"{number:.{significant - 1}e}"
    # Rounded first: 9.9996 with four digits is 10.00, which has one digit more before the point.
    magnitude = math.floor(math.log10(float(f"{abs(number):.{significant - 1}e}")))
    return f"{number:,.{max(0, significant - 1 - magnitude)}f}"


def percent(share: float) -> str:
    """`38.3%`; a share below 0.1% keeps two digits, so that a small gap does not read as none."""
    value = 100 * share
    # What is rounding only reads as none, and so never as a gap of 1e-14.
    if abs(share) < EQUAL or abs(value) >= 0.1:
        return f"{value if abs(share) >= EQUAL else 0:.1f}%"
    return f"{digits(value, 2)}%"


def sentence(text: str) -> str:
    """A text with a capital at its beginning, unless it begins with a key of the instance, and a
    full stop.
    """
    first_word, _, _ = text.partition(" ")
    key = first_word.endswith(":") or any(sign in first_word for sign in "._[")
    begun = text if key else f"{text[:1].upper()}{text[1:]}"
    return begun if begun.endswith(".") else f"{begun}."


def yes_no(flag: bool) -> str:
    """A truth value in words."""
    return "yes" if flag else "no"


def domains_built(network: Design | DirectLinks) -> str:
    """`8 x hgx-h100-8 + 1 spare`: the HB domains of a network, and those that stand by."""
    spares = network.spare_domains if isinstance(network, Design) else 0
    spares_text = f" + {counted(spares, 'spare')}" if spares else ""
    return f"{times(network.hb_domain.count, network.hb_domain.name)}{spares_text}"


def design_text(design: Design) -> str:
    """`4,096 x hgx-h100-8 joined by a 2-tier rail-only network`."""
    domains = times(design.hb_domain.count, design.hb_domain.name)
    fabric = design.fabric
    if fabric.tiers == 0:
        return f"{domains} without a network"
    blocking = "" if fabric.oversubscription <= 1 else f" at {ratio(fabric.oversubscription)}"
    return f"{domains} joined by a {fabric.tiers}-tier {fabric.kind} network{blocking}"


def required_bound(workload: Workload) -> str:
    """`at most 4.000 s an iteration (61.4 days for 1 trillion tokens)`."""
    if not workload.bounded:
        return "no bound on its time"
    limit = f"at most {seconds(workload.required_s)} an iteration"
    rate = workload.in_own_units(workload.required_s)
    return f"{limit} ({rate})" if rate else limit


def days_of(run: WorkloadPlan, workload: Workload) -> str:
    """`65.01 of 65.5`: the days of training with interruptions, and those it may take; `-` without
    such a bound.
    """
    if workload.train_days is None:
        return "-"
    days = workload.iterations * run.promised_s / 86400
    return f"{days:.4g} of {workload.train_days:.4g}"


def _scaled(number: float, scales: tuple[tuple[float, str], ...]) -> tuple[str, str]:
    """Three digits and a unit; what rounds up to 1,000 takes the next unit."""
    rounded = float(f"{number:.2e}")
    for scale, unit in scales:
        if rounded >= scale:
            return digits(rounded / scale, 3), unit
    return digits(rounded, 3), ""
