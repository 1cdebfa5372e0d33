"""Networks of a few domains, wired by hand."""

from typing import Any

from coopt.instance.hardware import HbDomain
from coopt.instance.network import SwitchedKind
from coopt.verifier.parts.layouts import Ports
from coopt.verifier.parts.space import DesignFamily, attachments
from coopt.verifier.parts.wiring import wire
from coopt.verifier.simulation.networks import FabricNetwork
from coopt.verifier.training.placing import Placement
from tests.verifier.cases import ask, switch


def network(kind: SwitchedKind, domains: int, size: int, ports: Ports, radix: int = 64) -> FabricNetwork:
    """Domains of `size` GPUs with a NIC each, whose links between switches carry all of their rate."""
    asked = ask(network__fabrics=kind, network__switches=[switch(radix)])
    (attachment,) = attachments(asked)
    hb = HbDomain(name="hb", size=size, gbyte_s=450, usd_per_gpu=1, w_per_gpu=1)
    family = DesignFamily(domains * size, hb, domains, attachment)
    return FabricNetwork(family, ports, wire(family, ports) if ports.tiers > 1 else None)


def placement(**parts: int) -> Placement:
    """A placement with one rank of everything but what is given; copies of experts are the rest of a stage."""
    whole: dict[str, Any] = dict.fromkeys(("tp_in", "tp_across", "pp_in", "pp_across", "dp_in", "dp_across"), 1) | parts
    place = Placement(**whole)
    return place if "copies_across" in parts else place._replace(copies_across=place.stage_across // place.ep_across)
