"""Draw the networks of docs/network.md into docs/pictures/, from graphs of small examples.

Only those are drawn anew that show something else than their graph; `--all` draws every one, after a change of how they
are painted. `--check` writes nothing and exits 1 when one is out of date. `--png FOLDER` draws them there as PNG.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from coopt.instance.schema import Instance
from coopt.network.direct.shapes import fabric
from coopt.network.graphs import whole_graph
from coopt.network.space import families
from coopt.report.fabrics.drawing import Drawing
from coopt.report.fabrics.networks import direct_drawing, switched_drawing
from coopt.report.fabrics.painting import paint

PICTURES = Path(__file__).parent / "pictures"
# file: fabric, HB domains, GPUs of each, ports of a switch, tiers, title
SWITCHED = {
    "one-tier": ("rail-only", 4, 4, 8, 1, "One tier: two rail-only planes share each switch of 8 ports"),
    "rail-only": ("rail-only", 8, 2, 4, 2, "Rail-only: a network of its own for every rail"),
    "rail-optimized": ("rail-optimized", 4, 4, 8, 2, "Rail-optimized: leaves by rail, spines join all"),
    "clos-2": ("clos", 4, 4, 8, 2, "Clos, two tiers: leaves by HB domain, spines join all"),
    "clos-3": ("clos", 8, 2, 4, 3, "Clos, three tiers: pods of leaves and aggregation switches, cores join them"),
}
DIRECT = {
    "ring": ("ring:8", "Ring of 8 HB domains"),
    "torus": ("torus:4x4", "Torus of 4 x 4"),
    "mesh": ("mesh:4x4", "Mesh of 4 x 4"),
    "hyperx": ("hyperx:4x4", "HyperX of 4 x 4"),
    "dragonfly": ("dragonfly:5x4", "Dragonfly of 5 groups of 4"),
    "regular": ("regular:16:4", "Random regular graph of 16 HB domains with 4 links each"),
}


def main() -> None:
    """Draw or check."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 when a picture is out of date")
    parser.add_argument("--all", action="store_true", help="draw every picture anew")
    parser.add_argument("--png", metavar="FOLDER", type=Path, help="draw PNG files there instead")
    wishes = parser.parse_args()
    stale = [name for name, drawing in drawings() if not current(name, drawing)]
    if wishes.check:
        sys.exit(f"docs/pictures/: {', '.join(stale)} out of date, `make docs` draws them" if stale else 0)
    for name, drawing in drawings():
        if wishes.png:
            paint(drawing, wishes.png / f"{name}.png")
        elif wishes.all or name in stale:
            paint(drawing, PICTURES / f"{name}.svg")


def drawings() -> Iterator[tuple[str, Drawing]]:
    """Every picture by the name of its file."""
    for name, (kind, domains, size, radix, tiers, title) in SWITCHED.items():
        (family,) = (one for one in families(example(kind, domains, size, radix)) if one.domains == domains)
        assert family.tiers == tiers
        yield name, switched_drawing(whole_graph(family, family.uplink_choices[-1]), title)
    for name, (shape, title) in DIRECT.items():
        yield name, direct_drawing(fabric(shape), title)


def current(name: str, drawing: Drawing) -> bool:
    """Whether the picture that is there shows this drawing."""
    file = PICTURES / f"{name}.svg"
    return file.exists() and drawing.fingerprint in file.read_text("utf-8")


def example(kind: str, domains: int, size: int, radix: int) -> Instance:
    """A question with one answer; only its network is drawn."""
    nothing = {"usd": 0, "w": 0}
    hb = {"name": "small", "size": size, "gbyte_s": 450, "usd_per_gpu": 0, "w_per_gpu": 0}
    return Instance.model_validate(
        {
            "schema": 1,
            "name": "example",
            "cluster": {"gpu": "h100-sxm", "gpus": domains * size},
            "workload": [
                {"name": "w", "model": "gpt-22b", "global_batch": domains * size, "max_iteration_time_s": 1.0}
            ],
            "network": {
                "hb_domains": hb,
                "fabrics": kind,
                "nics": {"name": "nic", "gbit_s": 400, **nothing},
                "switches": {"name": "switch", "radix": radix, "port_gbit_s": 400, **nothing},
                "optics": "400g-199",
                "oversubscription": 1.0,
                "max_tiers": 3,
            },
        }
    )


if __name__ == "__main__":
    main()
