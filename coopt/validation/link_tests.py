"""Results of nccl-tests as text or JSON, and the shares of link bandwidth that they reach.

The time of a collective is fitted by :math:`t = a + b D` over its sizes D, each weighed by its own
time. Inside an HB domain b is what a byte costs on its links, between domains what it costs on the
NIC of each GPU, through which rings or exchanges of all GPUs of a domain run side by side.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import Field

from coopt.instance.base import Table
from coopt.instance.catalog import find
from coopt.instance.hardware import Gpu, HbDomain
from coopt.instance.texts import InstanceError, alternatives, both, counted
from coopt.validation.published import Measurement, UnusableError, measurement_of
from coopt.validation.runs import device_of
from coopt.validation.splits import SERVER, domain_of

HEAD = re.compile(r"# *size +count +type")
RANK = re.compile(r"# +Rank +(\d+) .*? on +(\S+) device +\d+ \[[^\]]*\] (.+?)\s*$", re.MULTILINE)
STARTING = re.compile(r"Collective test starting: (?:\S*/)?(\w+?)_perf")
WRONG = re.compile(r"Out of bounds values +: +(\d+) FAILED")
# size, count, type, operation, root, then time, algbw, busbw and errors out of place
NUMBER = r"(\d{1,15}(?:\.\d{1,9})?(?:e\+\d\d)?)(?!\S)"
ROW = re.compile(rf"(\d{{1,15}}) +\d+ +\w+ +(\w+) +-?\d+ +{NUMBER} +{NUMBER} +{NUMBER} +\S+")
ROUNDED = 0.02  # of bandwidths that are printed with two digits
MOST_RANKS = 1 << 20
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


class _Result(NamedTuple):
    """A size, out of place where it was run so, and where it is printed."""

    place: str
    size: float
    operator: str
    us: float
    algbw: float
    busbw: float


class _Output(NamedTuple):
    """What nccl-tests says: sizes, hosts and GPUs of the ranks it lists, the tests it started, and
    the values that were wrong.
    """

    results: list[_Result]
    ranks: list[tuple[str, str]]
    started: list[str]
    wrong: int


def is_link_test(text: str) -> bool:
    """Whether a text is the output of nccl-tests."""
    return HEAD.search(text) is not None or _is_json(text)


def _is_json(text: str) -> bool:
    return text.lstrip()[:1] == "{" and '"nccl_version"' in text and "traceEvents" not in text


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
    output = _of_json(text, name) if _is_json(text) else _of_text(text)
    if output.wrong:
        raise InstanceError(
            f"{name}: nccl-tests: {counted(output.wrong, 'value')} out of bounds, needs a test with"
            " correct results"
        )
    rows, factor, reduces = _rows(output, name)
    operation = _operation(output, name, factor, reduces)
    printed = output.ranks
    ranks = _ranks(operation, factor, len(printed), name)
    cells = {"id": Path(name).stem, **({"gpu": printed[0][1]} if printed else {}), **stated}
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
    x = min(ranks, _ranks_inside(row, usual, [host for host, _ in printed], ranks))
    if ranks % x:
        raise InstanceError(
            f"{name}: {ranks} ranks in domains of {x}, needs equally many in each HB domain"
            " (--set hb_domain=N says how many)"
        )
    gpu = find("gpu", device.gpu)
    assert isinstance(gpu, Gpu)
    start_s, byte_s = _line(rows)
    inside = ranks == x
    hb, nic = device.hb_gbyte_s or usual.gbyte_s, (row.nic_gbps_per_gpu or device.nic_gbit_s) / 8.0
    parameter = _parameter(operation, is_inside=inside)
    link, moved = (hb if inside else nic), _moved(operation, ranks, x, gpu.efficiency.hb_own)
    share = moved / (byte_s * link * 1e9)
    low, high = RANGES[parameter]
    halves = 2.0 if operation == "all_reduce" and gpu.efficiency.hb_short == 1.0 else 1.0
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
        else f"{share:.3g} of {link:g} GB/s is outside the plausible range ({low:g} to {high:g})",
    )


def _of_text(text: str) -> _Output:
    results = []
    for number, line in enumerate(text.splitlines(), 1):
        match = None if "#" in line else ROW.search(line)
        if match is not None:
            us, algbw, busbw = map(float, match.group(3, 4, 5))
            results.append(_Result(f"line {number}", float(match[1]), match[2], us, algbw, busbw))
    ranks = [(host, gpu) for _, host, gpu in RANK.findall(text)]
    wrong = WRONG.search(text)
    return _Output(results, ranks, STARTING.findall(text), int(wrong[1]) if wrong else 0)


def _of_json(text: str, name: str) -> _Output:
    """Read what `--output_file` writes (writeBenchmarkLineBody of src/util.cu, version 3)."""
    try:
        table = json.loads(text)
        results = [_of_entry(entry) for entry in table["results"]]
        devices = table["config"]["devices"]
        # a process names the first of its GPUs alone
        each = table["config"]["nthreads"] * table["config"]["ngpus"]
        if not 0 < each * len(devices) <= MOST_RANKS:
            raise ValueError(
                f"nthreads x ngpus x devices = {each * len(devices):.9g}, not 1 to {MOST_RANKS:,}"
            )
        ranks = [
            (str(one["hostname"]), str(one["device_info"])) for one in devices for _ in range(each)
        ]
        started = [word.removesuffix("_perf") for word in (Path(table["args"][0]).name,)]
        wrong = int(table["out_of_bounds"]["count"])
    except KeyError as error:
        fault = f"lacks {error}"
    except (
        ValueError,
        OverflowError,
        RecursionError,
        TypeError,
        IndexError,
        AttributeError,
    ) as error:
        fault = f"cannot be read ({error})"
    else:
        return _Output(results, ranks, started, wrong)
    raise InstanceError(
        f"{name}: the JSON of nccl-tests {fault}, needs a whole file of its version 3"
    )


def _of_entry(entry: Mapping[str, Any]) -> _Result:
    times = entry["out_of_place"] or entry["in_place"]
    clock = "cpu_time" if "cpu_time" in times else "time"
    size, *measured = map(float, (entry["size"], times[clock], times["alg_bw"], times["bus_bw"]))
    operator = entry["redop"]
    if not isinstance(operator, str) or not all(map(math.isfinite, (size, *measured))):
        raise ValueError(f"size {size}: {operator}, {measured}")
    return _Result(f"size {size:.0f}", size, operator, *measured)


def _rows(output: _Output, name: str) -> tuple[list[tuple[float, float]], float, bool]:
    """Return sizes (bytes) and times (s), bus over algorithm bandwidth, and whether it reduces."""
    rows: list[tuple[float, float]] = []
    factors: list[float] = []
    operators = set()
    for place, size, operator, us, rate, bus in output.results:
        if not (us > 0 and rate > 0):
            continue
        if abs(size / us / 1e3 / rate - 1.0) > ROUNDED and rate > 1.0:
            raise InstanceError(
                f"{name}: {place}: {size:.0f} bytes in {us:g} us are"
                f" {size / us / 1e3:.2f} GB/s, but algbw = {rate:g}: needs lines as printed"
            )
        rows.append((size, us * 1e-6))
        factors.append(bus / rate)
        operators.add(operator)
    if not rows:
        raise InstanceError(
            f"{name}: nccl-tests: no result with a time and a rate, needs the whole output"
        )
    factor = factors[rows.index(max(rows))]
    most = min(factors) * (1.0 + 2 * ROUNDED)
    if max(factors) > most and min(size for size, _ in rows) > 2**20:
        raise InstanceError(
            f"{name}: busbw / algbw is from {min(factors):.3f} to {max(factors):.3f}: more than one"
            " test, needs a file for each"
        )
    return rows, factor, operators != {"none"}


def _operation(output: _Output, name: str, factor: float, reduces: bool) -> str:
    """Return the collective: named in the output or the file, else told by its bus bandwidth."""
    if len({*output.started}) > 1:
        raise InstanceError(
            f"{name}: has nccl-tests of {both(sorted({*output.started}))}, needs a file for each"
        )
    if output.started:
        (operation,) = {*output.started}
        if operation not in MOVED:
            raise InstanceError(
                f"{name}: nccl-tests: {operation} does not show what share of a link it reached,"
                f" needs {alternatives(MOVED)}"
            )
        return operation
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
        listed = f"does not agree with {printed:,} listed ranks"
        fault = listed if printed > 1 else "does not show two ranks or more"
        raise InstanceError(
            f"{name}: {operation} with busbw / algbw = {factor:.3f} {fault}: needs the whole output"
            " of a test on several GPUs"
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


def _moved(operation: str, ranks: int, inside: int, own_share: float) -> float:
    """Return the bytes on the busiest link over the size of a collective.

    In one domain a rank of a collective copies a share of its own data as well. Rings of several
    domains pass through the NICs of all their GPUs; an exchange sends what leaves
    the domain through one's own.
    """
    moved = MOVED[operation](ranks)
    if operation == "sendrecv":
        return moved
    if ranks == inside:
        return moved * (1.0 + own_share / (ranks - 1))
    return (ranks - inside) / ranks if operation == "alltoall" else moved / inside
