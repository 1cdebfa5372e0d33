"""Where racks stand: what an instance and a design say of their hall."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from coopt.instance.base import Count, NonNegative, Positive, Price, Table


class HallRows(Table):
    """Where racks stand: rows of racks of equal pitch."""

    racks_per_row: Annotated[Count, Field(description="racks of a row")] = 20
    rack_pitch_m: Annotated[Positive, Field(description="from rack to rack of a row (m)")] = 0.6
    row_pitch_m: Annotated[Positive, Field(description="from row to row (m)")] = 3.0
    rise_m: Annotated[NonNegative, Field(description="from a port up to the tray, or down from it, with slack (m)")] = (
        2.5
    )
    in_rack_m: Annotated[Positive, Field(description="cable between ports of one rack (m)")] = 2.0

    def cable_m(self, one: int, other: int) -> float:
        """Length of a cable between two racks (m): up to the trays, along rows and across them, and down."""
        if one == other:
            return self.in_rack_m
        (row, place), (far_row, far_place) = (divmod(rack, self.racks_per_row) for rack in (one, other))
        aside, across = abs(place - far_place) * self.rack_pitch_m, abs(row - far_row) * self.row_pitch_m
        return 2 * self.rise_m + aside + across


class NetworkHallRows(HallRows):
    """Where racks stand, those of HB domains and those of switches; rows of racks of equal pitch."""

    switch_rack_units: Annotated[Positive, Field(description="rack units for switches in a rack of switches")] = 42
    switch_rack_kw: Annotated[
        Positive | None,
        Field(description="most that switches and their optics in a rack draw (kW); no limit if left out"),
    ] = None
    usd_per_switch_rack: Annotated[
        Price | None, Field(description="price of a rack of switches, for the bill of `coopt bom` (USD)")
    ] = None
