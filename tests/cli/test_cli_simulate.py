"""`coopt simulate`: what it prints, its exit codes, and a trace that a viewer can read."""

import json
import re
from typing import Any

import pytest


def test_an_iteration_is_put_beside_the_closed_form(coopt, planned):
    done = coopt("simulate", *planned)
    assert done.exit_code == 0
    assert done.stdout.startswith("Workload 'training': ")
    titles = ("Where the time goes", "Traffic between domains", "pipeline hops", "8 equal rails of all 8 HB domains")
    assert all(words in done.stdout for words in titles)
    found = json.loads(coopt("simulate", *planned, "--json").stdout)
    assert found["schema"] == "coopt-simulation/1"
    (workload,), (claim,) = found["workloads"], json.loads(planned[1].read_text("utf-8"))["workloads"]
    assert (workload["name"], workload["closed_form_s"]) == (claim["name"], claim["iteration_time_s"])
    assert (workload["bound_s"], workload["met"]) == (claim["bound_s"], True)
    for kind in ("simulated_s", "closed_form_s"):
        assert sum(one[kind] for one in workload["times"]) == pytest.approx(workload[kind])


def test_a_bound_that_is_missed_has_an_exit_code_of_its_own(coopt, planned, solved):
    """Hops as long as passes: the closed form meets its own time as a bound, the schedule does not."""
    time_s = json.loads(planned[1].read_text("utf-8"))["workloads"][0]["iteration_time_s"]
    tight = solved(("time_s = 1.0", f"time_s = {time_s!r}"), name="tight.toml")
    done = coopt("simulate", *tight)
    assert done.exit_code == 5
    (workload,) = json.loads(coopt("simulate", *tight, "--json").stdout)["workloads"]
    least_s, most_s = workload["range_s"]
    assert time_s < least_s < most_s
    assert least_s <= workload["simulated_s"] <= most_s
    assert not workload["met"]
    (missed_by,) = re.findall(r"MISSED by (\S+)%", " ".join(done.stdout.split()))
    assert float(missed_by) == pytest.approx(100 * (most_s / time_s - 1), abs=0.06)


Event = dict[str, Any]


def lanes(events: list[Event]) -> dict[tuple[int, int], list[Event]]:
    """The events of every lane in the order of time, those that hold others first."""
    found: dict[tuple[int, int], list[Event]] = {}
    for event in sorted(events, key=lambda event: (event["ts"], -event["dur"])):
        found.setdefault((event["pid"], event["tid"]), []).append(event)
    return found


def test_a_viewer_can_read_the_trace_of_the_whole_iteration(coopt, planned, tmp_path):
    """Each event lies within the one before it or after it; names are there for all processes and lanes."""
    file = tmp_path / "trace.json"
    done = coopt("simulate", *planned, "--trace", file, "--json")
    assert done.exit_code == 0
    events = json.loads(file.read_text("utf-8"))
    shown = [event for event in events if event["ph"] == "X"]
    assert f"{len(shown):,} events written to {file}" in done.stderr
    named = {(event["name"], event["pid"], event.get("tid")) for event in events if event["ph"] == "M"}
    assert {event["ph"] for event in events} == {"X", "M"}
    for (pid, tid), listed in lanes(shown).items():
        assert {("process_name", pid, None), ("thread_name", pid, tid)} <= named
        open_until: list[int] = []
        for event in listed:
            # viewers count whole nanoseconds, and cut what is below one
            start, length = int(event["ts"] * 1000), int(event["dur"] * 1000)
            assert length >= 0
            while open_until and open_until[-1] <= start:
                open_until.pop()
            assert not open_until or start + length <= open_until[-1], event
            open_until.append(start + length)
    end_s = max(event["ts"] + event["dur"] for event in shown) / 1e6
    assert end_s == pytest.approx(json.loads(done.stdout)["workloads"][0]["simulated_s"])
    mapping = json.loads(planned[1].read_text("utf-8"))["workloads"][0]["mapping"]
    assert {event["pid"] for event in shown} == set(range(mapping["pp"]))
    micro_batches = 64 // (mapping["dp"] * mapping["micro_batch"])
    passes = [event for event in shown if event["name"].startswith(("forward, ", "backward, "))]
    assert len(passes) == 2 * mapping["pp"] * mapping["interleave"] * micro_batches
    names = {event["name"] for event in shown}
    assert {"kernels", "optimizer"} <= names
    assert any("to stage 2" in name for name in names)
