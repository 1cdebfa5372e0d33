"""A shell completes commands, options, files, names of the catalog and keys of an instance."""

import pytest
from click.shell_completion import ShellComplete

from coopt.cli.arguments import dotted_keys
from coopt.cli.main import main
from coopt.instance.catalog import KINDS, entries
from coopt.instance.schema import Instance, load
from tests.cli.conftest import INSTANCES


def completed(*typed: str) -> list[str]:
    """What a shell offers for the last word; `file` stands for files of its own."""
    *before, last = typed
    found = ShellComplete(main, {}, "coopt", "_COOPT_COMPLETE").get_completions(before, last)
    return [item.value if item.type == "plain" else item.type for item in found]


def test_commands_options_and_files_are_completed():
    assert completed("ver") == ["verify"]
    assert "--time-limit" in completed("solve", "--t")
    assert completed("solve", "--objective", "") == ["capex", "power", "tco", "time", "usd_per_token", "carbon"]
    for command in ("solve", "verify", "explain", "bom", "diff", "validate"):
        assert completed(command, "") == ["file"]
    assert completed("verify", "a.toml", "") == ["file"]


def test_catalog_kinds_and_names_are_completed():
    assert completed("catalog", "list", "n") == ["nic"]
    assert completed("catalog", "show", "hgx-h") == [name for name in entries("hb_domain") if name.startswith("hgx-h")]


def test_keys_are_completed_and_their_catalog_names():
    assert completed("evaluate", "a.toml", "--set", "network.max_t") == ["network.max_tiers="]
    assert "network.switches=64x400g" in completed("bom", "a.toml", "--set", "network.switches=64")
    for key in ("workload.0.model", "workload[0].model", "workload['chat'].model"):
        assert completed("bom", "a.toml", "--set", f"{key}=gpt-17") == [f"{key}=gpt-175b"]
    assert completed("evaluate", "a.toml", "--set", "network.max_tiers=") == []


def test_every_key_is_one_that_an_instance_takes():
    keys = dict(dotted_keys(Instance))
    assert {"cluster.gpus", "workload.mapping.tp", "robust.prices.nic", "sharing.core.switch"} <= set(keys)
    assert {None, "gpu", "hb_domain", "model", "switch", "software"} <= set(keys.values()) <= {*KINDS, None}


@pytest.mark.parametrize(("number", "whole"), [(64.0, 64), ([64.0, 1.28e2], [64, 128])])
def test_whole_numbers_may_be_written_as_floats(number: object, whole: object):
    asked, meant = (
        {"cluster.gpus": gpus, "workload.global_batch": batch, "network.max_tiers": tiers}
        for gpus, batch, tiers in ((number, 1e3, 2.0), (whole, 1000, 2))
    )
    loaded, expected = (load(INSTANCES / "tiny-64.toml", values) for values in (asked, meant))
    assert (loaded, loaded.sha256) == (expected, expected.sha256)
