"""Max-min fair rates against cases worked out by hand, and against what defines them."""

import random

import pytest

from coopt.verifier.simulation.events import EventClock, FairRates, Flow


def flow(phase: str, *links: str, volume: float = 1.0, share: float = 1.0) -> Flow:
    return Flow(phase, volume, dict.fromkeys(links, share))


def all_of(rates: FairRates) -> int:
    return (1 << len(rates.number)) - 1


def test_what_is_alike_is_filled_once() -> None:
    """A thousand flows of two kinds make two groups, and rates as if each were filled alone."""
    flows = [flow("all", f"nic {i}", f"up {i % 2}", share=0.01 if i % 2 else 1 / 300) for i in range(1000)]
    rates = FairRates(flows)
    assert len(rates._groups) == 2
    assert rates.pace("all") == pytest.approx(1 / (500 * 0.01))


def by_definition(flows: list[Flow]) -> list[float]:
    """Rates by filling flow by flow: the bottleneck with the least fair share comes first."""
    rates, left = [0.0] * len(flows), set(range(len(flows)))
    room = {link: 1.0 for one in flows for link in one.uses}
    while left:
        fair = {
            link: free / sum(flows[i].uses[link] * flows[i].volume for i in left if link in flows[i].uses)
            for link, free in room.items()
            if any(link in flows[i].uses for i in left)
        }
        tight = min(fair, key=lambda link: fair[link])
        for i in [i for i in left if tight in flows[i].uses]:
            rates[i] = fair[tight] * flows[i].volume
            left.discard(i)
            for link, share in flows[i].uses.items():
                room[link] -= share * rates[i]
    return [rate / one.volume for rate, one in zip(rates, flows, strict=True)]


@pytest.mark.parametrize("seed", range(40))
def test_random_flows_are_max_min_fair(seed: int) -> None:
    """Against filling without groups; few kinds of shares, so that many flows are alike."""
    draw = random.Random(seed)
    links = [f"l{i}" for i in range(draw.randint(2, 6))]
    flows = [
        Flow(
            draw.choice("abc"),
            draw.choice([1.0, 0.5]),
            {link: draw.choice([1.0, 0.25]) for link in draw.sample(links, draw.randint(1, len(links)))},
        )
        for _ in range(draw.randint(1, 12))
    ]
    rates, expected = FairRates(flows), by_definition(flows)
    found = rates.paces(all_of(rates))
    for phase, number in rates.number.items():
        slowest = min(rate for one, rate in zip(flows, expected, strict=True) if one.phase == phase)
        assert found[number] == pytest.approx(slowest)


def test_a_transfer_speeds_up_when_another_ends() -> None:
    """Two share a link until the short one is through: 1 of 3 units each by then, and the rest alone."""
    clock, ends = EventClock(FairRates([flow("short", "l"), flow("long", "l")])), dict[str, float]()
    clock.transfer("short", 1.0, lambda: ends.__setitem__("short", clock.now))
    clock.transfer("long", 3.0, lambda: ends.__setitem__("long", clock.now))
    clock.run()
    assert ends == pytest.approx({"short": 2.0, "long": 4.0})


def test_a_transfer_slows_down_when_another_begins() -> None:
    clock, ends = EventClock(FairRates([flow("first", "l"), flow("second", "l")])), dict[str, float]()
    clock.transfer("first", 2.0, lambda: ends.__setitem__("first", clock.now))
    clock.after(1.0, lambda: clock.transfer("second", 2.0, lambda: ends.__setitem__("second", clock.now)))
    clock.run()
    assert ends == pytest.approx({"first": 3.0, "second": 4.0})
