"""What drawings of networks show, in words."""

from __future__ import annotations

from coopt.network.family import Family, levels
from coopt.network.plane_wires import rails_of
from coopt.report import words

FABRICS = {
    "rail-only": "GPUs of one local rank, one from each HB domain, make a rail. Every rail has a network of its own "
    "and no switch joins two rails: what goes to another rank crosses its HB domain first.",
    "rail-optimized": "GPUs of one local rank, one from each HB domain, make a rail. A leaf serves one rail, or "
    "several whole ones, and the switches above join all leaves, so that any GPU reaches any other.",
    "clos": "A leaf serves whole HB domains with all their NICs as far as it has ports, and the switches above join "
    "all leaves, so that any GPU reaches any other.",
}
ABOVE = {1: ("switch",), 2: ("leaf", "spine"), 3: ("leaf", "aggregation switch", "core")}
PLURALS = {"leaf": "leaves"}


def plane_caption(family: Family, uplinks: int) -> str:
    """The HB domains and the switches of one plane, level by level."""
    tiers = levels(family, uplinks)
    start = f"one of {words.count(family.planes)} equal planes" if family.planes > 1 else "the only plane"
    level = "Rail" if family.fabric == "rail-only" else "Plane"
    nics = words.counted(rails_of(family) // family.planes, "NIC")
    counts = [max(1, level.switches // family.planes) for level in tiers]
    *most, last = (_several(n, name) for n, name in zip(counts, ABOVE[family.tiers], strict=True))
    named = ", ".join([f"{words.counted(family.domains, 'HB domain')} of {nics} each", *most])
    text = f"{level} level: {start}, with {named} and {last}."
    if family.tiers == 1 and family.chassis < family.planes:
        shared = family.switch.radix // family.down
        text += f" Up to {shared} planes share one switch, each on ports of its own."
    if family.tiers > 1:
        text += f" A leaf has {tiers[0].down_ports} ports down and {uplinks} up."
    if family.tiers == 3 and uplinks > 1:
        text += f" Above the leaves, one of {uplinks} equal slices is drawn."
    return text


def domain_caption(family: Family) -> str:
    """One HB domain with its GPUs and the NICs of each."""
    size = words.counted(family.hb.size, "GPU")
    idle = f", {family.hb.size - family.active} of them idle" if family.hb.size > family.active else ""
    each = words.counted(family.nics_per_gpu, "NIC")
    return (
        f"HB domain level: the first of {words.counted(family.domains, 'HB domain')}. Its {size}{idle} reach each "
        f"other at {family.hb.gbyte_s:g} GB/s; each has {each} of {family.nic.gbit_s:g} Gbit/s. A colour is a rail."
    )


def pod_caption(family: Family, uplinks: int) -> str:
    """One pod of three tiers."""
    assert family.pods is not None
    return (
        f"Pod level: the first of {words.counted(family.pods.count, 'pod')} of a plane, {family.pods.l} leaves and "
        f"{words.counted(uplinks, 'aggregation switch')} in all slices; every leaf has a link to each of these."
    )


def _several(number: int, name: str) -> str:
    return f"{words.count(number)} {PLURALS[name]}" if name in PLURALS and number != 1 else words.counted(number, name)
