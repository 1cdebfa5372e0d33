"""A plan, or a list of cables, as the design that stands: rows of [[existing]] that name a file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from coopt.instance.catalog import Book, UnknownNameError, find
from coopt.instance.designs import LEAST_PORTS
from coopt.instance.existing import entries_of
from coopt.instance.hardware import Nic
from coopt.instance.texts import InstanceError, both, read_text, refuse

KEYS = ("plan", "part")
LISTS = ("cables", "devices", "names")


def with_plans(
    table: Mapping[str, Any], folder: Path, own: Book | None = None
) -> Mapping[str, Any]:
    """The raw table of a question with the designs of the plans and lists of cables that
    [[existing]] names; keys that stand beside the name of a file take precedence.

    Parameters
    ----------
    folder
        Folder that file names are relative to.
    own
        User entries, which take precedence over the catalog.

    Raises
    ------
    InstanceError
        Where a file holds no plan, or one of networks that no design describes.
    """
    rows = table.get("existing", ())
    rows = [rows] if isinstance(rows, Mapping) else rows
    if not isinstance(rows, list | tuple) or not any(
        isinstance(row, Mapping) and _is_file(row) for row in rows
    ):
        return table
    return {
        **table,
        "existing": [
            _row_of_file(row, table.get("network", {}), folder, f"existing[{n}]", own)
            if isinstance(row, Mapping) and _is_file(row)
            else row
            for n, row in enumerate(rows)
        ],
    }


def _is_file(row: Mapping[str, Any]) -> bool:
    return "plan" in row or any(name in row for name in LISTS)


def _row_of_file(
    row: Mapping[str, Any], network: Any, folder: Path, key: str, own: Book | None
) -> dict[str, Any]:
    lists = [name for name in LISTS if name in row]
    refuse(
        (
            "plan" in row and lists,
            f"{key}: has {both(['plan', *lists])}, needs either plan or the keys of a list of"
            " cables",
        ),
        (
            lists and "cables" not in row,
            f"{key}.cables: is missing beside {both(lists)}, needs the name of a CSV file",
        ),
    )
    if "plan" in row:
        return _row(row, network, folder, key, own)
    listed = network if isinstance(network, Mapping) else {}
    from coopt.instance.cable_lists import design_of_cables  # graphs take long to load

    design = design_of_cables(row, listed, folder, key, own)
    nics = entries_of(listed, "nics")
    nic = row.get("nic", nics[0] if len(nics) == 1 else None)
    if nic is None:
        raise InstanceError(f"{key}.nic: is missing, needs the NIC of a GPU (it sets the rate)")
    design["nic"] = nic
    products = [("hb_domain", "hb_domains", design)]
    for tier in design["tiers"]:
        several = row.get("nics_per_gpu")
        rate = _rate(nic, key, key, own) * (several if type(several) is int else 1)
        tier["gbit_s"] = rate / design["nic_ports"]
        products += [("switch", "switches", tier), ("optic", "optics", tier)]
        products += [("optic_below", "optics", tier)]
    for name, kind, holder in products:
        if name in holder:
            holder[name] = _listed(listed, kind, holder[name])
    beside = {name: value for name, value in row.items() if name not in LISTS}
    return {**design, **beside}


def _row(
    row: Mapping[str, Any], network: Any, folder: Path, key: str, own: Book | None
) -> dict[str, Any]:
    file, part = row["plan"], row.get("part")
    if not isinstance(file, str):
        raise InstanceError(f"{key}.plan = {file!r}: needs the name of a file")
    origin = f"{key}.plan = {file!r}"
    remedy = "a plan that `coopt solve INSTANCE -o FILE` wrote"
    text = read_text(folder / file, "a plan", remedy, origin)
    try:
        design = _design(json.loads(text), part, origin, key)
        listed = network if isinstance(network, Mapping) else {}
        found = _as_row(design, row, listed, origin, key, own)
    except (KeyError, TypeError, ValueError, ZeroDivisionError, RecursionError) as error:
        if isinstance(error, InstanceError):
            raise
        raise InstanceError(f"{origin}: holds no plan, needs one that coopt wrote") from None
    beside = {name: value for name, value in row.items() if name not in KEYS}
    return {"id": Path(file).stem, **found, **beside}


def _design(plan: Any, part: Any, origin: str, key: str) -> dict[str, Any]:
    """The design of a plan, or of one of its parts."""
    parts = {one["name"]: one.get("design") for one in plan["parts"]}
    names = ", ".join(map(repr, parts))
    refuse(
        (not parts, f"{origin}: the plan has no network, needs a plan that has one"),
        (
            part is not None and part not in [*parts],  # which may be a list
            f"{key}.part = {part!r}: {origin} has no such part, needs one of {names}",
        ),
        (
            part is None and len(parts) != 1,
            f"{origin}: the plan has {len(parts)} parts, needs {key}.part with one of {names}",
        ),
    )
    design = next(iter(parts.values())) if part is None else parts[part]
    refuse(
        (
            not design or not design["fabric"]["tier"],
            f"{origin}: the {'part' if part else 'plan'} has no switched network, needs one that"
            " has",
        )
    )
    return dict(design)


def _as_row(
    design: dict[str, Any],
    row: Mapping[str, Any],
    listed: Mapping[str, Any],
    origin: str,
    key: str,
    own: Book | None,
) -> dict[str, Any]:
    """The keys of a design, with the products that the question lists by their names."""
    fabric, hb = design["fabric"], design["hb_domain"]
    nic = row.get("nic", _listed(listed, "nics", fabric["nic"]["name"]))
    planes, per_gpu = fabric["nic"]["planes"], fabric["nic"]["per_gpu"]
    in_plane = fabric["nic"].get("ports_in_plane", 1)
    refuse(
        (
            fabric["nic"]["shared_by"] > 1,
            f"{origin}: GPUs share NICs, which [[existing]] cannot describe, needs a plan in which"
            " they do not",
        ),
        (
            any(len(tier.get("cables", ())) > 1 for tier in fabric["tier"]),
            f"{origin}: a tier has several kinds of cables, which [[existing]] cannot describe,"
            " needs a plan solved with network.cables = 'tier'",
        ),
    )
    rate = _rate(nic, origin, key, own) / planes / in_plane
    return {
        "hb_domain": _listed(listed, "hb_domains", hb["name"]),
        "domains": hb["count"],
        "gpus_per_domain": hb["size"],
        "nic": nic,
        "nics_per_gpu": per_gpu,
        "nic_ports": per_gpu * planes * in_plane,
        "planes": planes,
        "fabric": fabric["kind"],
        **_in_pods(design, _fill(design, origin), origin),
        "tiers": [
            {
                **ports,
                "gbit_s": rate,
                "switch": _listed(listed, "switches", tier["switch"] or fabric["switch"]["name"]),
                "optic": _listed(listed, "optics", tier["optic"]),
                "optic_below": _listed(listed, "optics", tier["optic_below"] or tier["optic"]),
            }
            for tier, ports in zip(fabric["tier"], _ports(design), strict=True)
        ],
        "published": {"switches": [tier["switches"] for tier in fabric["tier"]]},
    }


def _listed(listed: Mapping[str, Any], key: str, name: str) -> Any:
    """A product as the question lists it, its name where that is in the catalog."""
    named = (entry for entry in entries_of(listed, key) if isinstance(entry, Mapping))
    return next((entry for entry in named if entry.get("name") == name), name)


def _rate(nic: Any, origin: str, key: str, own: Book | None) -> float:
    if isinstance(nic, Mapping) and "gbit_s" in nic:
        rate = nic["gbit_s"]
        if type(rate) not in (int, float) or not rate > 0:
            raise InstanceError(f"{origin}: the NIC's gbit_s = {rate!r}: needs a number above 0")
        return float(rate)
    name = nic.get("extends") if isinstance(nic, Mapping) else nic
    if name is None:
        raise InstanceError(f"{origin}: the NIC's gbit_s is missing, needs a number above 0")
    try:
        found = find("nic", str(name), own)
    except UnknownNameError:
        raise InstanceError(
            f"{origin}: the catalog has no NIC {name!r}, needs {key}.nic with its table"
        ) from None
    assert isinstance(found, Nic)
    return found.gbit_s


def _fill(design: dict[str, Any], origin: str) -> dict[str, Any]:
    """How leaves are filled."""
    fabric, hb = design["fabric"], design["hb_domain"]
    down, domains = fabric["tier"][0]["down_ports"], hb["count"]
    ends = hb["size"] * fabric["nic"]["per_gpu"] * fabric["nic"].get("ports_in_plane", 1)
    bundles = {} if _is_even(design) else {"bundles": "any"}
    of_nics = {"rails": ends} if ends > hb["size"] else {}  # a leaf for each port of a GPU
    if fabric["tiers"] == 1:
        return bundles | (of_nics if fabric["kind"] == "rail-only" else {})
    if span := fabric.get("leaf_domains", 0):
        turns, of_ports = {"rails": ends * span // down, "leaf_domains": span}, ends > hb["size"]
        return {**bundles, **turns, **({"fabric": "clos"} if of_ports else {})}
    if fabric["kind"] == "clos":
        return {**bundles, **({} if down % ends else {"leaf_domains": down // ends})}
    if down < domains or fabric["kind"] == "rail-only":
        return {**bundles, **of_nics, "leaf_domains": down}
    rails, rest = divmod(ends, down // domains)
    if rest or (hb["size"] % rails and rails != ends):
        raise InstanceError(
            f"{origin}: a leaf has {down // domains} of the {ends} ports of an HB domain, which"
            " [[existing]] cannot describe, needs a plan whose leaves divide them evenly"
        )
    return {**bundles, "rails": rails, "leaf_domains": domains}


def _in_pods(design: dict[str, Any], fill: dict[str, Any], origin: str) -> dict[str, Any]:
    """How leaves are filled, and where each has parallel links to the spines of its pod the domains
    of a pod, which has fewer leaves then than a spine has ports down.
    """
    fabric, hb = design["fabric"], design["hb_domain"]
    if fabric["pod_bundle"] == 1:
        return fill
    leaves, domains = fabric["tier"][1]["down_ports"] // fabric["pod_bundle"], hb["count"]
    if fabric["kind"] == "clos":
        ends = hb["size"] * fabric["nic"]["per_gpu"] * fabric["nic"].get("ports_in_plane", 1)
        unit, rest = divmod(leaves * fabric["tier"][0]["down_ports"], ends)
    else:
        unit, rest = leaves * fill["leaf_domains"], 0
    if rest or not unit or domains % unit:
        raise InstanceError(
            f"{origin}: leaves have {fabric['pod_bundle']} links to each spine of their pods, which"
            f" [[existing]] can describe only where all pods have equally many of the {domains:,}"
            " HB domains, and these whole, needs such a plan, or one made with"
            " network.pod_bundles = 1"
        )
    return {**fill, "unit_domains": unit, "pod": "unit"}


def _is_even(design: dict[str, Any]) -> bool:
    """Whether spines divide the uplinks of a leaf."""
    fabric = design["fabric"]
    if fabric["tiers"] != 2:
        return True
    spines = fabric["tier"][1]["switches"] // fabric["planes"]
    uplinks: int = fabric["tier"][0]["uplinks_per_switch"]
    return uplinks % int(spines) == 0


def _ports(design: dict[str, Any]) -> Iterator[dict[str, int]]:
    """Ports in use of the switches of each tier."""
    fabric = design["fabric"]
    tiers: Sequence[dict[str, Any]] = fabric["tier"]
    if len(tiers) == 1:
        rails = fabric["planes"] // fabric["nic"]["planes"]
        together = -(-rails * fabric["nic"]["planes"] // tiers[0]["switches"])
        ports = tiers[0]["down_ports"] * together
        yield {"ports": max(ports, LEAST_PORTS), "down": ports}
        return
    for tier in tiers:
        down, up = tier["down_ports"], tier["uplinks_per_switch"]
        yield {"ports": max(down + up, LEAST_PORTS), "down": down, **({"up": up} if up else {})}
