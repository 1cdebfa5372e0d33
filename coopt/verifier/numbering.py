"""Which leaf holds which end point."""

from __future__ import annotations

from typing import NamedTuple

from coopt.verifier.layouts import leaf_count, up
from coopt.verifier.space import Family


class Numbering(NamedTuple):
    """How the end points of one plane fill its leaves; `down` as the plan says."""

    kind: str
    domains: int
    rails: int
    """NICs of a domain that this plane holds: 1 for rail-only."""
    down: int
    leaves: int

    def leaf(self, domain: int, rail: int) -> int:
        """The leaf of a NIC."""
        if self.kind == "clos":
            return (domain * self.rails + rail) // self.down
        if self.down >= self.domains:
            return rail // (self.down // self.domains)
        return rail * up(self.domains, self.down) + domain // self.down

    def ends(self) -> list[int]:
        """End points on each leaf."""
        if self.kind == "clos":
            return _filled(self.domains * self.rails, self.down)
        if self.down >= self.domains:
            whole = self.down // self.domains
            return [rails * self.domains for rails in _filled(self.rails, whole)]
        return _filled(self.domains, self.down) * self.rails


def numbering_of(family: Family, down: int) -> Numbering:
    """The numbering of a plane."""
    assert family.gear is not None
    rails = family.rails // family.planes
    return Numbering(family.gear.kind, family.domains, rails, down, leaf_count(family, down))


def _filled(total: int, each: int) -> list[int]:
    """`total` things in boxes of `each`, the last one with the rest."""
    whole, rest = divmod(total, each)
    return [each] * whole + ([rest] if rest else [])
