"""What a cluster is made of: GPUs, HB domains, NICs, switches, optics."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from coopt.instance.base import Count, Entry, Fraction, NonNegative, Part, Positive, Price, Watts, one_or_many


class Efficiency(Part):
    """How much of the data sheet a training run reaches; symbols of docs/model.md."""

    gemm: Annotated[Fraction, Field(description="eg: share of peak FLOP/s of a large matrix product")]
    gemm_k0: Annotated[float, Field(ge=0, le=1e6, description="k0: depth of a matrix product lost to start-up")]
    hbm: Annotated[Fraction, Field(description="em: share of HBM bandwidth of a streaming kernel")]
    hb: Annotated[Fraction, Field(description="env: share of HB bandwidth of a collective")]
    rail: Annotated[Fraction, Field(description="eib: share of NIC bandwidth of a collective")]
    send: Annotated[Fraction, Field(description="ep: share of NIC bandwidth of a pipeline send")]
    latency_s: Annotated[NonNegative, Field(description="start-up time of one collective (s)")]


class Gpu(Entry):
    """An accelerator."""

    bf16_tflop_s: Annotated[Positive, Field(description="dense 16-bit peak (TFLOP/s)")]
    hbm_gb: Annotated[Positive, Field(description="memory capacity (10^9 bytes)")]
    hbm_gbyte_s: Annotated[Positive, Field(description="memory bandwidth (10^9 bytes/s)")]
    sm_count: Annotated[Count, Field(description="streaming multiprocessors or compute units")]
    usd: Annotated[Price, Field(description="street price of one GPU (USD)")]
    w: Annotated[Watts, Field(description="board power (W)")]
    efficiency: Efficiency


class HbDomain(Entry):
    """A group of GPUs joined at full bandwidth (NVLink class)."""

    size: Annotated[Count, Field(description="GPUs in one domain")]
    gbyte_s: Annotated[
        Positive, Field(description="one-way bandwidth of a GPU inside the domain (10^9 bytes/s, not bits)")
    ]
    usd_per_gpu: Annotated[
        Price, Field(description="interconnect price for each GPU (USD); 0 where the server price holds it")
    ]
    w_per_gpu: Annotated[Watts, Field(description="interconnect power for each GPU (W); 0 where the server holds it")]
    gpus: Annotated[tuple[str, ...], one_or_many, Field(description="GPUs it is sold with; empty for any")] = ()
    racks: Annotated[float | None, Field(gt=0, le=1e6, description="racks one domain fills")] = None


class Nic(Entry):
    """A network adapter with one port."""

    gbit_s: Annotated[Positive, Field(description="port rate (Gbit/s, not GB/s)")]
    usd: Annotated[Price, Field(description="price (USD)")]
    w: Annotated[Watts, Field(description="power (W)")]


class Switch(Entry):
    """A packet switch; all ports have one rate."""

    radix: Annotated[int, Field(ge=2, le=4096, description="ports")]
    port_gbit_s: Annotated[Positive, Field(description="rate of a port (Gbit/s, not GB/s)")]
    usd: Annotated[Price, Field(description="price of the whole switch (USD)")]
    w: Annotated[Watts, Field(description="power of the whole switch without optics (W)")]


class Optic(Entry):
    """One end of a link: transceiver and half a cable."""

    gbit_s: Annotated[Positive, Field(description="rate (Gbit/s, not GB/s)")]
    reach_m: Annotated[Positive, Field(description="longest link (m)")]
    usd: Annotated[Price, Field(description="price of one end (USD)")]
    w: Annotated[Watts, Field(description="power of one end (W)")]
