"""Why no partition answers an instance: sentences that name the limit and how far it must give."""

from __future__ import annotations

from coopt.network.wiring import wirings  # noqa: F401


def no_island(instance, missing):
    return ()


def over_limits(instance, data):
    return ()
