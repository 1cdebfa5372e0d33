"""The matrix of a demand as a file."""

from __future__ import annotations

from coopt.instance.errors import InstanceError
from coopt.traffic.shares import matrix
from coopt.traffic.streams import Demand

HEAD = "src_gpu,dst_gpu,bytes"
MOST_PAIRS = 5_000_000


def matrix_csv(demand: Demand, *, most: int = MOST_PAIRS) -> str:
    """Source, destination and bytes of an iteration for every pair that talks, one a line, sorted.

    GPUs that train are numbered from 0 through the first HB domain, then through the next.

    Raises
    ------
    InstanceError
        When more than `most` pairs talk: nobody could open the file.
    """
    src, dst, sizes = matrix(demand)
    if len(src) > most:
        raise InstanceError(
            f"--matrix: {len(src):,} pairs of GPUs talk, needs at most {most:,} (--heat-map draws any number)"
        )
    lines = (f"{a},{b},{_plain(c)}" for a, b, c in zip(src.tolist(), dst.tolist(), sizes.tolist(), strict=True))
    return "\n".join([HEAD, *lines]) + "\n"


def _plain(size_bytes: float) -> str:
    return str(int(size_bytes)) if size_bytes.is_integer() else repr(size_bytes)
