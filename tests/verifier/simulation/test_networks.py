"""The network of a plan is wired from its numbers as the verifier wires it from the instance."""

import networkx as nx
import pytest

from coopt.network.plan_networks import design_of
from coopt.network.space import families
from coopt.verifier.checks.verdict import Ledger
from coopt.verifier.parts.design_checks import check_design, check_ports
from coopt.verifier.parts.wiring import wire
from coopt.verifier.simulation.networks import FabricNetwork, network_of
from tests.verifier.cases import ask, switch


@pytest.mark.parametrize("kind", ["rail-only", "rail-optimized", "clos"])
@pytest.mark.parametrize("gpus", [48, 160])
def test_every_design_is_wired_alike(kind: str, gpus: int) -> None:
    """Switches of 14 and 20 ports divide unevenly; the designs have two tiers and three."""
    domain = {"name": "hb", "size": 4, "gbyte_s": 450, "usd_per_gpu": 9, "w_per_gpu": 7}
    asked = ask(
        cluster__gpus=gpus,
        network__fabrics=kind,
        network__hb_domains=[domain],
        network__switches=[switch(8), switch(14), switch(20)],
        network__oversubscription=4,
    )
    tiers = set()
    designs = {
        design_of(family, uplinks).model_dump_json(): design_of(family, uplinks)
        for family in families(asked)
        for uplinks in family.uplink_choices
    }
    for design in list(designs.values())[::16]:
        ledger, found = Ledger(), network_of(asked, "network", design)
        family = check_design(ledger, asked, design)
        ports = check_ports(ledger, asked, family, design.fabric, "capex")
        assert isinstance(found, FabricNetwork)
        if ports.tiers > 1:
            assert nx.utils.graphs_equal(found.wiring.graph, wire(family, ports).graph)
        tiers.add(ports.tiers)
    assert tiers & {2, 3}
