"""Flows that are spread over all paths: conserved, and as even as the links of a switch allow."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from coopt.network.family import Pods
from coopt.network.routing.layers import Flows
from coopt.network.routing.tiers import spread_tiers
from tests.network.routing.small import plane


def random_flows(leaves: int, count: int, seed: int) -> Flows:
    random = np.random.default_rng(seed)
    src, dst = random.integers(0, leaves, (2, count))
    return Flows(src=src, dst=dst, group=np.zeros(count, dtype=np.int64))


@given(st.integers(2, 8), st.integers(1, 6), st.integers(1, 40), st.integers(0, 99))
def test_even_bundles_carry_the_mean_of_their_leaf(leaves: int, uplinks: int, count: int, seed: int) -> None:
    flows = random_flows(leaves, count, seed)
    found = spread_tiers(plane(leaves=leaves, uplinks=uplinks, radix=16, spines=uplinks), flows)
    out = flows.src != flows.dst
    sent = np.bincount(flows.src[out], minlength=leaves)
    received = np.bincount(flows.dst[out], minlength=leaves)
    (loads,) = found.loads
    np.testing.assert_allclose(loads.up, np.broadcast_to(sent[:, None] / uplinks, loads.up.shape))
    assert found.alpha == pytest.approx(max(sent.max(), received.max()) / uplinks)
    assert found.bound == pytest.approx(found.alpha)


@given(st.integers(2, 8), st.integers(1, 9), st.integers(1, 6), st.integers(1, 40), st.integers(0, 99))
def test_uneven_bundles_carry_no_more_than_the_links_that_two_leaves_have_in_common_give(
    leaves: int, uplinks: int, spines: int, count: int, seed: int
) -> None:
    """Bundles have q or q + 1 links, r of them the more: of the larger ones at two leaves 2r - s at least meet."""
    whole, rest = divmod(uplinks, spines)
    common = whole * spines + max(0, 2 * rest - spines)
    assume(common > 0)
    flows = random_flows(leaves, count, seed)
    found = spread_tiers(plane(leaves=leaves, uplinks=uplinks, radix=64, spines=spines), flows)
    out = flows.src != flows.dst
    most = max(np.bincount(ends[out], minlength=leaves).max() for ends in (flows.src, flows.dst))
    assert most / uplinks <= found.alpha * (1 + 1e-12)
    assert found.alpha <= most / common * (1 + 1e-12)


@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 40), st.integers(0, 99))
def test_three_tiers_spread_over_slices_and_cores(uplinks: int, w: int, count: int, seed: int) -> None:
    wired = plane(leaves=6, uplinks=uplinks, radix=8, pods=Pods(l=2, w=w, count=3))
    flows = random_flows(6, count, seed)
    found = spread_tiers(wired, flows)
    leaves, pods = found.loads
    assert leaves.up.sum() == pytest.approx((flows.src != flows.dst).sum())
    between = flows.src // 2 != flows.dst // 2
    assert pods.up.sum() == pytest.approx(between.sum()) == pytest.approx(pods.down.sum())
    np.testing.assert_allclose(
        pods.up.reshape(uplinks, 3, -1).sum(axis=(0, 2)), np.bincount(flows.src[between] // 2, minlength=3)
    )
    assert found.bound <= found.alpha * (1 + 1e-12)


def test_what_a_leaf_sends_avoids_spines_that_are_out() -> None:
    wired, flows = plane(leaves=4, uplinks=4, radix=16, spines=4), random_flows(4, 30, 1)
    whole, left = spread_tiers(wired, flows), spread_tiers(wired, flows, failed_cores=1)
    assert (left.loads[0].links.sum(axis=0) == 0).sum() == 1
    assert left.alpha == pytest.approx(whole.alpha * 4 / 3)
