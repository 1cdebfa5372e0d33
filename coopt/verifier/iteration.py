"""The time of one iteration on one network."""

from __future__ import annotations

from typing import NamedTuple

from coopt.instance.hardware import Efficiency
from coopt.verifier.split import Placement
from coopt.verifier.work import Work


class Speeds(NamedTuple):
    """How fast bytes travel: inside the domain (byte/s), across it (s/byte of each dimension)."""

    inside_byte_s: float
    tp_s_byte: float
    pp_s_byte: float
    dp_s_byte: float


class Steps(NamedTuple):
    """Seconds of communication that an iteration is made of."""

    gather_s: float
    hop_s: float
    data_s: float
    embedding_s: float


class Parts(NamedTuple):
    """Seconds of an iteration by cause; they sum to it. Names as in `breakdown_s`."""

    compute: float
    logits: float
    tp: float
    pp: float
    bubble: float
    dp: float
    embedding: float
    optimizer: float


def gather_s(size_bytes: float, inside: int, across: int, byte_s: float, s_byte: float, share: Efficiency) -> float:
    """AG(D, x, y): seconds of an all-gather or reduce-scatter over x ranks inside and y across domains."""
    if inside * across == 1:
        return 0.0
    within = (inside - 1) / inside * size_bytes / (share.hb * byte_s)
    beyond = (across - 1) / across * (size_bytes / inside) * s_byte / share.rail
    return within + beyond + share.latency_s


def steps(work: Work, place: Placement, speed: Speeds, share: Efficiency) -> Steps:
    """Seconds of one TP all-gather, one pipeline hop, the gradient exchange and the embedding exchange."""
    fast, split = speed.inside_byte_s, work.split
    tp = gather_s(work.gathered_bytes, place.tp_in, place.tp_across, fast, speed.tp_s_byte, share)
    hop = 0.0
    if split.pp > 1:
        s_byte = speed.pp_s_byte / share.send if place.pp_across > 1 else 1 / (share.hb * fast)
        hop = work.sent_bytes * s_byte + work.received_gathers * tp
    data = 0.0
    if split.dp > 1:
        ranks = (place.dp_in, place.dp_across, fast, speed.dp_s_byte, share)
        data = gather_s(4 * work.parameters, *ranks)
        data += gather_s(2 * work.parameters, *ranks) if split.zero == 1 else data
    embedding = 0.0
    if work.embedding_bytes:
        ends = (1, 2) if place.pp_across > 1 else (2, 1)
        embedding = 2 * gather_s(work.embedding_bytes, *ends, fast, speed.pp_s_byte, share)
    return Steps(tp, hop, data, embedding)


def iteration_s(work: Work, place: Placement, speed: Speeds, share: Efficiency) -> float:
    """T: seconds of one iteration."""
    step, split = steps(work, place, speed, share), work.split
    mid = work.stage_s + work.gathers * step.gather_s + 2 * split.interleave * step.hop_s
    last = mid - step.hop_s + work.logits_s + 2 * step.gather_s
    pipeline = work.micro_batches * max(mid, last) + (split.pp - 1) * mid / split.interleave
    return pipeline + step.data_s + step.embedding_s + work.optimizer_s


def breakdown(work: Work, place: Placement, speed: Speeds, share: Efficiency) -> Parts:
    """T by cause: the logits count where the last stage is the slowest."""
    step, split = steps(work, place, speed, share), work.split
    m, v = work.micro_batches, split.interleave
    tp = work.gathers * step.gather_s
    mid = work.stage_s + tp + 2 * v * step.hop_s
    last_binds = work.logits_s + 2 * step.gather_s > step.hop_s
    return Parts(
        compute=m * work.stage_s,
        logits=m * work.logits_s if last_binds else 0.0,
        tp=m * (tp + (2 * step.gather_s if last_binds else 0.0)),
        pp=m * (2 * v - (1 if last_binds else 0)) * step.hop_s,
        bubble=(split.pp - 1) * mid / v,
        dp=step.data_s,
        embedding=step.embedding_s,
        optimizer=work.optimizer_s,
    )
