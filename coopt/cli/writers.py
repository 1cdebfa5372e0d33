"""What writes each format of `coopt export`; only a command that writes waits for these imports."""

from __future__ import annotations

from collections.abc import Callable

from coopt.network.graph_files import network_dot, network_graphml
from coopt.report.csv_files import bill_csv, ranks_csv
from coopt.report.megatron import megatron_script
from coopt.solving.export_files import model_lp, model_mps, routes_csv
from coopt.traffic.files import chakra_traces, ns3_flows, ns3_topology

WRITERS: dict[str, Callable[..., str | bytes]] = {
    "graphml": network_graphml,
    "dot": network_dot,
    "megatron": megatron_script,
    "ranks": ranks_csv,
    "routes": routes_csv,
    "ns3-topology": ns3_topology,
    "ns3-flows": ns3_flows,
    "chakra": chakra_traces,
    "lp": model_lp,
    "mps": model_mps,
    "bom-csv": bill_csv,
}
