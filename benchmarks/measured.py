"""Compare the laws of kernels and collectives with tables that NVIDIA measured, and rewrite
`benchmarks/measured.csv`.

The tables are those of aiconfigurator-core (PyPI), which this installs into a temporary folder.
They are short runs, so that shares of peaks and of bandwidth are fitted here by kind and precision,
to H100, and to B200 and GB200 together; other GPUs are not in a fit. `--folder` names a folder with
the package in place of installing it.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from rows import commit, csv_text

from coopt.instance.catalog import find
from coopt.instance.hardware import Gpu, Precision
from coopt.instance.texts import write_text
from coopt.instance.transformer import Software
from coopt.perf.collectives import NO_NETWORK, LinkRates, gather
from coopt.perf.exchanges import Visits, all_to_all, started_exchange
from coopt.perf.kernels import BITS, BLOCK, Blocks, Device, fused_attention
from coopt.perf.mapping import Floats
from coopt.validation.fitting import minimise

HERE = Path(__file__).parent
PACKAGE = "aiconfigurator-core==0.12.0"
DATA = Path("aiconfigurator_core") / "systems" / "data"
FOLDERS = {
    "a100-80g": "a100_sxm",
    "h100-sxm": "h100_sxm",
    "h200": "h200_sxm",
    "b200": "b200_sxm",
    "gb200": "gb200",
    "b300": "b300_sxm",
    "gb300": "gb300",
}
FITTED = (("h100-sxm",), ("b200", "gb200"))
UNSEEN = {"a100-80g": 0, "h200": 0, "b300": 1, "gb300": 1}  # by which fit each is predicted
LIBRARIES = ("trtllm/1.3.0rc20", "sglang/0.5.14", "vllm/0.24.0")
EARLIER = {"a100-80g": ("trtllm/1.0.0", "sglang/0.5.10", "vllm/0.14.0")}
LEFT_OUT = """\
products below 1,024 rows, attention below 1,024 tokens: decoding, which no training has
attention in heads of 192 and 512: no fused kernel on Blackwell, 4 to 20 times as long as in 256
attention in windows of 128: whole blocks of keys, of kernels made for long windows
fp8_block of vLLM 0.24.0: the host is timed
experts that are not balanced, that TP splits, or of fewer than 512 rows each
experts of SGLang and vLLM: with EP they multiply what other ranks hold as well
16 experts of which a token visits one: 4 times as long as any others
experts of `min_latency` in 4 bits: results are not summed; B300 and GB300 have none
exchanges of fewer than 1,024 tokens: decoding; of trtllm and vLLM: multiprocessors are not stated
"""
SAMPLE = 4000  # rows of a table, drawn evenly, that are compared
LONG_S = 1e-4  # from where on starts, which are also those of a host, hardly count
LONG_COPY = 0.9  # share of the bandwidth that long copies reach (docs/model.md, Kernels)


@dataclass(frozen=True)
class Kind:
    """A kind of table: its rows of a GPU with columns by name and seconds, the law, the shares that
    are fitted with the value and step each starts from and its maximum, and how often it is tried.
    """

    name: str
    rows: Callable[[Path, str], Mapping[str, Any]]
    law: Callable[[Gpu, Mapping[str, Any], Mapping[str, float]], Floats]
    shares: Mapping[str, tuple[float, float, float]]
    evaluations: int = 200


def main() -> None:
    """Rewrite the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="holds the package already")
    parser.add_argument("--only", default="", help="kinds whose name holds this; writes nothing")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = arguments.folder or _installed(Path(folder))
        kinds = [kind for kind in KINDS if arguments.only in kind.name]
        lines = [line for kind in kinds for line in _lines(kind, place / DATA)]
    text = csv_text(lines)
    sys.stdout.write(text)
    if not arguments.only:
        write_text(HERE / "measured.csv", text)


