"""Ways of collectives between domains: the schedules played chunk by chunk, and the least of all that are possible."""

from collections import Counter
from random import Random

import numpy as np
import pytest

from coopt.columns.algorithm_loads import algorithm_patterns
from coopt.columns.flows import Groups
from coopt.network.schedules.textbook import Tree, two_trees
from coopt.perf.algorithms import sized_algorithms, starts_per_byte
from coopt.perf.collectives import Algorithms, LinkRates, Reciprocals, gather, min_steps, switched_share, tree_levels


def groups(stride: int, members: int) -> Groups:
    """Replicas only, `stride` domains apart."""
    fields = dict.fromkeys(Groups._fields, 1) | {"tp": stride, "stage": stride * members, "copies": members}
    return Groups(**{name: np.array([value]) for name, value in fields.items()})


@pytest.mark.parametrize("members", range(2, 41))
def test_halving_and_doubling_gathers_everything_in_the_rounds_that_are_charged(members: int) -> None:
    """The gather begins with the farthest; nobody sends what another has, and all have all in the end."""
    rounds = [one for one in algorithm_patterns(groups(1, members), (("dp", "halving"),)) if one.share[0] > 0]
    assert len(rounds) == tree_levels(members)
    held = [{rank} for rank in range(members)]
    for one in reversed(rounds):
        stride, size, far = (int(column[0]) for column in one.columns)
        to = [(i ^ stride) if size == 2 else (i + far) % members for i in range(members)]
        distance = stride if size == 2 else far
        offsets = range(0, members - distance, 2 * distance)
        sent = [{(i - n) % members if size > 2 else i ^ n for n in offsets} for i in range(members)]
        assert all(chunks <= held[i] for i, chunks in enumerate(sent))
        for i, chunks in enumerate(sent):
            assert not chunks & held[to[i]]
            assert len(chunks) / (members - 1) == pytest.approx(one.share[0])
        held = [held[i] | sent[to.index(i)] for i in range(members)]
    assert all(len(chunks) == members for chunks in held)


def depth(tree: Tree) -> int:
    """Edges from the root to the farthest leaf."""
    (root, *_), below = tree, {child: parent for parent, children in tree.items() for child in children}
    found = 0
    for rank in below:
        steps = 0
        while rank != root:
            rank, steps = below[rank], steps + 1
        found = max(found, steps)
    return found


@pytest.mark.parametrize("members", [*range(4, 40), 100])
def test_two_trees_add_up_in_their_depth_and_no_rank_sends_more_than_is_charged(members: int) -> None:
    """Each tree carries one half of D up and down; D is what a half of an all-reduce is charged."""
    sent, received = Counter[int](), Counter[int]()
    for tree in two_trees(members):
        assert depth(tree) <= tree_levels(members)
        for parent, children in tree.items():
            for child in children:
                for a, b in ((child, parent), (parent, child)):
                    sent[a] += 1
                    received[b] += 1
    assert max(sent.values()) == max(received.values()) == 4  # halves of D, of both halves of an all-reduce


def test_the_fastest_of_all_ways_is_charged() -> None:
    """500 random messages: what `gather` and its ways come to, beside every way written out."""
    draw, named = Random(5), Counter[str]()
    for _ in range(500):
        x, y = draw.choice([1, 1, 2, 8, 9]), draw.choice([1, 2, 3, 4, 6, 8, 32, 100, 512])
        size, summed, switched = 10 ** draw.uniform(3, 10), draw.random() < 0.5, draw.random() < 0.3
        rates = {algorithm: draw.uniform(1, 4) / 50e9 for algorithm in ("ring", "halving", "trees")}
        links = LinkRates(0.8 * 450e9, 0.9, 0.9, 8e-6, 1e-6, 0.0, rail_reduces=switched)
        ends = np.array([x]), np.array([y])
        half = gather(links, np.array([size]), *ends, "dp", summed=np.array([summed]), sized=True)
        share = switched_share(ends[1], summed) if switched else 1.0
        starts = starts_per_byte(1, half, "dp")
        algorithms = sized_algorithms(links, *ends, starts, share, np.array([summed]))
        others = {("dp", name): np.array([rates[name]]) for name in ("halving", "trees")}
        r = Reciprocals(
            **dict.fromkeys(("tp", "cp", "ep", "edp", "pp", "tied"), 0.0), dp=rates["ring"], algorithms=others
        )
        charged = float(half.at(Algorithms(dp=algorithms).charged(r))[0])
        seconds = written_out(links, size, x, y, rates, summed=summed)
        assert charged == pytest.approx(min(seconds.values()), rel=1e-12), (x, y, size, summed, switched)
        named[min(seconds, key=seconds.__getitem__)] += 1
    assert len(named) == 6
    assert min(named.values()) > 10, named


def written_out(
    links: LinkRates, size: float, x: int, y: int, rates: dict[str, float], *, summed: bool
) -> dict[str, float]:
    """Seconds of half of an all-reduce by every way there is."""
    if x * y == 1:
        return {"one rank": 0.0}
    near, far, n = int(tree_levels(x)), int(tree_levels(y)), x * y
    across = {algorithm: s_byte / links.rail for algorithm, s_byte in rates.items()}
    inside_s = (x - 1) / x * size / links.hb_byte_s

    def taking(moved_s: float, steps: int) -> float:
        return moved_s + links.latency_s + links.step_s * steps

    if summed and links.rail_reduces and y > 1:
        found = {"switches": taking(inside_s + size / 2 / x * across["ring"], near + far)}
    else:
        found = {"rings": taking(inside_s + (y - 1) / y * size / x * across["ring"], near + y - 1)}
    if x > 1 and y > 1:
        passed = (n - 1) / n * size
        found["one ring"] = taking(max(passed / links.hb_byte_s, passed / x * across["ring"]), n - 1)
    if y > 2:
        halved = taking(inside_s + (y - 1) / y * size / x * across["halving"], int(min_steps(x, y)))
        found["halving"] = halved
        if summed and y > 3:
            chain_s = size / links.hb_byte_s if x > 1 else 0.0
            found["trees"] = taking(max(chain_s, size / x * across["trees"]), x - 1 + far)
    return found
