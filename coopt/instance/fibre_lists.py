"""What a list of fibre has to have for the optics that it joins."""

from collections.abc import Iterable, Iterator, Sequence

from coopt.instance.catalog import entries
from coopt.instance.hardware import Fibre, Optic
from coopt.instance.texts import alternatives, counted


def missing_fibre(listed: Sequence[Fibre], uses: Iterable[tuple[Optic, float]]) -> Iterator[str]:
    """Yield what nothing listed joins or splits, of optics that end links of some rates
    (Gbit/s).
    """
    needed = {
        (optic.fibre or "", links, pairs)
        for optic, rate in uses
        if listed and optic.links_of(rate) and optic.pairs_of(rate)
        for legs in [optic.split_at(rate)]
        for links, pairs in {
            (1, optic.pairs_together(rate)),
            (legs, optic.pairs_together(rate) * legs),
        }
    }
    known = [one for one in entries("fibre").values() if isinstance(one, Fibre)]
    for fibre, links, pairs in sorted(needed):
        if not any(one.joins(fibre, links, pairs) for one in listed):
            ends = counted(pairs, "pair")
            what = (
                f"splits {ends} into {links} links" if links > 1 else f"joins connectors of {ends}"
            )
            fitting = [one.name for one in known if one.joins(fibre, links, pairs)]
            hint = f" (in the catalog: {alternatives(fitting)})" if fitting else ""
            yield f"fibre: nothing listed {what} of {fibre}, needs an entry that does{hint}"
