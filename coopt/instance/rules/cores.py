"""Consistency rules of `[sharing.core]` and of channels that end in its ports."""

from __future__ import annotations

from collections.abc import Iterator

from coopt.instance.catalog import ports_of_modules
from coopt.instance.couplings import Core
from coopt.instance.hardware import Optic, Switch, mate
from coopt.instance.question import Question
from coopt.instance.texts import both, broken, counted


def core_disagreements(instance: Question) -> Iterator[str]:
    """Yield sentences about `[sharing.core]` that is inconsistent with other tables."""
    network, core = instance.network, instance.sharing.core
    if core is None:
        return
    place = f"sharing.core.switch = {core.switch!r}"
    switch = next((entry for entry in network.switches if entry.name == core.switch), None)
    if switch is None:
        listing = ", ".join(entry.name for entry in network.switches)
        yield f"{place}: the instance does not list it, needs one of {listing}"
        return
    ports = switch.radix if network.switch_cages == "told" else ports_of_modules(switch, 1)
    if len(instance.workload) > ports:
        yield (
            f"{place}: has {counted(ports, 'port')} for {len(instance.workload)} workloads, needs"
            " at least one for each, so that the networks of any two share a switch"
        )
    nics_gbit_s = network.gbit_s_into(switch)
    if not nics_gbit_s:
        yield (
            f"{place}: its ports have {switch.port_gbit_s:g} Gbit/s, needs a NIC in network.nics"
            " whose ports have that rate (with as many planes as network.nic_planes allows)"
        )
        return
    yield from _core_optics(instance, core, switch)
    if core.gbit_s_per_gpu > nics_gbit_s:
        yield (
            f"sharing.core.gbit_s_per_gpu = {core.gbit_s_per_gpu:g}: the NICs of a GPU send only"
            f" {nics_gbit_s:g} Gbit/s, needs at most {nics_gbit_s:g}"
        )


def border_disagreements(instance: Question) -> Iterator[str]:
    """Yield complaints about a core in which channels between sites end, and about what says how
    they end without one.
    """
    network, core = instance.network, instance.sharing.core
    if core is None or not instance.wan:
        yield from broken(
            *(
                (
                    wan.km is not None or wan.optics,
                    f"wan[{w}].{'optics' if wan.optics else 'km'}: applies only to channels that"
                    " end in ports of a core, needs [sharing.core]",
                )
                for w, wan in enumerate(instance.wan)
            )
        )
        return
    yield from core_disagreements(instance)
    switch = next((entry for entry in network.switches if entry.name == core.switch), None)
    if switch is None:
        return
    rate, place = switch.port_gbit_s, f"sharing.core.switch = {core.switch!r}"
    yield from broken(
        (
            core.optic is None,
            "sharing.core.optic: is missing, but channels between sites end in ports of the"
            " core, needs the listed optic for the core's end of links from leaves",
        ),
        (
            switch.protocol == "infiniband",
            f"{place}: channels between sites carry Ethernet, needs a switch of that protocol",
        ),
        (
            instance.existing,
            f"{place}: channels in ports of a core are not supported with [[existing]], needs an"
            " instance without one of the two",
        ),
    )
    for w, wan in enumerate(instance.wan):
        reaches_km = [optic.reach_m / 1000 for optic in wan.optics_in(switch, mates=network.mates)]
        need = f"needs an optic of {rate:g} Gbit/s in wan[{w}].optics that reaches its km"
        yield from broken(
            (
                wan.km is None,
                f"wan[{w}].km: is missing, needs the length of the fibre (km), which decides the"
                " optics in ports of the core",
            ),
            (
                wan.km is not None and max(reaches_km, default=-1.0) < wan.km,
                f"wan[{w}].km = {wan.km or 0:g}: the optics of wan[{w}].optics that fit"
                f" {core.switch} reach only {max(reaches_km):g} km, {need}"
                if reaches_km
                else f"wan[{w}].optics: none of {rate:g} Gbit/s fits {core.switch}, {need}",
            ),
        )


def _core_optics(instance: Question, core: Core, switch: Switch) -> Iterator[str]:
    """Yield complaints about optics that do not reach from NICs over leaves to the core, or differ
    from the core's optic.
    """
    network, rate, place = (
        instance.network,
        switch.port_gbit_s,
        f"sharing.core.switch = {core.switch!r}",
    )
    rate_optics = [optic for optic in network.optics if optic.links_of(rate)]
    core_optics = [optic for optic in rate_optics if _fits_core(instance, optic, switch)]
    ends = (
        ("links from NIC to leaf", "", rate_optics),
        ("links to the core", " that fits the core", core_optics),
    )
    for reach_m, (stretch, fit, optics) in zip(network.needed_reach_m[::2], ends, strict=True):
        if not any(optic.reach_m >= reach_m for optic in optics):
            yield (
                f"{place}: no optic of {rate:g} Gbit/s{fit} reaches {reach_m:g} m, the length of"
                f" {stretch}, needs one in network.optics or another network.link_reach_m"
                if reach_m
                else f"{place}: no optic for {stretch} has {rate:g} Gbit/s"
                f"{' and fits the core' * bool(fit)}, needs one in network.optics"
            )
    reach_m, by_length = network.needed_reach_m[-1], network.cables == "hall"
    links_of = {
        optic.name: optic.links_of(rate) for optic in core_optics if optic.reach_m >= reach_m
    }
    listed = both(map(repr, core.optics))
    reaching = "" if by_length else f" and reaches {reach_m:g} m"
    yield from broken(
        *(
            (
                # without any, the complaint above has said that the optics listed are too few
                links_of and name not in links_of,
                f"sharing.core.optic = {name!r}: needs a listed optic of {rate:g} Gbit/s that"
                f" fits {core.switch}{reaching}{'' if instance.wan else ', or no value'}",
            )
            for name in core.optics
        ),
        (
            not by_length and len(core.optics) > 1,
            f"sharing.core.optic: lists {listed}, among which lengths of cables choose,"
            " needs network.cables = 'hall', or one of them",
        ),
        (
            instance.wan and len({links_of.get(name) for name in core.optics}) > 1,
            f"sharing.core.optic: {listed} carry different numbers of links, which a"
            " border does not choose from, needs those of one number",
        ),
    )


def _fits_core(instance: Question, optic: Optic, switch: Switch) -> bool:
    """Whether a module can be at the core's end of links.

    It has one link, or, where ends have their own modules, few enough that each island has a module
    on every switch.
    """
    network, links = instance.network, optic.links_of(switch.port_gbit_s)
    if network.mates and not mate(optic, switch):
        return False
    if not network.has_own_ends or links < 2:
        return links == 1
    ports = switch.radix if network.switch_cages == "told" else ports_of_modules(switch, links)
    fits = switch.radix % links == 0 and optic.gbit_s <= switch.cage_gbit_s
    return fits and ports // links >= len(instance.workload)
