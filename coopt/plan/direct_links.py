"""HB domains joined by direct links, and how these carry the traffic of an iteration. Data only."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from coopt.plan.parts import HbDomainChoice, NicChoice, Record

Amount = Annotated[str, Field(pattern=r"^\d{1,40}(\.\d{1,40})?$")]
"""A number of 0 or more, as it is written."""

ByPhase = dict[str, tuple[Amount, ...]]
"""Amounts phase by phase, by the name of what they belong to; what is left out has none."""


class LinkBundle(Record):
    """Parallel links between two domains."""

    between: tuple[int, int]
    links: int


class LinkRoute(Record):
    """A share of what the first domain of a path sends to the last one in a phase; the others pass it on."""

    path: tuple[int, ...]
    share: float


class LinkPhase(Record):
    """Sends of the pipeline ("pp") or exchanges of replicas ("dp"), which have all links to themselves while they last.

    `pace_links` is how fast: bytes of all GPUs of a domain pass as if they had this many links.
    """

    name: Literal["pp", "dp"]
    pace_links: float
    routes: tuple[LinkRoute, ...]


class DirectLinks(Record):
    """What is built: domains in a grid of pipeline stages and replicas, numbered stage by stage, and their links.

    `links` is the sum of the bundles; fewer than `links_bound` cannot do for this mapping. A domain has `ports`.
    """

    gpus: int
    spare_gpus: int
    hb_domain: HbDomainChoice
    racks: int | None
    nic: NicChoice
    optic: str
    panel: str | None
    ports: int
    stages: int
    replicas: int
    links: int
    links_bound: int
    bundles: tuple[LinkBundle, ...]
    phases: tuple[LinkPhase, ...]

    @property
    def nics_per_gpu(self) -> int:
        """NICs that each GPU may have."""
        return self.nic.per_gpu


class LinkCut(Record):
    """A set of domains, and the price of a whole link that leaves it; so for the set turned by every replica."""

    domains: tuple[int, ...]
    price: Amount


class LinkLengths(Record):
    """Lengths of direct links on a grid of pipeline stages by replicas (`inner` stages in a domain, `closed` rings).

    Domain s * `replicas` + d holds stage s of replica d. `lengths` has for every phase, "pp" or "dp", the length from
    stage s to stage t so many replicas further, at (s * `stages` + t) * `replicas` + replicas; `ports` are prices of a
    port of each stage.
    """

    stages: int
    replicas: int
    inner: int
    closed: bool
    lengths: ByPhase
    cuts: tuple[LinkCut, ...] = ()
    ports: tuple[Amount, ...] = ()
