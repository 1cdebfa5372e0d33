"""Published designs come out, and what cannot be wired is refused with tier, ports and key."""

import re
from pathlib import Path

import pytest

import coopt
from coopt.instance.designs import read_designs
from coopt.instance.texts import InstanceError
from coopt.network.designs import chain_of

SHIPPED = sorted((Path(__file__).parents[3] / "instances" / "designs").glob("*.toml"))
PLAIN = """
schema = 1

[[design]]
id = "plain"
domains = 64
gpus_per_domain = 8
fabric = "rail-optimized"
tiers = [{ ports = 64 }, { ports = 64 }]
published = { switches = [16, 8], links = [512, 512] }
"""


@pytest.fixture
def written(tmp_path: Path):
    """Write the plain design with lines replaced."""

    def write(*changes: tuple[str, str]) -> Path:
        text = PLAIN
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        file = tmp_path / "ours.toml"
        file.write_text(text, "utf-8")
        return file

    return write


@pytest.mark.parametrize("design", [each for file in SHIPPED for each in read_designs(file)], ids=lambda each: each.id)
def test_a_published_design_comes_out(design) -> None:
    tiers = chain_of(design).levels
    assert tuple(tier.switches for tier in tiers) == design.published.switches
    assert design.published.links in (None, tuple(tier.links for tier in tiers))
    assert design.source
    assert design.tag


TWO, LAST = "[{ ports = 64 }, { ports = 64 }]", "{ ports = 64 }]"
COUNTED = {  # lines that become others; switches, ports down, uplinks and links of each tier
    "a last pod of the leaves that it has, 360 switches where three full pods take 464": (
        (
            ("= 64\ng", "= 1152\ng"),
            ('"rail-optimized"', '"clos"'),
            (TWO, TWO.replace("64", "128")[:-1] + ", { ports = 128 }]"),
        ),
        {"switches": [144, 144, 72]},
    ),
    "18 uplinks for 16 end points, so that two of 18 spines may fail": (
        (("64\ngpus", "32\ngpus"), (TWO, "[{ ports = 64, down = 16, up = 18 }, { ports = 64 }]")),
        {"switches": [16, 6], "down_ports": [16, 48], "uplinks": [18, 0], "links": [256, 288]},
    ),
    "fixed uplinks leave half of the ports for end points": (
        ((TWO, "[{ ports = 64, up = 16 }, { ports = 64 }]"),),
        {"down_ports": [32, 64], "uplinks": [16, 0]},
    ),
    "more than half of the ports up leave fewer for end points": (
        ((TWO, "[{ ports = 64, up = 40 }, { ports = 64 }]"),),
        {"down_ports": [24, 48], "uplinks": [40, 0]},
    ),
    "planes multiply everything": (
        (('"rail-optimized"', '"rail-optimized"\nnic_ports = 4\nplanes = 4'),),
        {"switches": [64, 32], "links": [2048, 2048]},
    ),
}


@pytest.mark.parametrize("case", COUNTED)
def test_tiers_of_a_design_are_counted(written, case: str) -> None:
    changes, counts = COUNTED[case]
    (design,) = read_designs(written(*changes))
    tiers = chain_of(design).levels
    assert {name: [getattr(tier, name) for tier in tiers] for name in counts} == counts


def test_small_networks_of_rails_share_a_switch(written) -> None:
    changes = ('"rail-optimized"', '"rail-only"'), ("domains = 64", "domains = 20"), ("}, { ports = 64 }]", "}]")
    (design,) = read_designs(written(*changes))
    chain = chain_of(design)
    (tier,) = chain.levels
    assert (tier.switches, tier.down_ports * chain.networks_together) == (3, 60)


