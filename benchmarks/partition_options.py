"""Made-up options of workloads with the spread of real ones: HB domains, NICs, switches, optics,
taper, mappings.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product

import numpy as np

from coopt.solving.fleet.arrays import worth
from formulations.choice_data import (
    ChoiceData,
    CoreLayer,
    Floats,
    Ints,
    Kind,
    LimitedUse,
    Product,
)

# name, GPUs, USD, W of everything inside, racks
DOMAINS = [
    ("hgx-8", 8, 220e3, 10.2e3, 0.25),
    ("hb-32", 32, 1.05e6, 46e3, 0.5),
    ("nvl-36", 36, 1.35e6, 52e3, 1.0),
    ("nvl-72", 72, 2.9e6, 120e3, 1.0),
    ("nvl-144", 144, 6.2e6, 250e3, 2.0),
    ("hb-256", 256, 11.5e6, 450e3, 4.0),
]
NICS = [("200g", 200, 900.0, 15.0), ("400g", 400, 1500.0, 22.0), ("800g", 800, 2600.0, 32.0)]
SWITCHES = [  # name, radix, Gbit/s of a port, USD, W
    ("64x200", 64, 200, 14e3, 900.0),
    ("64x400", 64, 400, 26e3, 1500.0),
    ("128x400", 128, 400, 52e3, 2400.0),
    ("64x800", 64, 800, 51e3, 2600.0),
    ("128x800", 128, 800, 108e3, 3900.0),
]
OPTICS = [  # name, Gbit/s, USD, W, whether it reaches beyond a row
    ("200g-sr", 200, 180.0, 5.0, False),
    ("200g-dr", 200, 320.0, 6.0, True),
    ("400g-sr", 400, 300.0, 9.0, False),
    ("400g-dr", 400, 550.0, 10.0, True),
    ("800g-sr", 800, 560.0, 14.0, False),
    ("800g-dr", 800, 1000.0, 16.0, True),
]
CORE_SWITCH = len(DOMAINS) + len(NICS) + len(SWITCHES) - 1
MOST = {"hb": 2, "nic": 2, "switch": 3}
USD_PER_W = 1.3 * 4 * 8760 * 0.08 / 1000  # four years at 0.08 USD/kWh and a PUE of 1.3
EACH_KIND = {"hb": len(DOMAINS), "nic": len(NICS), "switch": len(SWITCHES), "optic": len(OPTICS)}
FIRST = dict(zip(EACH_KIND, np.cumsum([0, *EACH_KIND.values()]).tolist(), strict=False))


def products(scale: float) -> tuple[Product, ...]:
    """The products; discounts begin at shares of what a cluster of `scale` GPUs buys."""
    found = [
        _product(d[0], d[2], scale / d[1], (0.2, 0.5), (0.04, 0.08), "incremental") for d in DOMAINS
    ]
    found += [_product(n[0], n[2], scale, (0.25, 0.6), (0.07, 0.15), "all-units") for n in NICS]
    found += [
        _product(s[0], s[3], scale / 40, (0.25, 0.6), (0.08, 0.2), "all-units") for s in SWITCHES
    ]
    return (
        *found,
        *(_product(o[0], o[2], 3 * scale, (0.25, 0.6), (0.1, 0.25), "incremental") for o in OPTICS),
    )


def _product(
    name: str, usd: float, much: float, at: tuple[float, ...], off: tuple[float, ...], kind: str
) -> Product:
    start = [0.0, *(float(round(share * much)) for share in at)]
    return Product(
        name=name,
        start=np.array(start),
        usd=np.array([usd, *(round(usd * (1 - o)) for o in off)]),
        discount=kind,
    )


def workload_options(
    rng: np.random.Generator, gpus: float, talk: float, mappings: int
) -> tuple[Floats, Floats]:
    """Units of each product (n, P) and (GPUs, W, racks, core ports) of each option (n, 4) of one
    workload.

    `gpus` meet the bound with the best network, `talk` says how fast a slower one costs more of
    them.
    """
    units, uses = [], []
    for h, (_, size, _, watts, racks) in enumerate(DOMAINS):
        for i, (_, gbit, _, nic_w) in enumerate(NICS):
            for s, (_, radix, port, _, switch_w) in enumerate(SWITCHES):
                if port != gbit:
                    continue
                for taper in (1, 2, 4):
                    for far in (0, 1):
                        for joins in (0, 1):
                            slow = 1 + talk * (800 / gbit) ** 0.6 * taper**0.4 * (8 / size) ** 0.45
                            spread = 1 + rng.gamma(1.5, 0.04, size=mappings)
                            need = np.unique(np.ceil(gpus * slow * spread / size)).astype(int)
                            for domains in need:
                                g = domains * size
                                u, p = _parts(h, i, s, far, domains, g, radix, taper, joins)
                                units.append(u)
                                optic_w = OPTICS[2 * i][3]
                                switches = u[FIRST["switch"] + s]
                                w = (
                                    domains * watts
                                    + g * nic_w
                                    + switches * switch_w
                                    + u[FIRST["optic"] :].sum() * optic_w
                                )
                                uses.append((g, round(w), domains * racks + switches / 32, p))
    return np.array(units), np.array(uses)


def _parts(h, i, s, far, domains, g, radix, taper, joins):
    u = np.zeros(sum(EACH_KIND.values()))
    u[FIRST["hb"] + h] = domains
    u[FIRST["nic"] + i] = g
    down = radix * taper // (taper + 1)
    leaves = -(-g // down)
    up = leaves * (radix - down) if leaves > 1 else 0
    spines = 0 if joins else -(-up // radix)
    u[FIRST["switch"] + s] = leaves + spines
    u[FIRST["optic"] + 2 * i] += 2 * g
    u[FIRST["optic"] + 2 * i + far] += 2 * up
    return u, (up * (1 << i) // 4 if joins else 0)


def partition(workloads: int, seed: int, mappings: int = 24, slack: float = 0.01) -> ChoiceData:
    """A partition problem with all couplings; caps leave `slack` to a choice of few dollars, watts
    and GPUs.
    """
    rng = np.random.default_rng(seed)
    sizes = np.round(2 ** rng.uniform(8, 12.5, size=workloads))
    talks = rng.uniform(0.05, 0.5, size=workloads)
    found = [workload_options(rng, g, t, mappings) for g, t in zip(sizes, talks, strict=True)]
    units, uses = (np.concatenate(parts) for parts in zip(*found, strict=True))
    free = ChoiceData(
        workloads=workloads,
        workload=np.repeat(np.arange(workloads), [len(u) for u, _ in found]),
        usd=np.zeros(len(units)),
        opex=np.round(uses[:, 1] * USD_PER_W),
        quantity=units,
        products=products(float(sizes.sum()) * 1.3),
        kinds=tuple(
            Kind(
                name=kind,
                products=np.arange(FIRST[kind], FIRST[kind] + EACH_KIND[kind]),
                max_products=most,
            )
            for kind, most in MOST.items()
        ),
        limits=tuple(
            LimitedUse(name=name, key=name, use=uses[:, j], cap=np.inf, core=(core,))
            for j, (name, core) in enumerate(
                [("gpus", 0.0), ("watts", SWITCHES[-1][4]), ("racks", 1 / 32)]
            )
        ),
        cores=(
            CoreLayer(
                product=CORE_SWITCH,
                ports=SWITCHES[-1][1],
                up=uses[:, 3],
                opex=round(SWITCHES[-1][4] * USD_PER_W),
            ),
        ),
    )
    spent = worth(free, _thrifty(free))
    limits = tuple(
        replace(a, cap=float(np.ceil(spent.uses[a.name] * (1 + slack)))) for a in free.limits
    )
    return replace(free, limits=limits, budget=float(round(spent.capex_usd * (1 + slack))))


def _thrifty(data: ChoiceData) -> Ints:
    """The options of least dollars, watts and GPUs together among the products allowed, the core's
    switch included.
    """
    usd = data.quantity @ np.array([p.usd[0] for p in data.products])
    scores = sum(
        values / sum(values[data.workload == w].min() for w in range(data.workloads))
        for values in (usd, *(a.use for a in data.limits[:2]))
    )
    bought = np.array([data.uses(p) for p in range(len(data.products))]).T
    best, least = None, np.inf
    for allowed in product(
        *(combinations(range(FIRST[k], FIRST[k] + EACH_KIND[k]), most) for k, most in MOST.items())
    ):
        barred = np.setdiff1d(np.arange(FIRST["optic"]), np.concatenate(allowed))
        shown = np.where(bought[:, barred].any(axis=1), np.inf, scores)
        mine = [np.flatnonzero(data.workload == w) for w in range(data.workloads)]
        chosen = np.array([rows[np.argmin(shown[rows])] for rows in mine])
        if shown[chosen].sum() < least:
            best, least = chosen, float(shown[chosen].sum())
    assert best is not None
    return best
