"""What `coopt reproduce` and `coopt bom` answer: published networks counted again, networks with
their bills.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field

from coopt.plan.parts import Item, ItemKind, Record


class Counts(Record):
    """Switches of each tier over all planes, cables of one port each below each tier, leaves first,
    and modules of each product over all tiers.
    """

    switches: tuple[int, ...]
    links: tuple[int, ...] | None = None
    optics: dict[str, int] | None = None


class CheapestNetwork(Record):
    """The cheapest network with the end points and the bandwidth of a design, where prices count
    ports and cable ends.

    `counted` is None where nothing costs less than the design itself, or where it is not compared
    (without prices); `why` says what makes the difference, or why it is not compared.
    """

    published_usd: float | None = None
    usd: float | None = None
    counted: Counts | None = None
    why: str


class ReproducedRow(Record):
    """A published design counted again; `why` says what differs, or why it cannot be wired
    (`counted` is None then).

    `cheapest` is set where it was asked for and the design can be wired.
    """

    id: str
    source: str
    published: Counts
    counted: Counts | None
    ok: bool
    why: str
    cheapest: CheapestNetwork | None = None


class Reproduction(Record):
    """Published designs counted again: `exact` of `of` come out, tier by tier."""

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
    """Cables of one port each, all of one length as they are sold (m).

    `added` are those that no earlier phase has, None where a network does not grow.
    """

    length_m: int
    count: int
    added: int | None = None


class BilledTier(Record):
    """One tier of a network; names are empty where no product is named.

    `down_ports` and `uplinks_per_switch` are cables of one switch, `links` those below the tier,
    and `bundle` how many lead from a switch to each one above that it reaches (0 at the top, None
    where nothing says it). `cables` are the links by length, where a hall is given; their price is
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
    """A network with its bill: USD to buy, W to run. `unpriced` lists what no price is known of, in
    words, and `notes` of a design what to order otherwise.

    What joins islands is one of its own, of fabric "core" and without GPUs: its switches, and the
    links into it, whose ends the islands have.

    `oversubscription` is the bandwidth down over that up, of leaf and pod together. `pair_share` is
    the least share of their uplinks that two leaves of a pod can use between them. Either is None
    where it was not counted. Lines of HB domains count GPUs, of which one domain has `domain_gpus`;
    0 where none is named. `switch_racks` hold the switches, `switch_racks_added` of them besides
    those of an earlier phase; None where nobody knows how many they fill.
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
        """NIC ports that it joins; 0 without switches."""
        return self.tier[0].links if self.tier else 0


class ComparedNetwork(Record):
    """One of two networks that are compared: what it joins and consists of, switches by tier from
    the leaves up.

    `usd` and `w` sum the lines that both networks have; None without any.
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
    """A design beside a network of a plan.

    `kinds` are those of the lines in both sums: what is in use, without spare parts. The design
    costs `more_usd` more than the network (less where that is negative), and a share `more` of it
    more; `more_per_end_point` is the share by end points. They are None where nothing has a price
    in both. `notes` say what the sums leave out, that end points differ, and what to order
    otherwise for the design.
    """

    network: ComparedNetwork
    design: ComparedNetwork
    kinds: tuple[ItemKind, ...]
    more_usd: float | None
    more: float | None
    more_per_end_point: float | None
    notes: tuple[str, ...] = ()


class NetworksBill(Record):
    """Networks with their bills; `items` are everything together, with what joins the networks.

    `not_counted` lists what a cluster takes besides and no line holds, `notes` say what to order
    otherwise. Lines of the optics that are `whole_cables` count ends, of which a cable comes with
    two. `against` has designs that networks of a plan are compared with, and which are not in the
    bill. Prices are the worst ones of a robust plan, those of designs too, where it is made for
    them (`at_worst_prices`).
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
        """What is bought beside the lines of networks, by a unit of each; None where those are not
        among what is bought, as at prices by quantity, or where several phases share units.
        """
        of_networks = _counts(item for network in self.networks for item in network.items)
        purchase = _counts(self.items)
        return purchase - of_networks if of_networks <= purchase else None

    @property
    def unpriced(self) -> tuple[str, ...]:
        """What no price is known of, once each."""
        return tuple(dict.fromkeys(line for network in self.networks for line in network.unpriced))


def _counts(items: Iterable[Item]) -> Counter[Item]:
    counts = Counter[Item]()
    for item in items:
        counts[item.of(0)] += item.count
    return counts
