"""Answers of `coopt reproduce` and `coopt bom`: published networks recomputed, and networks with
their bills.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field

from coopt.plan.parts import Item, ItemKind, Record


class Counts(Record):
    """Switches and single-port cables per tier over all planes, leaves first, and modules of each
    product over all tiers.
    """

    switches: tuple[int, ...]
    links: tuple[int, ...] | None = None
    optics: dict[str, int] | None = None


class CheapestNetwork(Record):
    """The cheapest network with the end points and bandwidth of a design, at prices of ports and
    cable ends.

    `counted` is None if nothing is cheaper than the design itself, or if there is no comparison
    (without prices); `why` explains the difference, or the missing comparison.
    """

    published_usd: float | None = None
    usd: float | None = None
    counted: Counts | None = None
    why: str


class ReproducedRow(Record):
    """A published design with recomputed counts; `why` states what differs, or why it cannot be
    wired (`counted` is None then).

    `cheapest` is set if requested and the design can be wired.
    """

    id: str
    source: str
    published: Counts
    counted: Counts | None
    ok: bool
    why: str
    cheapest: CheapestNetwork | None = None


class Reproduction(Record):
    """Published designs with recomputed counts: `exact` of `of` agree on every tier."""

    schema_: Annotated[Literal["coopt-reproduction/1"], Field(alias="schema")] = (
        "coopt-reproduction/1"
    )
    rows: tuple[ReproducedRow, ...]
    exact: int
    of: int

    @property
    def refused(self) -> tuple[str, ...]:
        """Why designs cannot be wired, one sentence each."""
        return tuple(row.why for row in self.rows if row.counted is None)


class CableLength(Record):
    """Single-port cables of one length, as sold (m).

    `added` are those beyond earlier phases; None if the network does not grow.
    """

    length_m: int
    count: int
    added: int | None = None


class BilledTier(Record):
    """One tier of a network; names are empty if no product is named.

    `down_ports` and `uplinks_per_switch` count cables of one switch, `links` those below the tier,
    and `bundle` the cables from a switch to each switch above it that it reaches (0 at the top,
    None if unknown). `cables` lists the links by length if a hall is given; their price is included
    in that of optics.
    """

    level: int
    switches: int
    down_ports: int
    uplinks_per_switch: int
    links: int
    bundle: int | None = None
    switch: str = ""
    optic: str = ""
    cables: tuple[CableLength, ...] = ()


class BilledNetwork(Record):
    """A network with its bill: USD to buy, W to run. `unpriced` lists what has no known price, and
    `notes` what to order differently.

    The core between islands is a network of its own, with fabric "core" and without GPUs: its
    switches, and the links into it, whose lower ends belong to the islands.

    `oversubscription` is the ratio of bandwidth down to bandwidth up, of leaf and pod together.
    `pair_share` is the minimum share of their uplinks that two leaves of a pod can use between
    them. Either is None if unknown. Lines of HB domains count GPUs, `domain_gpus` per domain; 0 if
    no domain is named. `switch_racks` hold the switches, of which `switch_racks_added` are beyond
    those of an earlier phase; None if unknown.
    """

    name: str
    fabric: str
    gpus: int
    hb_domain: str = ""
    domain_gpus: int = 0
    tier: tuple[BilledTier, ...]
    oversubscription: float | None = None
    pair_share: float | None = None
    switch_racks: int | None = None
    switch_racks_added: int | None = None
    items: tuple[Item, ...]
    unpriced: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    usd: float
    w: float

    @property
    def end_points(self) -> int:
        """Number of NIC ports that the network connects; 0 without switches."""
        return self.tier[0].links if self.tier else 0


class ComparedNetwork(Record):
    """One of two compared networks: its end points and components, with switches by tier from the
    leaves up.

    `usd` and `w` are sums over the lines that both networks have; None if there are none.
    """

    name: str
    fabric: str
    gpus: int
    end_points: int
    switches: tuple[int, ...]
    links: int
    oversubscription: float | None
    pair_share: float | None
    usd: float | None
    w: float | None
    usd_per_end_point: float | None


class DesignComparison(Record):
    """Comparison of a design with a network of a plan.

    `kinds` are those of the lines in both sums: equipment in use, without spare parts. The design
    costs `more_usd` more than the network (less if negative), or the share `more` of the network's
    cost; `more_per_end_point` is that share per end point. They are None if nothing has a price in
    both. `notes` state what the sums exclude, differences in end points, and what to order
    differently for the design.
    """

    network: ComparedNetwork
    design: ComparedNetwork
    kinds: tuple[ItemKind, ...]
    more_usd: float | None
    more: float | None
    more_per_end_point: float | None
    notes: tuple[str, ...] = ()


class NetworksBill(Record):
    """Networks with their bills; `items` is the total, including what connects the networks.

    `not_counted` lists what a cluster needs beyond the lines, and `notes` what to order
    differently. Lines of the optics in `whole_cables` count ends, two per cable. `against` holds
    designs compared with networks of a plan, which are not part of the bill. Prices, including
    those of designs, are the worst ones for a robust plan that is made for them
    (`at_worst_prices`).
    """

    schema_: Annotated[Literal["coopt-bom/1"], Field(alias="schema")] = "coopt-bom/1"
    name: str
    networks: tuple[BilledNetwork, ...]
    items: tuple[Item, ...]
    not_counted: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    whole_cables: tuple[str, ...] = ()
    against: tuple[DesignComparison, ...] = ()
    at_worst_prices: bool = False
    usd: float
    w: float

    @property
    def left_over(self) -> Counter[Item] | None:
        """Purchases beyond the lines of networks, per unit.

        None if the lines are not among the purchases, as with volume prices, or where phases share
        units.
        """
        of_networks = item_counts(item for network in self.networks for item in network.items)
        purchase = item_counts(self.items)
        return purchase - of_networks if of_networks <= purchase else None

    @property
    def unpriced(self) -> tuple[str, ...]:
        """Everything without a known price, once each."""
        return tuple(dict.fromkeys(line for network in self.networks for line in network.unpriced))


def item_counts(items: Iterable[Item]) -> Counter[Item]:
    """Units of each product at one price."""
    counts = Counter[Item]()
    for item in items:
        counts[item.of(0)] += item.count
    return counts