def _installed(folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target"]
    subprocess.run([*command, str(folder), PACKAGE], check=True)
    return folder


def _lines(kind: Kind, data: Path) -> Iterator[dict[str, object]]:
    """Fit the shares of a kind, and compare every GPU."""
    tables = {name: kind.rows(data / folder, name) for name, folder in FOLDERS.items()}
    tables = {name: table for name, table in tables.items() if len(table["seconds"])}
    for number, names in enumerate(FITTED):
        seen = [name for name in names if name in tables]
        if not seen:
            continue
        shares = _fitted(kind, {name: tables[name] for name in seen})
        unseen = [name for name, fit in UNSEEN.items() if fit == number and name in tables]
        for name in (*seen, *unseen):
            errors = _errors(kind, name, tables[name], shares)
            long = tables[name]["seconds"] >= LONG_S
            yield {
                "kind": kind.name,
                "gpu": name,
                "fitted": int(name in seen),
                "rows": len(errors),
                "mean_abs_log": f"{np.abs(errors).mean():.3f}",
                "mean_from_100us": f"{np.abs(errors[long]).mean():.3f}",
                "median_ratio": f"{np.exp(np.median(errors)):.3f}",
                "shares": " ".join(f"{key}={value:.3g}" for key, value in shares.items()),
                "source": f"{PACKAGE}: {FOLDERS[name]}/{tables[name]['source']}",
                "commit": commit(),
            }


def _errors(kind: Kind, name: str, table: Mapping[str, Any], shares: Mapping[str, float]) -> Floats:
    """log(predicted/measured) of each row."""
    gpu = find("gpu", name)
    assert isinstance(gpu, Gpu)
    return np.log(kind.law(gpu, table, shares) / table["seconds"])


def _fitted(kind: Kind, tables: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """Return the shares with the least mean size of the error."""
    start, step, highest = (np.array(column) for column in zip(*kind.shares.values(), strict=True))

    def size(point: Floats) -> float:
        shares = dict(zip(kind.shares, point, strict=True))
        means = [np.abs(_errors(kind, *table, shares)).mean() for table in tables.items()]
        return float(np.mean(means))

    best = minimise(size, start, step, 0.1 * start, highest, kind.evaluations)
    return dict(zip(kind.shares, map(float, best), strict=True))


def _fastest(
    folder: Path, versions: Sequence[str], table: str, keys: Sequence[str], where: pl.Expr
) -> dict[str, Any]:
    """Return a sample of the shapes in the tables of some libraries, each with the time of its
    fastest kernel.
    """
    kind, file = table.split("/")
    places = [f"{kind}/{version}/{file}.parquet" for version in versions]
    places = [place for place in places if (folder / place).exists()]
    tables = pl.concat(
        [pl.read_parquet(folder / place) for place in places], how="diagonal_relaxed"
    )
    windows = [pl.col("window_size")] if "window_size" in tables.columns else []
    tables = tables.with_columns(window_size=pl.coalesce(*windows, 0))  # some have no such column
    shapes = tables.filter(where & (pl.col("latency") > 0)).group_by(keys)
    timed = shapes.agg(pl.col("latency").min()).sort(keys)
    timed = timed.gather_every(max(1, timed.height // SAMPLE))
    columns = {key: timed[key].to_numpy().astype(float) for key in keys}
    return {**columns, "seconds": timed["latency"].to_numpy() * 1e-3, "source": " ".join(places)}


def _versions(name: str) -> tuple[str, ...]:
    return EARLIER.get(name, LIBRARIES)


def _device(gpu: Gpu, precision: Precision, shares: Mapping[str, float]) -> Device:
    """Return the GPU with other shares in all precisions."""
    changed = gpu.efficiency.model_copy(update={"fp8": None, "fp4": None, **shares})
    return Device(gpu.model_copy(update={"efficiency": changed}), precision, Software(name="plain"))


HEADS = (64, 128, 256)
TYPES: dict[Precision, str] = {"bf16": "bfloat16", "fp8": "fp8", "fp4": "nvfp4"}
SHARES = {"gemm": (0.7, 0.1, 0.99), "hbm": (0.6, 0.1, 0.99), "kernel_s": (5e-6, 2e-6, 1e-4)}


def _products(precision: Precision) -> Kind:
    """Matrix products of 1,024 rows and more."""

    def rows(folder: Path, name: str) -> Mapping[str, Any]:
        where = (pl.col("gemm_dtype") == TYPES[precision]) & (pl.col("m") >= 1024)
        return _fastest(folder, _versions(name), "gemm/gemm_perf", ("m", "n", "k"), where)

    def law(gpu: Gpu, table: Mapping[str, Any], shares: Mapping[str, float]) -> Floats:
        device, (m, n, k) = _device(gpu, precision, shares), (table[key] for key in "mnk")
        return device.product_s(m, n, k) + device.quantised_s(m * k)

    return Kind(f"products, {BITS[precision]} bits", rows, law, SHARES)


def _grouped(precision: Precision) -> Kind:
    """Experts of a GPU in one kernel, 512 rows each and more: up, nonlinearity, down.

    What is timed quantises all tokens, spreads them to their experts and sums the results
    (TensorRT-LLM, `moe_kernels.cu`).
    """
    keys = ("num_tokens", "hidden_size", "inter_size", "topk", "num_experts", "moe_ep_size")

    def rows(folder: Path, name: str) -> Mapping[str, Any]:
        rows_each = pl.col("num_tokens") * pl.col("topk") / pl.col("num_experts")
        where = (pl.col("moe_dtype") == TYPES[precision]) & (pl.col("distribution") == "balanced")
        where &= (pl.col("moe_tp_size") == 1) & (rows_each >= 512) & (pl.col("topk") > 1)
        where &= ~pl.col("kernel_source").str.contains("nongated|min_latency")
        return _fastest(folder, _versions(name)[:1], "moe/moe_perf", keys, where)

    def law(gpu: Gpu, table: Mapping[str, Any], shares: Mapping[str, float]) -> Floats:
        device = _device(gpu, precision, shares)
        tokens, hidden, width, top, experts, ep = (table[key] for key in keys)
        rows, batch = tokens * top / experts, experts / ep
        visits, wide = batch * rows, BITS[precision] / 8
        up = device.product_s(rows, 2 * width, hidden, batch)
        down = device.product_s(rows, hidden, width, batch)
        moved = device.pointwise_s(6 * visits * width)
        copied = device.stream_s((2 * wide * visits + 2 * visits + 2 * tokens) * hidden)
        quantised = device.quantised_s(tokens * hidden + visits * width)
        return up + down + moved + copied + quantised

    return Kind(f"grouped products, {BITS[precision]} bits", rows, law, SHARES)


def _attention() -> Kind:
    """Causal attention forward in 16 bits, of whole sequences.

    All three libraries copy keys and values to a cache in what is timed (the package's
    `collector/*/collect_attn.py`).
    """
    keys = ("batch_size", "isl", "num_heads", "num_key_value_heads", "head_dim")

    def rows(folder: Path, name: str) -> Mapping[str, Any]:
        types = pl.col("attn_dtype", "kv_cache_dtype") == "bfloat16"
        where = pl.all_horizontal(types) & (pl.col("window_size") == 0) & (pl.col("step") == 0)
        where &= (pl.col("isl") >= 1024) & pl.col("head_dim").is_in(HEADS)
        return _fastest(folder, _versions(name), "attention/context_attention_perf", keys, where)

    def law(gpu: Gpu, table: Mapping[str, Any], shares: Mapping[str, float]) -> Floats:
        device = _device(gpu, "bf16", {"attention": gpu.efficiency.attention * shares["ratio"]})
        batch, tokens, heads, kv_heads, size = (table[key] for key in keys)
        blocks = Blocks(batch * heads, tokens, (tokens + BLOCK) / 2, tokens, 1)
        cores = {head: fused_attention(device, (head, head), blocks) for head in HEADS}
        forward_s = np.select([size == head for head in HEADS], [c.forward for c in cores.values()])
        cached = 8 * batch * tokens * kv_heads * size  # bytes, read and written
        cached_s = cached / (LONG_COPY * gpu.hbm_gbyte_s * 1e9)
        return np.asarray(forward_s + cached_s + shares["start_s"])

    return Kind("attention", rows, law, {"ratio": (1.0, 0.1, 2.0), "start_s": (1.2e-5, 4e-6, 1e-4)})


NVLINK_BYTE_S = {"ampere": 300e9, "hopper": 450e9, "blackwell": 900e9}  # one way
NCCL = "comm/nccl/2.29.2/nccl_perf"
PROTOCOLS = {
    "hb": (0.75, 0.05, 0.99),
    "hb_reduce": (0.85, 0.05, 1.2),
    "latency_s": (8e-6, 2e-6, 1e-4),
    "step_s": (1e-6, 2e-7, 1e-5),
    "hb_own": (0.4, 0.1, 1.0),
    "hb_short": (0.5, 0.1, 1.0),
    "long_s": (1.5e-5, 4e-6, 1e-4),
}


def _collectives(operations: Sequence[str], protocols: Sequence[str]) -> Kind:
    """Collectives of NCCL in one HB domain, from 512 bytes to 512 MiB.

    Threads of one process launch them one by one (nccl-tests), so that what short ones take is also
    that of their host.
    """

    def rows(folder: Path, name: str) -> Mapping[str, Any]:
        place = (NCCL.replace("2.29.2", "2.27.3") if name == "a100-80g" else NCCL) + ".parquet"
        table = pl.read_parquet(folder / place)
        width = pl.when(pl.col("nccl_dtype") == "half").then(2).otherwise(1)
        named = table.filter(pl.col("op_name").is_in(operations))
        timed = named.with_columns(bytes=pl.col("message_size") * width)
        columns = {key: timed[key].to_numpy() for key in ("op_name", "num_gpus", "bytes")}
        return {**columns, "seconds": timed["latency"].to_numpy() * 1e-3, "source": place}

    def law(gpu: Gpu, table: Mapping[str, Any], shares: Mapping[str, float]) -> Floats:
        rate = NVLINK_BYTE_S[gpu.generation] * shares["hb"]
        x, y = table["num_gpus"], np.ones_like(table["bytes"])
        summed = shares.get("hb_reduce", 0.0) if gpu.efficiency.hb_reduce else 0.0
        links = LinkRates(
            hb_byte_s=rate,
            rail=1.0,
            send=1.0,
            latency_s=shares["latency_s"],
            step_s=shares.get("step_s", 0.0),
            send_s=0.0,
            sum_byte_s=rate * max(1.0, summed / shares["hb"]),
            own_share=shares["hb_own"],
            short=shares["hb_short"],
            long_s=shares["long_s"],
        )
        each = Visits(1, 0, 0, once=False)
        times = {
            "all_reduce": gather(links, table["bytes"], x, y, "dp", summed=x > 0) * 2.0,
            "alltoall": all_to_all(links, table["bytes"], x, y, each),
        }
        gathered = gather(links, table["bytes"], x, y, "dp")
        kinds = [table["op_name"] == kind for kind in times]
        seconds = [part.at(NO_NETWORK) for part in times.values()]
        return np.asarray(np.select(kinds, seconds, gathered.at(NO_NETWORK)))

    name = "collectives" if len(operations) > 1 else "all-to-all"
    shares = {name: PROTOCOLS[name] for name in protocols}
    return Kind(name, rows, law, shares, 100 * len(shares))


def _exchanges() -> Kind:
    """Dispatch in 8 bits, and combine, of DeepEP in one server or tray."""
    place = "comm/sglang/0.5.12/wideep_deepep_normal_perf.parquet"
    keys = ("num_token", "hidden_size", "num_topk")

    def rows(folder: Path, name: str) -> Mapping[str, Any]:
        if not (folder / place).exists():
            return {"seconds": []}
        table = pl.read_parquet(folder / place).filter(pl.col("num_token") >= 1024)
        ranks = 4 if name.startswith("g") else 8
        ways = [
            table.select(
                *keys,
                bytes=pl.lit(size),
                ranks=pl.lit(ranks),
                copying=pl.col(f"{way}_sms"),
                seconds=pl.col(f"{way}_transmit_us") * 1e-6,
            )
            for way, size in (("dispatch", 1), ("combine", 2))
        ]
        timed = pl.concat(ways)
        return {**{key: timed[key].to_numpy() for key in timed.columns}, "source": place}

    def law(gpu: Gpu, table: Mapping[str, Any], shares: Mapping[str, float]) -> Floats:
        rate = NVLINK_BYTE_S[gpu.generation] * gpu.efficiency.hb
        links = LinkRates(rate, 1.0, 1.0, 0.0, 0.0, 0.0)
        times = np.zeros(len(table["seconds"]))
        for top in np.unique(table["num_topk"]):
            visits = Visits(int(top), 0, 0, True, table["copying"] * shares["copied_byte_s"])
            sent = table["num_token"] * table["hidden_size"] * table["bytes"] * float(top)
            one = np.ones_like(table["ranks"])
            seconds = started_exchange(links, sent, table["ranks"], one, visits).at(NO_NETWORK)
            times = np.where(table["num_topk"] == top, seconds, times)
        return times + shares["start_s"]

    start = {"copied_byte_s": (22e9, 2e9, 1e11), "start_s": (3e-5, 1e-5, 1e-3)}
    return Kind("token exchange", rows, law, start)


KINDS = (
    _collectives(("all_gather", "reduce_scatter", "all_reduce"), tuple(PROTOCOLS)),
    _collectives(("alltoall",), ("hb", "latency_s", "hb_own", "hb_short", "long_s")),
    _exchanges(),
    *(_products(precision) for precision in TYPES),
    *(_grouped(precision) for precision in TYPES),
    _attention(),
)

if __name__ == "__main__":
    main()
