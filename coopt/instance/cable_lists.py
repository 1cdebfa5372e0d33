"""A list of cables as the design that stands: rows of [[existing]] that name CSV files of cables
and devices, as `coopt cabling` writes them or NetBox imports and exports them.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import networkx as nx

from coopt.instance.catalog import Book, UnknownNameError, find
from coopt.instance.designs import LEAST_PORTS
from coopt.instance.existing import UNNAMED, entries_of
from coopt.instance.hardware import HbDomain
from coopt.instance.texts import InstanceError, alternatives, both, counted, read_text, refuse

FORMS = (("a_device", "a_port"), ("side_a_device", "side_a_name"), ("device a", "termination a"))
"""Columns of the lower or first end: of `coopt cabling`, of NetBox's imports and of its exports."""
MOST_TIERS = 3


class PortEnd(NamedTuple):
    """An end of a cable, with the product in its port where the list says it."""

    device: str
    port: str
    product: str


class CableRow(NamedTuple):
    """A line of a list, and the ends of its cable."""

    line: int
    ends: tuple[PortEnd, PortEnd]


class CableList:
    """The cables of one network, and what its devices are.

    Parameters
    ----------
    key
        The row of the question that names the list.
    origin
        What refusals begin with.
    rows
        The cables between devices that count.
    models
        The product of each device.
    hb_domains
        The models that are HB domains.
    """

    def __init__(
        self,
        key: str,
        origin: str,
        rows: list[CableRow],
        models: Mapping[str, str],
        hb_domains: Mapping[str, int],
    ) -> None:
        self.origin, self.rows, self.models = origin, rows, models
        servers = sorted(device for device in models if models[device] in hb_domains)
        if not servers:
            found = _told(models.values())
            raise InstanceError(
                f"{origin}: no model of its devices ({found}) is an HB domain, needs cables to"
                f" servers, and {key}.names if the catalog has their model under another name,"
                ' such as { dgx = "hgx-h100-8" }'
            )
        self.graph: nx.Graph[str] = nx.Graph()
        for row in rows:
            low, high = (end.device for end in row.ends)
            links = self.graph.get_edge_data(low, high, {"links": 0})["links"]
            self.graph.add_edge(low, high, links=links + 1)
        uncabled = [server for server in servers if server not in self.graph]
        if uncabled:
            raise InstanceError(
                f"{origin}: {uncabled[0]!r} has no cable to a device that stays ({len(uncabled)} of"
                f" {counted(len(servers), 'HB domain')} without one), needs cables to switches, or"
                " to be left out of the lists"
            )
        need = f'one product ({key}.names.MODEL = "" leaves out all devices of a model)'
        self.hb_domain = self._single(servers, models, "HB domains", need)
        self.size, self.servers = hb_domains[self.hb_domain], servers
        self._check_ports()
        self.tiers: list[list[str]] = list(nx.bfs_layers(self.graph, servers))
        self.tier_of = {device: tier for tier, layer in enumerate(self.tiers) for device in layer}
        self.cables = self._by_tier()

    def _single(
        self,
        devices: Iterable[str],
        of: Mapping[str, str],
        what: str,
        need: str = "one product",
    ) -> str:
        found = sorted({of[device] for device in devices})
        if len(found) > 1:
            raise InstanceError(f"{self.origin}: {what} are {_told(found)}, needs {need}")
        return found[0]

    def _check_ports(self) -> None:
        taken: dict[tuple[str, str], int] = {}
        for row in self.rows:
            for end in row.ends:
                line = taken.setdefault(end[:2], row.line)
                if line != row.line or row.ends[0][:2] == row.ends[1][:2]:
                    has = (
                        f"already has the cable of line {line}"
                        if line != row.line
                        else "has both ends of the cable"
                    )
                    raise InstanceError(
                        f"{self.origin}: line {row.line}: port {end.port!r} of {end.device!r}"
                        f" {has}, needs another port"
                    )

    def _by_tier(self) -> list[list[CableRow]]:
        """The cables below each tier, lower ends first."""
        tiers: defaultdict[int, list[CableRow]] = defaultdict(list)
        for row in self.rows:
            low, high = sorted(row.ends, key=lambda end: self.tier_of.get(end.device, MOST_TIERS))
            at = self.tier_of.get(low.device), self.tier_of.get(high.device)
            if at[0] is None or at[1] is None:
                raise InstanceError(
                    f"{self.origin}: line {row.line}: joins {low.device!r} and {high.device!r},"
                    " which no cables join to an HB domain, needs cables that do"
                )
            if at[1] - at[0] != 1 or at[1] > MOST_TIERS:
                raise InstanceError(
                    f"{self.origin}: line {row.line}: joins {low.device!r} and {high.device!r},"
                    f" needs devices of neighbouring tiers: servers, then tiers 1 to {MOST_TIERS}"
                )
            tiers[at[1]].append(CableRow(row.line, (low, high)))
        return [tiers[tier] for tier in sorted(tiers)]

    def design(self) -> dict[str, Any]:
        """The keys of the design, which count to the switches and cables of the list."""
        ports = self._ports_of_servers()
        per_gpu, networks = ports // self.size, self._networks()
        of_port = [networks[number] for number in range(ports)]
        split = per_gpu > 1 and len({*of_port}) > 1 and len({*of_port[:per_gpu]}) == per_gpu
        planes = per_gpu if split else 1
        rails = len({*of_port[::planes]}) if len(self.cables) > 1 else 1
        leaf_rails = self._leaves_of_server() // planes
        in_turn = planes == 1 and self._by_port(per_gpu, leaf_rails)
        by_rail = not in_turn and self._by_rail()
        fabric = "rail-only" if rails > 1 else "rail-optimized" if by_rail else "clos"
        if len(self.cables) == 1 and leaf_rails > 1:
            fabric = "rail-only"
        levels = range(1, len(self.cables) + 1)
        tiers = [self._tier(level) for level in levels]
        self._check_spread()
        by_rail = in_turn or (fabric != "clos" and len(self.cables) > 1)
        leaf_domains = {"leaf_domains": self._leaf_domains()}
        if len(self.cables) == 1 or (not by_rail and tiers[0]["down"] % (ports // planes)):
            leaf_domains = {}
        return {
            "domains": len(self.servers),
            "gpus_per_domain": self.size,
            "fabric": fabric,
            "nic_ports": per_gpu,
            "planes": planes,
            **({"rails": leaf_rails} if by_rail and leaf_rails != self.size else {}),
            **leaf_domains,
            **({} if self._is_even() else {"bundles": "any"}),
            "tiers": tiers,
            "published": {
                "switches": [len(self.tiers[level]) for level in levels],
                "links": [len(cables) for cables in self.cables],
            },
        }

    def _ports_of_servers(self) -> int:
        """Ports of each server, a whole number for each GPU."""
        counts = Counter(row.ends[0].device for row in self.cables[0])
        least, most = min(counts, key=counts.__getitem__), max(counts, key=counts.__getitem__)
        refuse(
            (
                counts[least] != counts[most],
                f"{self.origin}: {least!r} has {counted(counts[least], 'cable')} and {most!r}"
                f" {counts[most]}, needs the same number for every HB domain",
            ),
            (
                counts[most] % self.size,
                f"{self.origin}: {most!r} has {counted(counts[most], 'cable')}, needs a multiple of"
                f" the {self.size} GPUs of {self.hb_domain!r}",
            ),
        )
        return counts[most]

    def _networks(self) -> list[int]:
        """The network, of those that no switch joins, of each port of a server, in natural
        order of their names.
        """
        network_of = {
            switch: number
            for number, network in enumerate(nx.connected_components(self._among_switches))
            for switch in network
        }
        found = {
            tuple(network_of[leaf] for leaf in leaves) for leaves in self._leaves_of_ports.values()
        }
        if len(found) > 1:
            raise InstanceError(
                f"{self.origin}: the ports of {self.hb_domain!r} lead to different networks in"
                " different servers, needs the same rails in every server"
            )
        return list(found.pop())

    @cached_property
    def _leaves_of_ports(self) -> dict[str, list[str]]:
        """The leaf of each port of a server, in natural order of the names of ports."""
        leaves: defaultdict[str, dict[str, str]] = defaultdict(dict)
        for low, leaf in (row.ends for row in self.cables[0]):
            leaves[low.device][low.port] = leaf.device
        return {
            server: [of_port[port] for port in sorted(of_port, key=_natural)]
            for server, of_port in leaves.items()
        }

    def _by_port(self, per_gpu: int, rails: int) -> bool:
        """Whether the ports of each GPU take turns in the leaves of its server, all on one
        network.
        """
        pairs = (
            {(leaf, number % per_gpu % rails) for number, leaf in enumerate(leaves)}
            for leaves in self._leaves_of_ports.values()
        )
        joined = len(self.cables) > 1 and len({*self._networks()}) == 1
        return joined and 1 < rails <= per_gpu and all(len(found) == rails for found in pairs)

    def _by_rail(self) -> bool:
        """Whether each leaf has the same ports of several servers, and not all of theirs."""
        parts: defaultdict[str, defaultdict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
        for server, leaves in self._leaves_of_ports.items():
            for number, leaf in enumerate(leaves):
                parts[leaf][server].add(number)
        alike = all(len({*map(frozenset, of.values())}) == 1 for of in parts.values())
        return alike and max(map(len, parts.values())) > 1 and self._leaves_of_server() > 1

    @property
    def _among_switches(self) -> nx.Graph[str]:
        """The cables from switch to switch."""
        return self.graph.subgraph(chain.from_iterable(self.tiers[1:]))

    def _leaves_of_server(self) -> int:
        """Leaves that each server is on."""
        return max(len(self.graph[server]) for server in self.servers)

    def _leaf_domains(self) -> int:
        """HB domains of the fullest leaf."""
        domains = Counter(leaf for server in self.servers for leaf in self.graph[server])
        return max(domains.values())

    def _check_spread(self) -> None:
        """Refuse cables that do not go round the switches of the next tier as those of a design.

        Those of a leaf go round all spines of its pod. A spine may reach a part of the cores, but
        its pod goes round all of them, bundle by bundle.
        """
        above = self._among_switches
        tops = {*chain.from_iterable(self.tiers[MOST_TIERS:])}
        for network in nx.connected_components(above):
            cores = sorted(network & tops)
            for pod in nx.connected_components(above.subgraph(network - tops)):
                spines = sorted(switch for switch in pod if self.tier_of[switch] == 2)
                for leaf in sorted(pod.difference(spines)):
                    self._check_round(repr(leaf), self._links(leaf, spines))
                of_pod = Counter[str]()
                largest = 1
                for spine in spines:
                    found = self._links(spine, cores)
                    reached = {core: links for core, links in found.items() if links}
                    self._check_round(repr(spine), reached)
                    of_pod.update(found)
                    largest = max([largest, *reached.values()])
                self._check_round(f"the pod of {min(pod)!r}", of_pod, largest)

    def _links(self, lower: str, uppers: Iterable[str]) -> dict[str, int]:
        """The cables from a switch to each of others."""
        none = {"links": 0}
        return {upper: self.graph.get_edge_data(lower, upper, none)["links"] for upper in uppers}

    def _check_round(self, lower: str, links: Mapping[str, int], bundle: int = 1) -> None:
        """Refuse a number of cables to one switch that is more than a bundle above another."""
        if not links:
            return
        least, most = min(links, key=links.__getitem__), max(links, key=links.__getitem__)
        if links[most] - links[least] > bundle:
            raise InstanceError(
                f"{self.origin}: {lower} has {counted(links[most], 'cable')} to {most!r} and"
                f" {links[least]} to {least!r}, needs an even spread (numbers that differ by"
                f" {bundle} at most)"
            )

    def _is_even(self) -> bool:
        """Whether leaves have as many cables to each spine."""
        leaves = {*self.tiers[1]}
        bundles = {
            links
            for low, high, links in self.graph.edges(data="links")
            if (low in leaves or high in leaves)
            and {self.tier_of[low], self.tier_of[high]} == {1, 2}
        }
        return len(bundles) < 2

    def _tier(self, level: int) -> dict[str, Any]:
        """The ports in use of the switches of a tier, and products as far as they are known."""
        up = Counter(
            row.ends[0].device for row in (self.cables[level] if level < len(self.cables) else ())
        )
        down = Counter(row.ends[1].device for row in self.cables[level - 1])
        switches = self.tiers[level]
        fewest, most = min(switches, key=up.__getitem__), max(switches, key=up.__getitem__)
        if up[fewest] != up[most]:
            raise InstanceError(
                f"{self.origin}: {fewest!r} has {counted(up[fewest], 'cable')} up and {most!r}"
                f" {up[most]},"
                f" needs the same number for every switch of tier {level}"
            )
        products = [{row.ends[side].product for row in self.cables[level - 1]} for side in (1, 0)]
        refuse(
            *(
                (
                    len(found) > 1,
                    f"{self.origin}: modules at the {end} ends of cables below tier {level} are"
                    f" {_told(found)}, needs one product",
                )
                for end, found in zip(("upper", "lower"), products, strict=True)
            )
        )
        optics = zip(("optic", "optic_below"), (found.pop() for found in products), strict=True)
        switch = self._single(switches, self.models, f"switches of tier {level}")
        most_down = max(down.values())
        return {
            "ports": max(most_down + up[most], LEAST_PORTS),
            "down": most_down,
            **({"up": up[most]} if up[most] else {}),
            **({"switch": switch} if switch else {}),
            **{key: optic for key, optic in optics if optic},
        }


def _told(products: Iterable[str]) -> str:
    """Products in words, with those that are not named."""
    return both(repr(name) if name else UNNAMED for name in sorted({*products}))


def _natural(name: str) -> list[tuple[int, str]]:
    """A key that sorts numbers in names by their values, however long they are."""
    parts = re.findall(r"0*(\d+)|(\D+)", name)
    return [(len(digits), digits or text) for digits, text in parts]


def design_of_cables(
    row: Mapping[str, Any],
    network: Mapping[str, Any],
    folder: Path,
    key: str,
    own: Book | None = None,
) -> dict[str, Any]:
    """The keys of the design that the files of a row list.

    Raises
    ------
    InstanceError
        Where a file is no list of cables, or lists what is no network of equal switches.
    """
    names = row.get("names", {})
    if not isinstance(names, Mapping):
        raise InstanceError(f"{key}.names = {names!r}: needs a table from models to catalog names")
    refuse(
        *(
            (not isinstance(name, str), f"{key}.names.{model} = {name!r}: needs a catalog name")
            for model, name in names.items()
        )
    )
    origin = f"{key}.cables = {row['cables']!r}"
    table = _table(folder, row["cables"], f"{key}.cables")
    form = next((form for form in FORMS if {*form} <= {*table[0][1]}), None) if table else None
    if form is None:
        columns = "; or ".join(", ".join(_columns(form)) for form in FORMS)
        raise InstanceError(f"{origin}: lists no cables, needs lines under the columns {columns}")
    rows = [_cable(line, values, form, origin) for line, values in table]
    models = _models(row, table, rows, folder, key)
    for cable in rows:
        for end in cable.ends:
            if end.device not in models:
                raise InstanceError(
                    f"{origin}: line {cable.line}: the model of {end.device!r} is not listed,"
                    f" needs a line in the file of {key}.devices"
                )
    unknown = [model for model, name in names.items() if name and model not in models.values()]
    if unknown:
        raise InstanceError(
            f"{key}.names.{unknown[0]} = {names[unknown[0]]!r}: no device is of model"
            f" {unknown[0]!r}, needs {alternatives(map(repr, sorted({*models.values()})))}"
        )
    known = {device: names.get(model, model) for device, model in models.items()}
    sizes = dict(_hb_domains({*known.values()}, row, network, key, own))
    left_out = {device for device, model in models.items() if names.get(model) == ""}
    kept = [cable for cable in rows if not left_out & {end.device for end in cable.ends}]
    if not kept:
        raise InstanceError(
            f"{origin}: {key}.names leaves out a device at an end of every cable, needs cables"
            " between devices that stay"
        )
    listed = CableList(
        key,
        origin,
        kept,
        {device: known[device] for device in known if device not in left_out},
        sizes,
    )
    return {"id": Path(row["cables"]).stem, "hb_domain": listed.hb_domain, **listed.design()}


def _columns(form: tuple[str, str]) -> list[str]:
    """The columns of a form, of both ends."""
    other = [re.sub(r"(^|_| )a(_|$)", r"\1b\2", column) for column in form]
    return [*form, *other]


def _cable(line: int, values: Mapping[str, str], form: tuple[str, str], origin: str) -> CableRow:
    columns = _columns(form)
    missing = [column for column in columns if not values.get(column)]
    if missing:
        raise InstanceError(
            f"{origin}: line {line}: {missing[0]} is missing, needs a device and a port at both"
            " ends"
        )
    a, a_port, b, b_port = (values[column] for column in columns)
    products = (_named(values.get(f"{side}_product") or "") for side in "ab")
    return CableRow(line, (PortEnd(a, a_port, next(products)), PortEnd(b, b_port, next(products))))


def _named(product: str) -> str:
    """A product; empty where `coopt cabling` wrote that none is named."""
    return "" if product.split(",")[0] == UNNAMED else product


def _table(folder: Path, file: Any, key: str) -> list[tuple[int, dict[str, str]]]:
    """The lines of a CSV file with their numbers; columns are told by names in lower case."""
    if not isinstance(file, str):
        raise InstanceError(f"{key} = {file!r}: needs the name of a CSV file")
    origin, remedy = f"{key} = {file!r}", "a list that `coopt cabling` or NetBox wrote"
    text = read_text(folder / file, "a CSV file", remedy, origin)
    # cells in quotes may hold ends of lines, of which csv knows fewer than str.splitlines
    reader = csv.DictReader(io.StringIO(text, newline=""))
    try:
        columns = reader.fieldnames or ()
        if len(columns) == 1 and ";" in columns[0]:
            raise InstanceError(f"{origin}: has semicolons between columns, needs commas")
        return [
            (reader.line_num, {_plain(name).lower(): _plain(value) for name, value in line.items()})
            for line in reader
        ]
    except csv.Error as error:
        raise InstanceError(f"{origin}: is not a CSV file ({error}), needs one") from None


def _plain(cell: object) -> str:
    """A cell without blanks or the mark at the beginning of a file; empty where there is none."""
    return str(cell or "").strip("\ufeff ")


def _models(
    row: Mapping[str, Any],
    table: list[tuple[int, dict[str, str]]],
    cables: list[CableRow],
    folder: Path,
    key: str,
) -> dict[str, str]:
    """The model of each device: of the list of devices, or as the list of cables has them."""
    if "devices" in row:
        origin = f"{key}.devices = {row['devices']!r}"
        found = [
            (number, line["name"], line.get("device_type") or line.get("type", ""))
            for number, line in _table(folder, row["devices"], f"{key}.devices")
            if line.get("name")
        ]
        if not found:
            raise InstanceError(
                f"{origin}: lists no devices, needs lines under the columns name and type"
            )
    else:
        origin = f"{key}.cables = {row['cables']!r}"
        found = [
            (cable.line, end.device, line[f"{side}_model"])
            for (_, line), cable in zip(table, cables, strict=True)
            for side, end in zip("ab", cable.ends, strict=True)
            if line.get(f"{side}_model")
        ]
    first: dict[str, tuple[int, str]] = {}
    for number, device, model in found:
        line_before, before = first.setdefault(device, (number, model))
        if model != before:
            raise InstanceError(
                f"{origin}: line {number}: {device!r} is of model {model!r}, and of {before!r} on"
                f" line {line_before}, needs one model"
            )
    return {device: _named(model) for device, (_, model) in first.items()}


def _hb_domains(
    models: Iterable[str],
    row: Mapping[str, Any],
    network: Mapping[str, Any],
    key: str,
    own: Book | None,
) -> Iterator[tuple[str, int]]:
    """Which models are HB domains, with their GPUs."""
    entries = entries_of(network, "hb_domains")
    sizes = {}
    for n, entry in enumerate([*entries, row.get("hb_domain")]):
        if not isinstance(entry, Mapping):
            continue
        name = entry.get("name", entry.get("extends"))
        if not isinstance(name, str):
            place = f"network.hb_domains[{n}]" if n < len(entries) else f"{key}.hb_domain"
            given = ".name: is missing," if name is None else f".name = {name!r}:"
            raise InstanceError(
                f"{place}{given} needs the model of the servers in the list of cables"
            )
        size = entry.get("size", _size(entry.get("extends"), own))
        if "size" in entry and not (type(size) in (int, float) and size >= 1 and size % 1 == 0):
            raise InstanceError(
                f"HB domain {name!r}, size = {size!r}: needs a whole number above 0"
            )
        sizes[name] = size if size is None else int(size)
    for model in models:
        size = sizes.get(model, _size(model, own))
        if isinstance(size, int):
            yield model, size


def _size(name: Any, own: Book | None) -> int | None:
    """The GPUs of an HB domain of the catalog; None where it has none of this name."""
    try:
        entry = find("hb_domain", str(name), own)
    except UnknownNameError:
        return None
    assert isinstance(entry, HbDomain)
    return entry.size
