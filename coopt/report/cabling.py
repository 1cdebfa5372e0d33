"""Lists of cables as files: CSV for those who lay them, the forms that NetBox imports, DOT with
ports, and the topology that Slurm reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from coopt.instance.schema import Instance
from coopt.instance.texts import InstanceError, csv_text
from coopt.network.cabling import Cable, CableEnd
from coopt.network.graph_files import dot_string
from coopt.network.plan_cabling import cables_of_plan
from coopt.network.plan_networks import part_network
from coopt.plan.schema import Plan

SITE, MAKER = "cluster", "coopt"
INTERFACES = {
    100.0: "100gbase-x-qsfp28",
    200.0: "200gbase-x-qsfp56",
    400.0: "400gbase-x-osfp",
    800.0: "800gbase-x-osfp",
}
"""What NetBox calls ports of a rate (Gbit/s); others are "other"."""
MEDIA = {"copper": "dac-passive", "AEC": "dac-active", "AOC": "aoc"}
MULTIMODE_M = 150
"""Optics that reach no farther go with multimode fibre."""


def cabling_text(instance: Instance, plan: Plan, form: str, part: str | None = None) -> str:
    """The list of cables of a plan, or of one of its parts, in a form.

    Raises
    ------
    InstanceError
        Where there is no such list.
    """
    if form == "slurm":
        return slurm_topology(instance, plan, part)
    listed = list(cables_of_plan(instance, plan, part))
    if not listed:
        raise InstanceError(
            f"{instance.place}: {_whose(part)} has no cables, needs a network of several HB domains"
        )
    return WRITERS[form](listed)


def _whose(part: str | None) -> str:
    return "the plan" if part is None else f"part {part!r}"


def cables_csv(cables: Sequence[Cable]) -> str:
    """A line for each cable."""
    ends = [f"{side}_{field}" for side in "ab" for field in CableEnd._fields]
    return csv_text(
        ("label", "level", "gbit_s", "kind", "length_m", "reach_m", *ends),
        (
            (*cable[:2], f"{cable.gbit_s:g}", *cable[3:6], *cable.lower, *cable.upper)
            for cable in cables
        ),
    )


def _ends(cables: Iterable[Cable]) -> Iterator[tuple[CableEnd, Cable]]:
    return ((end, cable) for cable in cables for end in (cable.lower, cable.upper))


def netbox_devices(cables: Sequence[Cable]) -> str:
    """Devices for NetBox, a role for each kind."""
    devices = {end.device: (end.model, end.rack) for end, _ in _ends(cables)}
    kinds = {device: device.split(":")[-1].split("/")[0] for device in devices}
    return csv_text(
        ("name", "role", "manufacturer", "device_type", "site", "status", "rack"),
        (
            (device, kinds[device], MAKER, model, SITE, "planned", rack)
            for device, (model, rack) in devices.items()
        ),
    )


def netbox_interfaces(cables: Sequence[Cable]) -> str:
    """The ports in use for NetBox."""
    return csv_text(
        ("device", "name", "type", "speed"),
        (
            (
                end.device,
                end.port,
                INTERFACES.get(cable.gbit_s, "other"),
                round(cable.gbit_s * 1e6),
            )
            for end, cable in _ends(cables)
        ),
    )


def netbox_cables(cables: Sequence[Cable]) -> str:
    """The cables for NetBox."""
    sides = [f"side_{side}_{field}" for side in "ab" for field in ("device", "type", "name")]
    return csv_text(
        (*sides, "type", "status", "label", "length", "length_unit"),
        (
            (
                *(cable.lower.device, "dcim.interface", cable.lower.port),
                *(cable.upper.device, "dcim.interface", cable.upper.port),
                MEDIA.get(cable.kind, "mmf" if cable.reach_m <= MULTIMODE_M else "smf"),
                *("planned", cable.label, cable.length_m),
                None if cable.length_m is None else "m",
            )
            for cable in cables
        ),
    )


def ports_dot(cables: Sequence[Cable]) -> str:
    """The cables as DOT with the port at each end, as cable checkers read it."""
    lines = [
        " -- ".join(
            f"{dot_string(end.device)}:{dot_string(end.port)}" for end in (cable.lower, cable.upper)
        )
        + f" [label={dot_string(cable.label)}];"
        for cable in cables
    ]
    return "\n".join(["graph cabling {", *(f"  {line}" for line in lines), "}", ""])


WRITERS: dict[str, Callable[[Sequence[Cable]], str]] = {
    "csv": cables_csv,
    "netbox-devices": netbox_devices,
    "netbox-interfaces": netbox_interfaces,
    "netbox-cables": netbox_cables,
    "dot": ports_dot,
}


def slurm_topology(instance: Instance, plan: Plan, part: str | None = None) -> str:
    """The tree of a network as Slurm's `topology.yaml`: HB domains are nodes, and those that share
    leaves, and then pods, are below one switch.
    """
    network = part_network(instance, plan, "cabling", part)
    family = network.family
    if not family.tiers:
        raise InstanceError(
            f"{instance.place}: {_whose(part)} has no switches, needs a network of several HB"
            " domains"
        )
    domains, leaf = family.domains, min(max(family.leaf_span, 1), family.domains)
    if family.fabric == "clos" and family.leaf_span == 0:
        leaf = domains  # a domain is on several leaves, which a tree does not tell
    pod = family.pod_span if family.pods and family.pod_span % leaf == 0 else 0
    leaves = [range(start, min(start + leaf, domains)) for start in range(0, domains, leaf)]
    lines = ["---", "- topology: coopt", "  cluster_default: true", "  tree:", "    switches:"]
    lines += [
        f"      - switch: leaf{n}\n        nodes: {_range('hb', of)}" for n, of in enumerate(leaves)
    ]
    above = range(len(leaves))
    name = "leaf"
    if pod and leaf < pod < domains:
        of_pod = pod // leaf
        pods = [above[start : start + of_pod] for start in range(0, len(leaves), of_pod)]
        lines += [
            f"      - switch: pod{n}\n        children: {_range('leaf', of)}"
            for n, of in enumerate(pods)
        ]
        above, name = range(len(pods)), "pod"
    if len(above) > 1:
        lines.append(f"      - switch: top\n        children: {_range(name, above)}")
    return "\n".join([*lines, ""])


def _range(name: str, of: range) -> str:
    return f"{name}{of[0]}" if len(of) == 1 else f"{name}[{of[0]}-{of[-1]}]"
