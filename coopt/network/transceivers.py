"""Modules at the ends of links: one for each end, or fewer where a module breaks out into several slower links."""

from __future__ import annotations

from coopt.network.family import Family, core_group, levels


def modules(family: Family, uplinks: int) -> tuple[int, ...]:
    """Modules at both ends of the links of each level, over all planes; one holds links of a single switch or NIC."""
    tiers, per_module = levels(family, uplinks), family.per_module
    if max(per_module, default=1) == 1:
        return tuple(2 * level.links for level in tiers)
    counts = [family.nic_count * family.nic_planes // per_module[0] + _on_leaves(family, per_module[0])]
    if family.tiers == 2:
        links, spines = family.leaves * uplinks, family.spines(uplinks)
        counts.append(family.all_planes * (links // per_module[1] + _in_turn(links, spines, per_module[1])))
    elif family.pods is not None:
        pods, slices, cores = family.pods, family.all_planes * family.slices(uplinks), core_group(family)
        whole, rest = divmod(family.leaves * pods.each, pods.l)
        below = whole * -(-pods.l // per_module[1]) + -(-rest // per_module[1])
        counts.append(family.all_planes * family.leaves * uplinks // per_module[1] + slices * below)
        up = pods.count * -(-pods.w // per_module[2])
        counts.append(slices * (up + _in_turn(pods.count * pods.w, cores, per_module[2])))
    return tuple(counts)


def _on_leaves(family: Family, per_module: int) -> int:
    """Modules of leaves towards NICs; planes that share the switch of a single tier share its modules."""
    if family.tiers == 1:
        together = family.planes_together
        whole, rest = divmod(family.planes, together)
        ports = [(whole, together * family.down), (1, rest * family.down)]
        return family.nic_planes * sum(count * -(-of // per_module) for count, of in ports)
    rails, domains, down = family.nics_of_domain // family.planes, family.domains, family.down
    rows, of_row = (rails, domains) if family.fabric != "clos" and domains > down else (1, rails * domains)
    filled = down if family.fabric == "clos" or domains > down else down // domains * domains  # of whole rails
    whole, rest = divmod(of_row, filled)
    return family.all_planes * rows * (whole * -(-filled // per_module) + -(-rest // per_module))


def _in_turn(links: int, switches: int, per_module: int) -> int:
    """Modules of switches that take links in turn."""
    each, more = divmod(links, switches)
    return (switches - more) * -(-each // per_module) + more * -(-(each + 1) // per_module)
