"""The formats of `coopt export`: a new one is an entry here and the function it names.

The function takes an instance, its plan and the options that the entry names, and gives the text of the file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from coopt.instance.errors import InstanceError


@dataclass(frozen=True, kw_only=True)
class Format:
    """One format: endings of its files, where the function lives that writes it, which options it takes.

    `trusted` where mappings and placements have to be those of the instance, before a file is built on them.
    """

    endings: tuple[str, ...]
    module: str
    function: str
    options: tuple[str, ...] = ()
    trusted: bool = False

    @property
    def writer(self) -> Callable[..., str]:
        """The function, imported when it is asked for."""
        found: Callable[..., str] = getattr(import_module(self.module), self.function)
        return found


FORMATS = {
    "graphml": Format(
        endings=(".graphml", ".xml"),
        module="coopt.network.graph_files",
        function="network_graphml",
        options=("compressed",),
    ),
    "dot": Format(
        endings=(".dot", ".gv"), module="coopt.network.graph_files", function="network_dot", options=("compressed",)
    ),
    "megatron": Format(
        endings=(".sh",),
        module="coopt.report.megatron",
        function="megatron_script",
        options=("workload",),
        trusted=True,
    ),
    "ranks": Format(
        endings=(".csv",),
        module="coopt.report.csv_files",
        function="ranks_csv",
        options=("workload",),
        trusted=True,
    ),
    "routes": Format(
        endings=(".csv",), module="coopt.solving.route_files", function="routes_csv", options=("workload",)
    ),
    "lp": Format(endings=(".lp",), module="coopt.solving.model_files", function="model_lp"),
    "mps": Format(endings=(".mps",), module="coopt.solving.model_files", function="model_mps"),
    "bom-csv": Format(endings=(".csv",), module="coopt.report.csv_files", function="bill_csv"),
}


def check_ending(path: str, name: str) -> None:
    """Refuse a file name that says something else than the format.

    Raises
    ------
    InstanceError
        When the ending is none of the format.
    """
    endings = FORMATS[name].endings
    if not path.lower().endswith(endings):
        raise InstanceError(f"{path}: is not the name of a {name} file, needs one that ends in {' or '.join(endings)}")
