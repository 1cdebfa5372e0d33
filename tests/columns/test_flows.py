"""Closed forms of flows against going through every domain."""

import random
from collections.abc import Iterator

import numpy as np
import pytest

from coopt.columns import flows
from coopt.columns.algorithm_loads import most_edges
from coopt.columns.flows import NicLayout
from coopt.network.schedules.textbook import two_trees

CASES = 400


def groups(random_: random.Random) -> tuple[int, int, int]:
    """Domains, and a stride and members whose blocks tile them."""
    stride, members = random_.choice([1, 1, 2, 3, 4, 6]), random_.choice([1, 2, 3, 4, 5, 8])
    return stride * members * random_.randint(1, 5), stride, members


def successor(domain: int, stride: int, members: int) -> int:
    place = domain // stride % members
    return domain + stride if place < members - 1 else domain - (members - 1) * stride


def peers(domain: int, stride: int, members: int) -> list[int]:
    first = domain - domain // stride % members * stride
    return [first + i * stride for i in range(members) if first + i * stride != domain]


def intervals(domains: int, span: int) -> Iterator[range]:
    return (range(a, min(a + span, domains)) for a in range(0, domains, span))


@pytest.mark.parametrize("seed", range(4))
def test_rings_and_exchanges_leave_an_interval_as_counted_one_by_one(seed: int) -> None:
    random_ = random.Random(seed)
    for _ in range(CASES // 4):
        domains, stride, members = groups(random_)
        span = random_.randint(1, domains + 1)
        for inside in intervals(domains, span):
            a, b, s, y = (np.array([value]) for value in (inside.start, inside.stop, stride, members))
            out = sum(successor(d, stride, members) not in inside for d in inside)
            sent = sum(sum(p not in inside for p in peers(d, stride, members)) / max(members - 1, 1) for d in inside)
            assert flows.ring(a, b, s, y)[0] == out
            assert flows.exchange(a, b, s, y)[0] == pytest.approx(sent, abs=1e-12)
        columns = [np.array([value]) for value in (domains, span, stride * members, stride, members)]
        each = [sum(successor(d, stride, members) not in one for d in one) for one in intervals(domains, span)]
        assert flows.busiest(flows.ring, *columns)[0] == max(each)
        shares = [
            sum(sum(p not in one for p in peers(d, stride, members)) / max(members - 1, 1) for d in one)
            for one in intervals(domains, span)
        ]
        assert flows.busiest(flows.exchange, *columns)[0] == pytest.approx(max(shares), abs=1e-12)


@pytest.mark.parametrize("stages", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("pipelines", [1, 2, 3])
def test_twins_leave_an_interval_as_counted_one_by_one(stages: int, pipelines: int) -> None:
    """Stages as far from either end of a pipeline, of one to four domains each; of pipelines side by side, too."""
    for stage in (1, 2, 3, 4):
        line = stage * stages
        twin = {
            d: d // line * line + line - stage - d % line // stage * stage + d % stage for d in range(line * pipelines)
        }
        assert all(twin[twin[d]] == d for d in twin)
        for span in range(1, line * pipelines + 1):
            each = []
            for inside in intervals(line * pipelines, span):
                own = [np.array([value]) for value in (inside.start, inside.stop, line, stage)]
                each.append(sum(twin[d] not in inside for d in inside))
                assert flows.mirrored(*own)[0] == each[-1]
            columns = [np.array([value]) for value in (line * pipelines, span, line, line, stage)]
            assert flows.busiest(flows.mirrored, *columns)[0] == max(each)
            if pipelines == 1:
                assert flows.busiest(flows.mirrored, *columns[:2], None, *columns[3:])[0] == max(each)


@pytest.mark.parametrize("members", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_groups_that_lie_farther_apart_leave_no_interval_less(stride: int, members: int) -> None:
    """With stages side by side nothing but hops is relieved."""
    for step in (2, 3, 4):
        domains = 2 * stride * members * step
        a, b = (ends.ravel() for ends in np.meshgrid(np.arange(domains), np.arange(1, domains + 1)))
        a, b = a[a < b], b[a < b]
        s, y = np.full_like(a, stride), np.full_like(a, members)
        for count in (flows.ring, flows.exchange):
            assert (count(a, b, s * step, y) >= count(a, b, s, y) - 1e-9).all()


@pytest.mark.parametrize("closed", [0, 1])
@pytest.mark.parametrize("stages", [1, 2, 3, 4, 7])
def test_hops_leave_an_interval_as_counted_one_by_one(stages: int, closed: int) -> None:
    for stage, span in ((q, h) for q in (1, 2, 3, 5) for h in range(1, q * stages + 1)):
        domains = stage * stages

        def neighbour(d: int, step: int, stage: int = stage, domains: int = domains) -> int | None:
            there = d + step * stage
            if closed and stages > 1:
                return there % domains
            return there if 0 <= there < domains else None

        most: dict[str, int] = {"next": 0, "both": 0, "rail": 0, "tied": 0}
        for inside in intervals(domains, span):
            line = [np.array([value]) for value in (inside.start, inside.stop, domains, stage, closed * (stages > 1))]
            outside = [(neighbour(d, 1), neighbour(d, -1)) for d in inside]
            later = sum(n is not None and n not in inside for n, _ in outside)
            senders: dict[tuple[int, str], set[int]] = {(end, way): set() for end in (0, 1) for way in "oi"}
            for d in inside:
                for step in (1, -1):
                    there = neighbour(d, step)
                    if there is None or there in inside:
                        continue
                    here, beyond = d // stage, there // stage
                    wraps = abs(here - beyond) != 1 or (stages == 2 and d + step * stage != there)
                    if wraps and stages % 2:
                        out, into = (0, 1) if step == 1 else (1, 0)
                    else:
                        out = into = 0 if wraps or min(here, beyond) % 2 else 1
                    senders[out, "o"].add(d)
                    senders[into, "i"].add(d)
            rails = {key: len(members) for key, members in senders.items()}
            earlier = sum(n is not None and n not in inside for _, n in outside)
            some = sum(any(n is not None and n not in inside for n in pair) for pair in outside)
            assert flows.hops_ahead(*line)[0] == later
            assert flows.hops_behind(*line)[0] == earlier
            assert flows.either(*line)[0] == some
            far = domains - stage
            first = sum(d < stage and stages > 1 and d + far not in inside for d in inside)
            last = sum(d >= far and stages > 1 and d - far not in inside for d in inside)
            assert flows.tied(*line, np.array([flows.BOTH]))[0] == first + last
            most["both"] = max(most["both"], some)
            most["rail"] = max(most["rail"], *rails.values())
            most["tied"] = max(most["tied"], first + last)
        columns = [np.array([value]) for value in (domains, span)]
        own = [np.array([value]) for value in (domains, stage, closed * (stages > 1))]
        assert flows.busiest(flows.hop, *columns, None, *own, np.array([flows.BOTH]))[0] == most["both"]
        assert flows.busiest(flows.hop, *columns, None, *own, np.array([flows.RAIL]))[0] == most["rail"]
        assert flows.busiest(flows.tied, *columns, None, *own, np.array([flows.BOTH]))[0] == most["tied"]


def test_end_points_that_send_are_counted_window_by_window() -> None:
    random_ = random.Random(5)
    for _ in range(CASES):
        ends, domains = random_.randint(1, 12), random_.randint(1, 9)
        window = random_.randint(1, ends * domains)
        cuts = sorted(random_.choices(range(ends + 1), k=4))
        ranges = ((cuts[0], cuts[1]), (cuts[2], cuts[3]))
        sends = [any(low <= e % ends < high for low, high in ranges) for e in range(ends * domains)]
        most = max(sum(sends[start : start + window]) for start in range(0, ends * domains, window))
        assert flows.sending(window, ends, ends * domains, *ranges) == most


def test_edges_of_trees_leave_leaves_that_hold_parts_of_domains_as_counted_one_by_one() -> None:
    random_, few = random.Random(8), 0
    for _ in range(3 * CASES):
        stride, members = random_.choice([1, 1, 1, 2, 3]), random_.choice([2, 3, 4, 5, 6, 8])
        domains = stride * members * random_.choice([1, 1, 2])
        ends = random_.randint(2, 12)
        nics, window = random_.randint(1, ends), random_.randint(1, ends - 1)
        of_member = [0] * members
        for tree in two_trees(members):
            for parent, below in tree.items():
                of_member[parent] += len(below)
                for child in below:
                    of_member[child] += 1
        numbers = range(ends * domains)
        edges = [of_member[e // ends // stride % members] if e % ends < nics else 0 for e in numbers]
        loads = [sum(edges[start : start + window]) / 4 for start in range(0, ends * domains, window)]
        layout = NicLayout(domains=domains, span=0, nics=nics, ends=ends, down=window)
        row = NicLayout(**{name: np.array([value]) for name, value in vars(layout).items()})
        assert most_edges(row, np.array([stride]), np.array([members]))[0] == max(loads)
        few += max(loads) < max(of_member) / 4 * flows.sending(window, ends, ends * domains, (0, nics))
    assert few > 10