def test_ratios_and_products_differ_by_tier(written) -> None:
    """Racks of 16 GPUs below chassis of 576 ports, 7:1 above them: 8 pods of 192 racks."""
    tiers = (
        "[{ ports = 64 }, { ports = 64 }]",
        "[{ ports = 64 }, { ports = 576, down = 224, up = 32 }, { ports = 576 }]",
    )
    units = ('fabric = "rail-optimized"', 'fabric = "clos"\nunit_domains = 384\nleaf_domains = 2\npod = "unit"')
    (design,) = read_designs(written(("domains = 64", "domains = 3072"), units, tiers))
    leaf, spine, core = chain_of(design).levels
    assert (leaf.switches, leaf.uplinks, chain_of(design).bundles[0]) == (1536, 16, 1)
    assert (spine.switches, spine.down_ports, spine.uplinks) == (8 * 16, 192, 32)
    assert (core.switches, core.links) == (8, 4096)


@pytest.mark.parametrize("rates", ["gbit_s = 800, down_gbit_s = 400", "down_gbit_s = 400, up_gbit_s = 800"])
def test_ports_break_out_to_slower_cables(written, rates: str) -> None:
    """A port of 800G takes two NICs of 400G; a leaf has half as many cables up as down."""
    tiers = f"[{{ ports = 64, {rates} }}, {{ ports = 64, gbit_s = 800 }}]"
    (design,) = read_designs(written(("[{ ports = 64 }, { ports = 64 }]", tiers)))
    leaf, spine = chain_of(design).levels
    assert (leaf.switches, leaf.down_ports, leaf.uplinks) == (8, 64, 32)
    assert (spine.switches, spine.links) == (4, 256)


