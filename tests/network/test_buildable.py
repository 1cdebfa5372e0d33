"""By default a network can be bought and built as it is billed."""

import re
from typing import Any

import pytest

import coopt
from coopt.instance.hardware import Optic
from coopt.instance.schema import Instance
from coopt.network.parts import splitting_notes
from tests.conftest import accepted, question, value

PARTS: dict[str, Any] = {
    "hb_domains": "hgx-h100-8",
    "fabrics": ["rail-only", "clos"],
    "nics": "cx7-400g",
    "switches": ["qm9700", "128x400g"],
    "optics": ["400g-sr4", "400g-dr4", "800g-sr8", "800g-dr8"],
    "charge": "ratio",
}
KEYS = {"switch_cages": "kept", "link_ends": "any", "tier_switches": "any"}
ISLANDS = {"sharing": {"mode": "partition"}}


def asked(tables: dict[str, Any], **keys: Any) -> Instance:
    return Instance.model_validate(question(cluster__gpus=512, network=PARTS | {"buildable": True} | keys, **tables))


@pytest.mark.parametrize(("tables", "keys"), [({}, KEYS), (ISLANDS, {"switch_cages": "kept", "link_ends": "any"})])
def test_no_keys_lead_to_a_cheaper_network_that_can_be_built(tables: dict[str, Any], keys: dict[str, Any]) -> None:
    plan = accepted(asked(tables))
    assert plan.objective.value == value(asked(tables, buildable=False, **keys))
    assert plan.objective.value <= value(asked(tables, optics=["400g-sr4", "400g-dr4"]))


def test_a_bill_with_more_modules_than_cages_is_refused() -> None:
    optics = ["400g-sr4", "400g-dr4"]
    loose = coopt.solve(asked({}, buildable=False, switches="qm9700", optics=optics))
    strict = asked({}, switches="qm9700", optics=optics)
    told = loose.model_copy(update={"instance": loose.instance.model_copy(update={"sha256": strict.sha256})})
    assert not coopt.verify(strict, told).accepted
    assert (loose.objective.value or 0) < value(strict)


def test_parts_that_do_not_mate_are_linked_only_where_networks_are_counted_alone() -> None:
    parts = {"nics": "cx8-800g", "switches": "144x800g", "optics": "800g-sr8", "link_reach_m": [50, 50, 50]}
    with pytest.raises(ValueError, match=r"network\.buildable = true: no listed switch .* or buildable = false"):
        asked({}, **parts)
    assert coopt.solve(asked({}, buildable=False, **parts)).status == "optimal"


def test_a_cable_that_is_sold_split_needs_no_splitter() -> None:
    module = {"name": "twin", "gbit_s": 800, "reach_m": 2, "usd": 100, "w": 0, "breakout": [2]}
    told = {whole: list(splitting_notes([(Optic(**module, whole_cable=whole), 2, 5)])) for whole in (False, True)}
    assert told[True] == []
    assert "5 for twin" in told[False][0]
    ends = re.search(r"at \$([\d.]+) to \$([\d.]+) each, \$([\d,]+) to \$([\d,]+) in all", told[False][0])
    assert ends is not None
    each, total = [float(ends[n]) for n in (1, 2)], [float(ends[n].replace(",", "")) for n in (3, 4)]
    assert total == [5 * usd for usd in each]
    (unknown,) = splitting_notes([(Optic(**module), 2, None)])
    assert "in all" not in unknown
