"""The replay notices every way in which a schedule can be wrong, and names step and link."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coopt.network.direct_shapes import fabric
from coopt.network.schedules.board import board_of
from coopt.network.schedules.schedule_form import Hop, Schedule, replay
from coopt.network.schedules.textbook import ring_schedule
from coopt.network.schedules.trees import multitree
from tests.conftest import example_count
from tests.network.schedules.random_fabrics import fabrics


def hops_of(schedule: Schedule, place: int, hop: Hop | None) -> Schedule:
    """One hop replaced, or removed."""
    hops = list(schedule.hops)
    hops[place : place + 1] = [hop] if hop else []
    return replace(schedule, hops=tuple(sorted(hops)))


def later(schedule: Schedule) -> tuple[int, Hop]:
    """A hop of the third step that a domain passes on, in the first step."""
    place, hop = next((i, hop) for i, hop in enumerate(schedule.hops) if hop.step == 2 and hop.path[0] != hop.chunk)
    return place, hop._replace(step=0)


def twice(schedule: Schedule) -> Schedule:
    return replace(schedule, hops=tuple(sorted([*schedule.hops, schedule.hops[7]])))


def back_to_the_root(schedule: Schedule) -> Schedule:
    last = next(hop for hop in reversed(schedule.hops) if hop.path[0] != hop.chunk)
    return replace(schedule, hops=tuple(sorted([*schedule.hops, last._replace(path=last.path[::-1])])))


MUTANTS = {
    "lost": (lambda s: hops_of(s, 0, None), "has not reached d"),
    "lost-contribution": (lambda s: hops_of(s, 0, None), "lacks the contribution of d"),
    "earlier": (lambda s: hops_of(s, *later(s)), "the sender does not have it"),
    "other-chunk": (lambda s: hops_of(s, 0, s.hops[0]._replace(chunk=(s.hops[0].chunk + 5) % 16)), "chunk"),
    "twice-crowded": (twice, "carries 2 chunks, but has room for only 1"),
    "twice-received": (twice, "the receiver has it already"),
    "twice-reduced": (twice, "counts twice"),
    "back": (back_to_the_root, "the receiver has it already"),
    "no-link": (
        lambda s: hops_of(s, 0, s.hops[0]._replace(path=(s.hops[0].path[0], 10))),
        "needs the link d0.0 -> d2.2",
    ),
    "fewer-rounds": (lambda s: replace(s, rounds=s.rounds[:-1]), "this step or chunk does not exist"),
    "root": (lambda s: replace(s, roots=(1, *s.roots[1:])), "the sender does not have it"),
    "root-outside": (lambda s: replace(s, roots=(16, *s.roots[1:])), "is not a domain"),
    "chunk-outside": (lambda s: hops_of(s, 0, s.hops[0]._replace(chunk=99)), "this step or chunk does not exist"),
    "vertex-outside": (lambda s: hops_of(s, 0, s.hops[0]._replace(path=(0, 99))), "is not a path"),
    "no-path": (lambda s: hops_of(s, 0, s.hops[0]._replace(path=(0,))), "is not a path"),
    "other-size": (lambda s: replace(s, domains=15), "its 15 domains differ from the 16 domains of the graph"),
}


@pytest.mark.parametrize("kind", MUTANTS)
def test_a_mutant_is_caught(drawn, kind):
    graph, board = drawn("torus:4x4")
    mutate, says = MUTANTS[kind]
    faults = replay(graph, mutate(multitree(board)))
    assert any(says in fault for fault in faults), faults


def test_faults_name_phase_step_and_link(drawn):
    graph, board = drawn("torus:4x4")
    faults = replay(graph, twice(multitree(board)))
    assert any(fault.startswith("gather step 0: link d") and " -> d" in fault for fault in faults)
    assert any(fault.startswith("reduce step 3: link d") and " -> d" in fault for fault in faults)


def test_every_single_hop_that_is_lost_is_noticed(drawn):
    graph, board = drawn("ring:5")
    schedule = multitree(board)
    assert all(replay(graph, hops_of(schedule, place, None)) for place in range(len(schedule.hops)))


@settings(max_examples=example_count(300, 30))
@given(graph=fabrics(switched=True), data=st.data())
def test_a_random_mutant_of_a_random_schedule_is_caught(graph, data):
    schedule = multitree(board_of(graph))
    place = data.draw(st.integers(0, len(schedule.hops) - 1))
    hop = schedule.hops[place]
    other = data.draw(st.integers(1, len(schedule.roots) - 1))
    mutants = {
        "lost": hops_of(schedule, place, None),
        "twice": replace(schedule, hops=tuple(sorted([*schedule.hops, hop]))),
        "other chunk": hops_of(schedule, place, hop._replace(chunk=(hop.chunk + other) % len(schedule.roots))),
        "backwards": hops_of(schedule, place, hop._replace(path=hop.path[::-1])),
        "other root": replace(
            schedule,
            roots=tuple(
                (r + other) % len(schedule.roots) if c == hop.chunk else r for c, r in enumerate(schedule.roots)
            ),
        ),
    }
    assert {kind for kind, mutant in mutants.items() if not replay(graph, mutant)} == set()


def test_a_schedule_for_another_graph_is_noticed(drawn):
    """As a path that ends at a switch is, and one through a switch that is gone."""
    _, board = drawn("torus:4x4")
    mesh, _ = drawn("mesh:4x4")
    assert any("needs the link d0.0 -> d" in fault for fault in replay(mesh, multitree(board)))
    assert "differ from the 16" in replay(fabric("hyperx:2x8"), multitree(board))[0]
    graph, board = drawn("clos:2x2:2")
    schedule = ring_schedule(board)
    cut = schedule.hops[0]._replace(path=schedule.hops[0].path[:-1])
    assert "two domains" in replay(graph, hops_of(schedule, 0, cut))[0]
    crossing = next(hop for hop in schedule.hops if len(hop.path) == 5)
    graph.remove_node(board.names[crossing.path[2]])
    assert any("which does not exist" in fault for fault in replay(graph, schedule))