REFUSED = {  # what a line becomes, and the keys, tiers and ports that are named
    "a tier lacks ports for the leaves": (
        ("domains = 64", "domains = 512"),
        r".*tiers\[1\].ports = 64: .* tier 2 .* 128 cables down \(one for each leaf\) .* 64",
    ),
    "more cables than ports": (
        ("[{ ports = 64 }", "[{ ports = 64, down = 40, up = 32 }"),
        r".*tiers\[0\].ports = 64: .* tier 1 .* 72 ports \(for 40 cables down and 32 up\)"
        r" .* 64",
    ),
    "pods on all ports of a core": (
        (TWO, "[{ ports = 4 }, { ports = 4 }, { ports = 4 }]"),
        r".* tier 3 .* \(one for each pod\) but has room for 4, needs switches of more ports or fewer cables$",
    ),
    "a rail of all ports": (
        (f'"rail-optimized"\ntiers = {TWO}', '"rail-optimized"\nrails = 1\ntiers = [{ ports = 8 }, { ports = 64 }]'),
        r".* 8 cables down \(for one rail .*room for 4, .* down \(half of the ports if left out\) or fewer cables$",
    ),
    "a unit that leaves do not divide": (
        ("domains = 64", "domains = 96\nunit_domains = 48"),
        ".*unit_domains = 48: .* one rail of 32 domains",
    ),
    "uplinks on all ports": (
        ("[{ ports = 64 }", "[{ ports = 64, up = 64 }"),
        r".* tier 1 .* 65 ports \(for 1 cable .* 64 up",
    ),
    "a leaf of too many domains": (
        ("domains = 64", "domains = 64\nleaf_domains = 64"),
        r".* tier 1 .* 128 ports \(for 64 cables down and 64 up\) .* 64",
    ),
    "a single tier": (("}, { ports = 64 }]", "}]"), r".*tier 1 .* 512 cables down \(one for each end point, .* 64"),
    "units of a single tier": (
        (f'"rail-optimized"\ntiers = {TWO}', '"rail-only"\nunit_domains = 32\ntiers = [{ ports = 64 }]'),
        r"unit_domains = 32: a leaf serves 32 of 64 HB domains, .* needs unit_domains = 64 or a second tier",
    ),
    "ends of two rates": (
        (TWO, "[{ ports = 64, up_gbit_s = 400 }, { ports = 64, down_gbit_s = 800 }]"),
        r".*tiers\[1\].down_gbit_s = 800: .* 400 Gbit/s",
    ),
    "ports that do not break out": (
        (TWO, "[{ ports = 64, gbit_s = 400 }, { ports = 64, gbit_s = 600 }]"),
        r".*tiers\[1\]: ports of 600 Gbit/s .* 400 Gbit/s",
    ),
    "ports of a rate mistyped": (
        (TWO, "[{ ports = 64, gbit_s = 400e9, up_gbit_s = 400 }, { ports = 64 }]"),
        r".*tiers\[0\]: ports of 4e\+11 Gbit/s .* 400 Gbit/s.* 64 cables",
    ),
    "an optic of another rate": (
        (LAST, '{ ports = 64, gbit_s = 800, optic = "400g-dr4" }]'),
        r".*tiers\[1\].optic = '400g-dr4': .*400 Gbit/s, .* tier 2 .*800",
    ),
    "planes": (("domains = 64", "domains = 64\nplanes = 2"), "planes = 2: .* nic_ports = 1"),
    "rails": (("domains = 64", "domains = 64\nrails = 3"), "rails = 3: .*gpus_per_domain = 8"),
    "leaf over unit": (
        ("domains = 64", "domains = 64\nunit_domains = 8\nleaf_domains = 16"),
        "leaf_domains = 16: .* 16 ports .* 8",
    ),
    "a switch of fewer ports": (
        (LAST, '{ ports = 128, switch = "qm9700" }]'),
        r"tiers\[1\].ports = 128: qm9700 has 64 ports of 400 Gbit/s.* gbit_s = 200",
    ),
    "a switch of another rate": (
        (LAST, '{ ports = 64, gbit_s = 800, switch = "qm9700" }]'),
        r"tiers\[1\].gbit_s = 800: .*qm9700 have 400 Gbit/s",
    ),
    "pods of one tier": ((f"tiers = {TWO}", "pod = 'unit'\ntiers = [{ ports = 64 }]"), "pod = 'unit': "),
    "pods of rails of a clos": (('"rail-optimized"', '"clos"\npod = "rail"'), "pod = 'rail': "),
    "rails of a clos": (('"rail-optimized"', '"clos"\nrails = 4'), "rails = 4: in a clos these are the leaves that"),
    "rails for every port of a clos": (
        ('"rail-optimized"', '"clos"\nrails = 16\nnic_ports = 2'),
        "rails = 16: .* take turns in, needs a divisor of nic_ports / planes = 2, or another fabric",
    ),
    "unknown key": (("domains = 64", "domains = 64\nunits = 2"), "units: unknown key"),
    "unknown key of a tier": ((LAST, "{ ports = 64, radix = 64 }]"), r"tiers\[1\].radix: unknown key"),
    "no ports": ((LAST, "{ ports = 0 }]"), r"tiers\[1\].ports = 0: "),
    "a port": ((LAST, "{ ports = 1 }, { ports = 64 }]"), r"tiers\[1\].ports = 1: "),
    "no such product": ((LAST, '{ ports = 64, switch = "qm970" }]'), ".*closest: qm9700"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_wired_or_read_names_file_design_key_and_ports(written, case: str) -> None:
    change, why = REFUSED[case]
    with pytest.raises(InstanceError, match=f"^ours.toml: design 'plain': {why}"):
        _ = [chain_of(design, "ours.toml") for design in read_designs(written(change))]


@pytest.mark.parametrize(
    ("changes", "numbers"),
    [
        ([("[16, 8]", "[16, 12]"), ("[512, 512]", "[508, 512]")], [["2", "8", "12"], ["1", "512", "508"]]),
        ([("domains = 64", "domains = 4"), ("[512, 512]", "[32, 32]")], [["1", "8", "16"], ["2", "1", "8"]]),
    ],
)
def test_a_row_that_is_off_says_which_tier(written, changes: list[tuple[str, str]], numbers: list[list[str]]) -> None:
    found = coopt.reproduce(written(*changes))
    assert (found.exact, found.of) == (0, 1)
    assert [re.findall(r"\d+", part) for part in found.rows[0].why.split("; ")] == numbers


@pytest.mark.parametrize(
    ("published", "words"),
    [("[16, 8, 4]", ("tier 3", "no switch", " 4 ")), ("[16]", ("tier 2", "8 switches", "none")), ("[16, 8, 0]", ())],
)
def test_a_tier_that_one_of_both_lacks_has_none(written, published: str, words: tuple[str, ...]) -> None:
    """A source may list no cores as 0."""
    (row,) = coopt.reproduce(written(("[16, 8]", published))).rows
    assert (row.ok, row.why == "") == (not words, not words)
    assert all(word in row.why for word in words)


def test_a_row_that_cannot_be_wired_leaves_the_others(written) -> None:
    """A file without counts or with an id that stands twice is refused."""
    for change, why in ((("= 64\ng", "= 512\ng"), "128 cables"), (("= 64\ng", "= 64\nplanes = 2\ng"), "nic_ports = 1")):
        file = written(change)
        second = PLAIN.replace("schema = 1", "").replace('"plain"', '"second"')
        file.write_text(file.read_text("utf-8") + second, "utf-8")
        found = coopt.reproduce(file)
        assert [row.ok for row in found.rows] == [False, True]
        assert found.rows[0].counted is None
        assert found.refused == (found.rows[0].why,)
        assert why in found.rows[0].why
    file.write_text(PLAIN + PLAIN.replace("schema = 1", ""), "utf-8")
    with pytest.raises(InstanceError, match=r"design 'plain': .* more than once"):
        read_designs(file)
    with pytest.raises(InstanceError, match=r"ours.toml: design 'plain': published is"):
        coopt.reproduce(written(("published = { switches = [16, 8], links = [512, 512] }", "")))


def test_a_module_of_other_lanes_mates_at_its_own_end(written) -> None:
    """A module with a gearbox in a NIC, and one without in the switch."""
    module = 'gbit_s = 400, reach_m = 500, usd = 1, w = 9, fibre = "pairs"'
    nic = '{ name = "nic", gbit_s = 400, usd = 1, w = 1, lane_gbit_s = [100, 200] }'
    gear, even = (f'{{ name = "{name}", lane_gbit_s = {rate}, {module} }}' for name, rate in (("g", 200), ("e", 100)))
    told = {}
    for below, above in ((gear, even), (gear, gear)):
        tier = f'{{ ports = 64, switch = "qm9700", optic = {above}, optic_below = {below} }}'
        file = written(("tiers = [{ ports = 64 }", f"nic = {nic}\ntiers = [{tier}"))
        told[below, above] = coopt.reproduce(file).rows[0]
    assert told[gear, even].ok
    assert "tiers[0]: nic, g, qm9700" in told[gear, gear].why


@pytest.mark.parametrize(
    ("tier", "why"),
    [
        ('switch = "qm9700", optic = "800g-dr4"', r"tiers\[0\]: 800g-dr4, qm9700 do not mate.*lane_gbit_s is 100"),
        ('switch = "qm9700", optic = "400g-sr4", optic_below = "400g-dr4"', r"tiers\[0\]: .* fibre is "),
        ('optic = "800g-sr8", down_gbit_s = 400', r"tiers\[0\]\.optic = '800g-sr8': .* 2 cable ends, .* optic_below"),
    ],
)
def test_a_design_whose_products_do_not_mate_is_not_counted_as_wired(written, tier: str, why: str) -> None:
    """Whether its source counts modules or not; the other rows of its file are counted."""
    wrong = ("tiers = [{ ports = 64 }", f"tiers = [{{ ports = 64, {tier} }}")
    for modules in ("", ', optics = { "400g-sr4" = 1 }'):
        if "400g-sr4" in modules and "400g-sr4" not in tier:
            continue
        file = written(wrong, ("[512, 512] }", f"[512, 512]{modules} }}"))
        sound = PLAIN.partition("[[design]]")[2].replace('"plain"', '"other"')
        file.write_text(f"{file.read_text('utf-8')}\n[[design]]{sound}", "utf-8")
        wrong_row, other = coopt.reproduce(file).rows
        assert wrong_row.counted is None
        assert re.search(why, wrong_row.why)
        assert other.ok
