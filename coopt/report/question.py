"""What was asked, line by line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from coopt.instance.schema import Instance, Limits
from coopt.instance.workload import Workload
from coopt.report import words
from coopt.report.sentence import ratio_of
from coopt.report.workload import trained

MINIMISED = {"capex": "the purchase", "power": "the power", "tco": "purchase plus electricity"}


def question_rows(instance: Instance) -> Iterator[tuple[str, str]]:
    """What is trained and how fast, what may be built, and what is minimised."""
    network = instance.network
    for workload in instance.workload:
        yield f"Train {workload.name}", f"{trained(workload)}; {_bound(workload)}"
    yield "GPUs", f"{_either(map(words.count, instance.cluster.gpus))} x {instance.cluster.gpu.name}"
    yield "HB domains", _either(domain.name for domain in network.hb_domains)
    yield "Networks", f"{_either(network.fabrics)}, up to {words.counted(network.max_tiers, 'tier')}"
    yield "Oversubscription", _ratios(instance)
    per_gpu = _either(map(words.count, network.nics_per_gpu))
    yield "NICs", f"{_either(nic.name for nic in network.nics)}, {per_gpu} per GPU"
    yield "Switches", _either(switch.name for switch in network.switches)
    yield "Optics", _either(optic.name for optic in network.optics)
    yield "Minimised", MINIMISED[instance.objective.minimize]
    if limits := list(_limits(instance.limits)):
        yield "Limits", ", ".join(limits)


def _bound(workload: Workload) -> str:
    bound = f"at most {words.seconds(workload.bound_s)} an iteration"
    own = workload.in_own_units(workload.bound_s)
    return f"{bound} ({own})" if own else bound


def _ratios(instance: Instance) -> str:
    ratios = instance.network.ratios
    if ratios is not None:
        return _either(map(ratio_of, ratios))
    largest = instance.network.largest_ratio
    return "none" if largest <= 1 else f"up to {ratio_of(largest)}"


def _limits(limits: Limits) -> Iterator[str]:
    if limits.power_mw is not None:
        yield f"at most {limits.power_mw:g} MW"
    if limits.capex_usd is not None:
        yield f"at most {words.money(limits.capex_usd)} of purchase"
    if limits.racks is not None:
        yield f"at most {limits.racks:g} racks"


def _either(names: Iterable[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} or {last}" if most else last
