"""Results of nccl-tests, and the shares of link bandwidth that they reach.

The time of a collective is fitted by :math:`t = a + b D` over its sizes D, each weighed by its own
time. Inside an HB domain b is what a byte costs on its links, between domains what it costs on the
NIC of each GPU, through which rings or exchanges of all GPUs of a domain run side by side.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field

from coopt.instance.base import Table
from coopt.instance.catalog import find
from coopt.instance.hardware import Gpu, HbDomain
from coopt.instance.texts import InstanceError
from coopt.validation.published import Measurement, UnusableError, measurement_of
from coopt.validation.runs import device_of
from coopt.validation.splits import SERVER, domain_of

HEAD = re.compile(r"^# *size +count +type", re.MULTILINE)
RANK = re.compile(r"^# +Rank +(\d+) .*? on +(\S+) device +\d+ \[[^\]]*\] (.+?)\s*$", re.MULTILINE)
STARTING = re.compile(r"Collective test starting: (\w+?)_perf")
# size, count, type, operation, root, then time, algbw, busbw and errors out of place
NUMBER = r"(\d{1,15}(?:\.\d{1,9})?)(?!\S)"
ROW = re.compile(rf"(\d{{1,15}}) +\d+ +\w+ +(\w+) +-?\d+ +{NUMBER} +{NUMBER} +{NUMBER} +\S+")
ROUNDED = 0.02  # of bandwidths that are printed with two digits
SURE = 64  # ranks that bandwidths of five digits tell apart
LATENCY_SHARE = 0.5  # of the shortest time, from which a start-up time is told apart
MOVED: dict[str, Callable[[int], float]] = {
    "all_reduce": lambda n: 2 * (n - 1) / n,
    "all_gather": lambda n: (n - 1) / n,
    "reduce_scatter": lambda n: (n - 1) / n,
    "alltoall": lambda n: (n - 1) / n,
    "sendrecv": lambda n: 1.0,
    "broadcast": lambda n: 1.0,
    "reduce": lambda n: 1.0,
}
"""Bus bandwidth over size by time, for n ranks (PERFORMANCE.md of NVIDIA/nccl-tests)."""
RANGES = {"hb": (0.2, 1.0), "hb_reduce": (0.2, 2.0), "rail": (0.2, 1.0), "send": (0.2, 1.0)}


class LinkFit(Table):
    """The share of a link's bandwidth that a test of nccl-tests reached."""

    id: str
    operation: str
    gpu: str
    generation: str
    ranks: int
    domains: int
    bus_gbyte_s: Annotated[float, Field(description="of the largest size (10^9 bytes/s)")]
    link_gbyte_s: Annotated[float, Field(description="of the links that bound it, one way")]
    parameter: Annotated[str, Field(description="name in `efficiency`")]
    before: Annotated[float, Field(description="the catalog's value")]
    after: Annotated[float, Field(description="the value that the test reached")]
    latency_s: Annotated[
        float | None, Field(description="start-up time, where small sizes tell it")
    ] = None
    why: Annotated[str, Field(description="why the value is not offered")] = ""


def is_link_test(text: str) -> bool:
    """Whether a text is the output of nccl-tests."""
    return HEAD.search(text) is not None


def link_fit_of(text: str, name: str, stated: Mapping[str, str]) -> LinkFit:
    """Return what one test says of the links it ran on.

    Parameters
    ----------
    stated
        Columns of a table that the output leaves out: `gpu`, `gpus_per_node`, `nic_gbps_per_gpu`.

    Raises
    ------
    InstanceError
        If the output is damaged, or does not say what was tested where.
    """
    rows, factor, reduces = _rows(text, name)
    operation = _operation(text, name, factor, reduces)
    printed = RANK.findall(text)
    ranks = _ranks(operation, factor, len(printed), name)
    cells = {"id": Path(name).stem, **({"gpu": printed[0][2]} if printed else {}), **stated}
    complaints: list[str] = []
    row = measurement_of(cells, 1, complaints)
    if complaints:
        raise InstanceError(f"{name}: {complaint}" for complaint in complaints)
    try:
        device = device_of(row)
    except UnusableError as error:
        raise InstanceError(f"{name}: {error}, needs --set gpu=NAME") from None
    usual = find("hb_domain", device.hb_domain)
    assert isinstance(usual, HbDomain)
    x = min(ranks, _ranks_inside(row, usual, [host for _, host, _ in printed], ranks))
    if ranks % x:
        raise InstanceError(
            f"{name}: {ranks} ranks in domains of {x}, needs gpus_per_node that divides them"
        )
    gpu = find("gpu", device.gpu)
    assert isinstance(gpu, Gpu)
    start_s, byte_s = _line(rows)
    inside = ranks == x
    hb, nic = device.hb_gbyte_s or usual.gbyte_s, (row.nic_gbps_per_gpu or device.nic_gbit_s) / 8.0
    parameter = _parameter(operation, is_inside=inside)
    link, moved = (hb if inside else nic), _moved(operation, ranks, x)
    share = moved / (byte_s * link * 1e9)
    low, high = RANGES[parameter]
    halves = 2.0 if operation == "all_reduce" else 1.0
    return LinkFit(
        id=row.id,
        operation=operation,
        gpu=gpu.name,
        generation=gpu.generation,
        ranks=ranks,
        domains=ranks // x,
        bus_gbyte_s=max(rows)[0] * factor / max(rows)[1] / 1e9,
        link_gbyte_s=link,
        parameter=parameter,
        before=getattr(gpu.efficiency, parameter) or gpu.efficiency.hb,
        after=share,
        latency_s=start_s / halves if start_s > LATENCY_SHARE * min(t for _, t in rows) else None,
        why=""
        if low <= share <= high
        else f"{share:.3g} of {link:g} GB/s is outside what is physical ({low:g} to {high:g})",
    )


def _rows(text: str, name: str) -> tuple[list[tuple[float, float]], float, bool]:
    """Return sizes (bytes) and times (s), bus over algorithm bandwidth, and whether it reduces."""
    rows: list[tuple[float, float]] = []
    factors: list[float] = []
    operators = set()
    for number, line in enumerate(text.splitlines(), 1):
        match = ROW.search(line)
        if match is None or line.lstrip().startswith("#"):
            continue
        size, us = float(match[1]), float(match[3])
        rate, bus = float(match[4]), float(match[5])
        if not us or not rate:
            continue
        if abs(size / us / 1e3 / rate - 1.0) > ROUNDED and rate > 1.0:
            raise InstanceError(
                f"{name}: line {number}: {match[1]} bytes in {match[3]} us are"
                f" {size / us / 1e3:.2f} GB/s, but algbw = {match[4]}: needs lines as printed"
            )
        rows.append((size, us * 1e-6))
        factors.append(bus / rate)
        operators.add(match[2])
    if not rows:
        raise InstanceError(f"{name}: nccl-tests: no line of a size, needs the whole output")
    factor = factors[rows.index(max(rows))]
    if max(factors) / min(factors) > 1.0 + 2 * ROUNDED and min(size for size, _ in rows) > 2**20:
        raise InstanceError(
            f"{name}: busbw / algbw is {min(factors):.3f} and {max(factors):.3f}: more than one"
            " test, needs a file for each"
        )
    return rows, factor, operators != {"none"}


def _operation(text: str, name: str, factor: float, reduces: bool) -> str:
    """Return the collective: named in the output or the file, else told by its bus bandwidth."""
    if (starting := STARTING.search(text)) is not None and starting[1] in MOVED:
        return starting[1]
    if named := next((operation for operation in MOVED if operation in name), None):
        return named
    if factor > 1.0 + ROUNDED:
        return "all_reduce"
    if reduces and factor < 1.0 - ROUNDED:
        return "reduce_scatter"
    raise InstanceError(
        f"{name}: nccl-tests: the collective is not printed, needs one of {', '.join(MOVED)} in the"
        " name of the file"
    )


def _ranks(operation: str, factor: float, printed: int, name: str) -> int:
    """Return the ranks, from bus bandwidth where it tells them, else as listed."""
    if MOVED[operation](2) == MOVED[operation](4):
        ranks = printed
    else:
        halves = 2.0 if operation == "all_reduce" else 1.0
        ranks = round(1.0 / max(1.0 - factor / halves, 1e-9)) if factor < halves else printed
    differs = printed > 1 and (
        abs(MOVED[operation](printed) - factor) > ROUNDED or (ranks <= SURE and ranks != printed)
    )
    if ranks < 2 or differs:
        raise InstanceError(
            f"{name}: {operation} with busbw / algbw = {factor:.3f}, but {printed} ranks are"
            " listed: needs the whole output of one test"
        )
    return printed if printed > 1 else ranks


def _ranks_inside(row: Measurement, usual: HbDomain, hosts: Sequence[str], ranks: int) -> int:
    """Return the ranks in an HB domain: those of a host, or of a rack that joins hosts."""
    size = domain_of(row, usual, [])
    per_host = max(Counter(hosts).values(), default=0)
    return per_host if len(hosts) == ranks and size <= SERVER else size


def _line(rows: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return start-up time (s) and time of a byte (s) by weighted least squares."""
    sizes, times = np.array(rows).T
    matrix = np.stack([1.0 / times, sizes / times], axis=1)
    (start_s, byte_s), *_ = np.linalg.lstsq(matrix, np.ones(len(rows)), rcond=None)
    if len(rows) < 3 or start_s <= 0.0 or byte_s <= 0.0:
        largest, seconds = max(rows)  # too few sizes for two unknowns
        return 0.0, seconds / largest
    return float(start_s), float(byte_s)


def _parameter(operation: str, *, is_inside: bool) -> str:
    """Return the share that a collective tells."""
    if operation == "sendrecv" and not is_inside:
        return "send"
    if not is_inside:
        return "rail"
    return "hb_reduce" if operation == "all_reduce" else "hb"


def _moved(operation: str, ranks: int, inside: int) -> float:
    """Return the bytes on the busiest link over the size of a collective.

    Rings of several domains pass through the NICs of all their GPUs; an exchange sends what leaves
    the domain through one's own.
    """
    moved = MOVED[operation](ranks)
    if ranks == inside or operation == "sendrecv":
        return moved
    return (ranks - inside) / ranks if operation == "alltoall" else moved / inside
