"""What a question leaves open or already has, by hand: idle GPUs, near batches, what stands, plans that stand."""

import json
import math
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from coopt.instance.base import Table
from coopt.instance.catalog import KINDS, entries, find
from coopt.instance.couplings import Discount
from coopt.instance.doubts import price_bases, price_doubt, price_of
from coopt.instance.evidence import ErrorLaw, measured, nearest_runs, outside
from coopt.instance.existing import Existing
from coopt.instance.fibre_lists import missing_fibre
from coopt.instance.hardware import Fibre, Gpu, HbDomain, Optic, Servers, Switch
from coopt.instance.mixers import Attention, Encoder, ScanLayers
from coopt.instance.network import Hall, RackLoad
from coopt.instance.numerics import EQUAL, REORDERED, SOLVED
from coopt.instance.question import Cluster
from coopt.instance.reserves import Availability, largest_error, practice_of
from coopt.instance.schema import Instance, ample_s, load, overridden, own_time, questions_by_gpu, typed
from coopt.instance.standing_plans import with_plans
from coopt.instance.texts import InstanceError
from coopt.instance.transformer import ScalingLaw, Software, Transformer
from coopt.instance.workload import NEAR_BATCH, Workload, batches_within
from coopt.verifier.bounds.assumptions import left_open
from tests.anchors.test_defaults import GPU, SHAPE
from tests.anchors.test_units import LLAMA, QUESTION, question

IDLE = {  # of docs/reference/instance.md: true is up to a quarter; GPUs, size of a domain: those that train, domains
    (16, True, 8): [(12, 2), (14, 2)],
    (32, True, 72): [(gpus, 1) for gpus in range(24, 32)],
    (48, True, 72): [(gpus, 1) for gpus in range(36, 48)],
    (64, 3, 8): [],  # 61 to 63 fill no domains alike
    (64, 8, 8): [(56, 7), (56, 8)],
    (16, False, 8): [],
    (4, 9, 8): [(1, 1), (2, 1), (3, 1)],  # one trains at least
}
NOT_SAID: dict[type[Table], tuple[dict[str, Any], dict[str, Any]]] = {  # docs/reference/instance.md
    Attention: (
        {"heads": 25, "kv_heads": 25, "head_dim": 64},  # GPT-2 XL
        dict.fromkeys(("value_dim", "q_rank", "kv_rank", "rope_dim", "window", "output_rank", "output_groups"), 0)
        | dict.fromkeys(("index_heads", "index_dim", "index_tokens"), 0)
        | {"causal": True, "output_gate": False, "shared_kv": False, "compression": 1},
    ),
    ScanLayers: (
        {"kind": "mamba-2", "layers": 1, "heads": 64, "head_dim": 64, "groups": 8, "state": 128},
        {"gate_rank": 0, "decay_rank": 0},
    ),
    Encoder: (
        {"layers": 24, "hidden": 1024, "heads": 16, "head_dim": 64, "ffn": 4096, "tokens": 576},  # CLIP ViT-L/14
        {"gated": False, "inputs": 1, "merge": 1, "projector": 0, "projectors": 1},
    ),
}
STANDS: dict[str, Any] = {
    **{"id": "ours", "hb_domain": "hgx-h100-8", "domains": 8, "gpus_per_domain": 8, "leaf_domains": 2},
    **{"fabric": "clos", "nic": "cx7-400g", "tiers": [{"ports": 64, "down": 16, "up": 16}, {"ports": 64}]},
}
NIC = {"name": "cx7-400g", "per_gpu": 1, "planes": 1, "shared_by": 1}


def tier(switches: int, down: int, up: int = 0) -> dict[str, Any]:
    return {"switches": switches, "down_ports": down, "uplinks_per_switch": up} | dict.fromkeys(
        ("switch", "optic", "optic_below"), "400g-sr4"
    )


PLANS: dict[str, tuple[str, int, list[dict[str, Any]], dict[str, Any], list[tuple[int, int]]]] = {
    # fabric, domains of 8, tiers; how leaves are filled; ports in use of a switch and those of them that lead down
    "a leaf of 32 links holds 4 domains": (
        *("clos", 16, [tier(4, 32, 32), tier(2, 64)], {"leaf_domains": 4}),
        [(64, 32), (64, 64)],
    ),
    "three spines share 32 uplinks unevenly": (
        *("clos", 16, [tier(4, 32, 32), tier(3, 43)], {"leaf_domains": 4, "bundles": "any"}),
        [(64, 32), (43, 43)],
    ),
    "spines of two leaves": ("clos", 2, [tier(2, 8, 8), tier(8, 2)], {"leaf_domains": 1}, [(16, 8), (2, 2)]),
    "spines of one leaf": ("clos", 1, [tier(1, 8, 8), tier(8, 1)], {"leaf_domains": 1}, [(16, 8), (2, 1)]),
    "three tiers are even": (
        *("clos", 16, [tier(4, 32, 32), tier(4, 32, 32), tier(2, 64)], {"leaf_domains": 4}),
        [(64, 32), (64, 32), (64, 64)],
    ),
    "leaves have two links to each spine of a pod of 16": (
        *("clos", 128, [tier(64, 16, 16), tier(32, 32, 32), tier(16, 64)]),
        {"leaf_domains": 2, "unit_domains": 16 * 16 // 8, "pod": "unit"},
        [(32, 16), (64, 32), (64, 64)],
    ),
    "pods of one rail": (
        *("rail-optimized", 1024, [tier(256, 32, 32), tier(256, 32, 32), tier(128, 64)]),
        {"leaf_domains": 32, "unit_domains": 16 * 32, "pod": "unit"},
        [(64, 32), (64, 32), (64, 64)],
    ),
    "two of 8 rails on each leaf": (
        *("rail-optimized", 16, [tier(4, 32, 32), tier(2, 64)], {"rails": 4, "leaf_domains": 16}),
        [(64, 32), (64, 64)],
    ),
    "a rail has several leaves": (
        *("rail-optimized", 64, [tier(16, 32, 32), tier(8, 64)], {"leaf_domains": 32}),
        [(64, 32), (64, 64)],
    ),
    "one switch a rail": ("rail-only", 16, [tier(8, 16)], {}, [(16, 16)]),
    "two rails a switch": ("rail-only", 16, [tier(4, 16)], {}, [(32, 32)]),
    "a domain alone": ("rail-only", 1, [tier(8, 1)], {}, [(2, 1)]),
}


def catalogued(kind: str, name: str, of: type[Any]) -> Any:
    entry = find(kind, name)
    assert isinstance(entry, of)
    return entry


@pytest.mark.parametrize("case", IDLE, ids=str)
def test_gpus_that_may_be_idle(case: tuple[int, int | bool, int]) -> None:
    gpus, idle, size = case
    cluster = Cluster.model_validate({"gpu": GPU, "gpus": gpus, "idle_gpus": idle})
    assert cluster.most_idle(gpus) == min({True: gpus // 4, False: 0}.get(idle, idle), gpus - 1)
    assert sorted(cluster.idle_sites(gpus, size)) == IDLE[case]


def test_the_least_number_that_is_enough_is_bought() -> None:
    cluster = Cluster.model_validate({"gpu": GPU, "gpus": [8, 16], "idle_gpus": True})
    assert [cluster.bought_for(gpus) for gpus in (5, 6, 8, 11, 12, 17)] == [None, 8, 8, None, 16, None]


def test_two_percent_of_100_are_two_batches_up_and_down() -> None:
    """The nearest first; docs/reference/instance.md: "number from 0 to 0.2", "0.02 is two percent"."""
    asked = {"name": "w", "model": SHAPE, "global_batch": 100}
    assert Workload.model_validate(asked | {"batch_tolerance": 0.02}).batches == (100, 101, 99, 102, 98)
    assert Workload.model_validate(asked).batches == ()
    assert len(Workload.model_validate(asked | {"batch_tolerance": 0.2}).batches) == 41
    assert len(batches_within(10_000, NEAR_BATCH)) == len(batches_within(10_000, 0.02)) == 1 + 2 * 200
    with pytest.raises(ValueError, match="batch_tolerance"):
        Workload.model_validate(asked | {"batch_tolerance": 0.201})


def test_a_list_in_the_wrong_table_is_told_its_own() -> None:
    workload = QUESTION["workload"] | {"zero": [0, 1]}
    with pytest.raises(InstanceError, match=r"workload.mapping.zero in its place"):
        load(QUESTION | {"workload": workload})


def test_nics_are_limited_where_their_bytes_exceed_the_way_to_them() -> None:
    """400 Gbit/s are 50 GB/s."""
    (domain,) = question().network.hb_domains
    limited = [question().network.is_limited(domain.with_nics_at(gbyte_s)) for gbyte_s in (49.9, 50.0, 50.1)]
    assert limited == [True, False, False]


@pytest.mark.parametrize("of", NOT_SAID)
def test_mixers_and_encoders_have_their_documented_defaults(of: type[Table]) -> None:
    given, expected = NOT_SAID[of]
    one = of.model_validate(given)
    assert {key: getattr(one, key) for key in expected} == expected


def test_a_vision_tower_has_no_vocabulary_and_no_mask() -> None:
    encoder = Encoder.model_validate(NOT_SAID[Encoder][0])
    ((_, tower),) = Transformer.model_validate(SHAPE | {"encoders": [encoder]}).towers
    assert (tower.causal, tower.gated, tower.vocab, tower.seq, tower.kv_heads) == (False, False, 1, 576, 16)


def test_a_model_may_have_mamba_layers_alone() -> None:
    """Mamba-2 2.7B (arXiv 2405.21060): 64 layers of 2,560, 80 heads of 64, state 128, no attention."""
    sizes = {"layers": 64, "mamba_layers": 64, "mamba_heads": 80, "mamba_head_dim": 64, "mamba_groups": 1}
    table = SHAPE | sizes | {"hidden": 2560, "mamba_state": 128}
    mamba = Transformer.model_validate(table)
    assert [(scan.kind, scan.layers) for scan in mamba.scans] == [("mamba-2", 64)]
    assert not mamba.has_act


def test_words_for_flags_are_those_of_the_reference() -> None:
    """`graphs`: true is a graph of the whole iteration; `compile`: whether FSDP2 has a compiler; prices hold for every
    unit bought unless it is said.
    """
    for compiles, name in ((True, "fsdp"), (False, "fsdp-eager")):
        software = {"framework": "fsdp", "compile": compiles}
        one = Workload.model_validate({"name": "w", "model": SHAPE, "global_batch": 1, "software": software})
        assert one.options.software.name == name
    assert [Software(name="s", graphs=value).graphs for value in (True, False, "full")] == ["full", "none", "full"]
    table = {"kind": "nic", "item": "n", "from": 1, "usd": 1.0}
    assert Discount.model_validate(table).applies == "all-units"


def test_chinchilla_reaches_its_loss_after_its_tokens() -> None:
    """arXiv 2203.15556, equation 10: 70 B parameters, 1.4 T tokens: 1.69 + 0.083 + 0.163."""
    law = catalogued("scaling_law", "chinchilla", ScalingLaw)
    assert law.loss(70e9, 1.4e12) == pytest.approx(1.9366, abs=1e-4)
    assert law.tokens(70e9, 1.9366) == pytest.approx(1.4e12, rel=2e-3)
    parameters, tokens = law.best_for_compute(5.76e23)  # Gopher's; C = 6 N D
    assert parameters * tokens == pytest.approx(9.6e22)
    assert parameters == pytest.approx(32.18986e9, rel=1e-6)  # (.34 406.4 / .28 / 410.7)^(1/.62) 9.6e22^(.28/.62)


def test_predicted_times_are_told_in_the_unit_of_the_bound_with_their_margin() -> None:
    """2^24 tokens in 8 s are 2^21 a second; a quarter longer, four fifths of that."""
    rate, seconds = ({"min_tokens_per_s": 1.0}, {"max_iteration_time_s": 1.0})
    asked = [Workload.model_validate(LLAMA | bound).with_margin(0.25) for bound in (rate, seconds)]
    assert [own_time(one, 8.0) for one in asked] == [pytest.approx(0.8 * 2**21), 10.0]
    assert own_time(Workload.model_validate(LLAMA | rate), 8.0) == 2**21


def test_what_ends_a_century_ahead_has_no_date() -> None:
    """100 years of 365.25 days; from 2026 on these have 24 leap days, as 2100 is none."""
    one = Workload.model_validate(LLAMA | {"train_tokens": 2.0**24}).starting(date(2026, 1, 1))
    assert [one.end(days * 86_400) for days in (2, 36_525, 36_526)] == ["3 January 2026", "2 January 2126", ""]


def test_half_a_thousand_batches_are_no_thousand_choices() -> None:
    """A fifth of 1,250 is 250: 501 batches, once for a GPU and once beside another workload."""
    near = LLAMA | {"global_batch": 1250, "batch_tolerance": 0.2, "max_iteration_time_s": 60.0}
    several = [near, LLAMA | {"name": "other", "max_iteration_time_s": 60.0}]
    assert [len(one.batches) for one in question(workload=several).workload] == [501, 0]


def test_32_domains_of_a_rack_stand_in_the_first() -> None:
    assert [Hall(racks_per_domain=1 / 32).rack_of(domain) for domain in (31, 32)] == [0, 1]


def test_errors_of_own_and_of_catalogued_hardware() -> None:
    """docs/days.md: one and a half times the error of the generation, or the largest known; experts across domains
    are further from published runs than those inside.
    """
    moe = {"name": "w", "model": "mixtral-8x7b", "global_batch": 1024, "mapping": {"micro_batch": [1, 4]}}
    h100 = catalogued("gpu", "h100-sxm", Gpu)
    dense = Workload.model_validate(moe | {"model": SHAPE})
    known = {name: getattr(entry, "left_out", 0.0) for name, entry in entries("model_error").items()}
    own = Gpu.model_validate(GPU)
    assert largest_error(own, dense, 64) == pytest.approx(1.5 * max(known.values()))
    hopper = own.model_copy(update={"generation": "hopper"})
    assert largest_error(hopper, dense, 64) == pytest.approx(1.5 * max(known["hopper 16-bit"], known["dense"]))
    near = practice_of(h100, dense, experts_across=False, micro_batch=1, gpus=64)
    far = near._replace(precision="fp8", micro_batch=4, gpus=512)
    assert far.gaps_to(near) == {"precision": 1.0, "micro_batch": 1.0, "gpus": 2.0}  # 512 are 4 times 2 times 64
    inside = Workload.model_validate(moe | {"mapping": {"micro_batch": [1, 4], "ep": 1}})
    assert largest_error(h100, inside, 64) < largest_error(h100, Workload.model_validate(moe), 64)


def test_the_law_of_errors_is_a_product_and_names_what_no_run_has() -> None:
    """docs/days.md: b = b0 exp(sum of what is harder + the distance); what no run has alone or with one other."""
    practice = measured().runs[0].practice._replace(generation="none", gpu="none", gpus=2**20, micro_batch=64)
    law = ErrorLaw(0.1, {practice.architecture: 0.2}, {})
    assert law.error(practice, 0.3) == pytest.approx(0.1 * math.exp(0.2 + 0.3))
    assert len(nearest_runs(practice)) == 2
    for one in [practice, *(run.practice._replace(micro_batch=8) for run in measured().runs[::10])]:
        gaps = [{*one.gaps_to(run.practice)} for run in measured().runs]
        names = [name for name in one._fields if one.gpu == "none" or name != "generation"]
        alone = {name for name in names if all(name in gap for gap in gaps)}
        rest = [name for name in names if name not in alone]
        pairs = {
            pair
            for n, a in enumerate(rest)
            for b in rest[n + 1 :]
            for pair in [(a, b)]
            if all(gap & {a, b} for gap in gaps)
        }
        assert {*outside(one)} == {*map(one.phrase, alone), *(one.phrase(*pair) for pair in pairs)}


def test_servers_in_racks_are_those_of_a_dgx() -> None:
    """User guide of the DGX H100: 10.2 kW at most, 287.6 lb; two of them weigh 261 kg."""
    hall = {"domain_rack_kw": 30.6, "domain_rack_kg": 262}
    asked = question(network=QUESTION["network"] | {"hall": hall})
    (domain,) = asked.network.hb_domains
    loads = asked.rack_loads(domain)
    assert loads["domain_rack_kw"].amount == pytest.approx(10.2, rel=1e-3)
    assert [load.racks(0.25) for load in loads.values()] == [1 / 3, 1 / 2]
    assert [RackLoad(amount, 2.0, "kW").racks(2) for amount in (3.0, 5.0)] == [2, math.inf]
    assert (RackLoad(None, 1.0, "kg").racks(0.25), RackLoad(3.0, 2.0, "kg").racks(0.25)) == (0.25, math.inf)
    assert Servers(1.0, 2.0) == Servers()  # prices make no other domain
    assert (Servers().usd, Servers().w) == (0.0, 0.0)
    assert asked.network.gbit_s_into(asked.network.switches[0]) == 400.0
    assert asked.network.gbit_s_into(catalogued("switch", "40x200g", Switch)) == 0.0


def test_one_cable_joins_the_modules_of_one_link() -> None:
    """NVIDIA MMA4Z00-NS400: 400G SR4 has four pairs in one connector, and splits nothing."""
    fibre = catalogued("fibre", "om4-mtp-8", Fibre)
    short, twin = (catalogued("optic", name, Optic) for name in ("400g-sr4", "800g-sr8"))
    assert catalogued("optic", "400g-dac", Optic).pairs_of(400) == 0  # copper
    assert [twin.pairs_together(800), twin.pairs_together(400), short.pairs_together(400)] == [4, 4, 4]
    assert list(missing_fibre([fibre], [(short, 400.0)])) == []


def test_what_stands_is_bought_for_nothing() -> None:
    given: dict[str, Any] = {"cluster": {"gpu": "h100-sxm", "gpus": 64}, "network": {"given": True}}
    workload = {"name": "w", "model": "gpt-22b", "global_batch": 64}
    instance = Instance.model_validate(QUESTION | given | {"workload": workload, "existing": STANDS})
    network = instance.network
    assert (instance.objective.minimize, instance.cluster.gpu.usd) == ("time", 0.0)
    assert {nic.usd for nic in network.nics} == {optic.usd for optic in network.optics} == {0.0}
    assert [(one.usd_per_gpu, one.host_usd_per_gpu) for one in network.hb_domains] == [(0.0, 0.0)]
    unnamed = [(one.radix, one.port_gbit_s, one.usd, one.w, one.optics_inside) for one in network.switches]
    assert unnamed == [(64, 400.0, 0.0, 0.0, False)]
    assert {(optic.gbit_s, optic.w) for optic in network.optics} == {(400.0, 0.0)}
    assert (network.nics_per_gpu, network.nic_planes, network.buildable) == ((1,), (1,), False)
    fails = Instance.model_validate(
        QUESTION | given | {"workload": workload, "existing": STANDS, "availability": {"rates": "llama-3"}}
    )
    assert fails.availability is not None
    assert fails.availability.spare_domains == (0,)  # nothing is bought
    rates = {"rates": "llama-3"}
    spares = [Availability.model_validate(rates | more).at_each_site for more in ({}, {"spare_domains": [2, 1]})]
    assert spares == [0, 1]


def test_what_stands_keeps_its_servers_where_islands_of_others_are_chosen() -> None:
    two = [LLAMA | {"name": name, "global_batch": 64, "max_iteration_time_s": 1000} for name in "ab"]
    tables = {"workload": two, "sharing": {"mode": "partition", "mixed_gpus": True}}
    tables |= {"cluster": {"gpu": ["h100-sxm", "b200"], "gpus": 128}}
    tiers = [one | {"switch": "qm9700", "optic": "400g-sr4"} for one in STANDS["tiers"]]
    tables |= {"existing": STANDS | {"gpu": "h100-sxm", "tiers": tiers}}
    network = QUESTION["network"] | {"hb_domains": ["hgx-h100-8", "hgx-b200-8"], "optics": ["400g-sr4", "400g-dr4"]}
    by_gpu = questions_by_gpu(question(**tables | {"network": network | {"switches": "qm9700"}}))
    chosen = {one.cluster.gpu.name: [domain.name for domain in one.network.hb_domains] for one in by_gpu}
    assert chosen == {"b200": ["hgx-b200-8"], "h100-sxm": ["hgx-h100-8"]}
    stands = [one.stands.hb_domain.name for one in by_gpu if one.stands and one.stands.hb_domain]
    assert stands == ["hgx-h100-8", "hgx-h100-8"]


def test_two_entries_have_the_places_0_and_1() -> None:
    table = QUESTION | {"workload": [LLAMA, LLAMA | {"name": "v"}]}
    with pytest.raises(InstanceError, match=r"0 to 1$"):
        overridden(table, {"workload.2.global_batch": 1}, "f")


def test_a_switch_that_stands_may_have_two_ports() -> None:
    """`radix` (docs/reference/instance.md: integer from 2) and of a tier with as many."""
    stands = Existing.model_validate(STANDS | {"domains": 1, "leaf_domains": None, "tiers": [{"ports": 2}]})
    assert [(one.radix, one.usd, one.w) for one in stands.switches] == [(2, 0.0, 0.0)]
    assert [(one.usd, one.w) for pair in stands.ends for one in pair] == [(0.0, 0.0)] * 2
    assert (stands.bundles, stands.domain_ends, stands.block) == ("even", 8, 8)
    assert not stands.holds(4)
    assert [stands.holds(gpus) for gpus in (5, 8, 9)] == [True, True, False]


@pytest.mark.parametrize("case", PLANS)
def test_a_plan_stands_as_it_was_built(case: str, tmp_path: Path) -> None:
    fabric, domains, tiers, fill, ports = PLANS[case]
    planes = 8 if fabric == "rail-only" else 1
    design = {
        "hb_domain": {"name": "hgx-h100-8", "size": 8, "count": domains},
        "fabric": {"kind": fabric, "tiers": len(tiers), "tier": tiers, "nic": NIC, "planes": planes}
        | {"pod_bundle": 2 if "pod" in fill else 1},
    }
    (tmp_path / "ours.json").write_text(json.dumps({"parts": [{"name": "network", "design": design}]}), "utf-8")
    (row,) = with_plans({"existing": {"plan": "ours.json"}}, tmp_path)["existing"]
    assert {key: row[key] for key in ("rails", "leaf_domains", "bundles", "unit_domains", "pod") if key in row} == fill
    assert [(one["ports"], one["down"]) for one in row["tiers"]] == ports
    assert {one["gbit_s"] for one in row["tiers"]} == {400.0}
    assert (row["domains"], row["gpus_per_domain"], row["nic_ports"], row["planes"]) == (domains, 8, 1, 1)


def test_servers_that_are_not_known_cost_nothing_and_ports_are_all_in_use() -> None:
    bare = HbDomain.model_validate({"name": "h", "size": 8, "gbyte_s": 450, "usd_per_gpu": 5, "w_per_gpu": 7})
    assert (bare.with_hosts().usd_per_gpu, bare.with_hosts().w_per_gpu) == (5.0, 7.0)
    switch = catalogued("switch", "64x400g", Switch)
    assert switch.port_margin == 0.0


def test_margins_that_are_not_said_are_those_of_the_reference() -> None:
    """docs/reference/instance.md: times with 80%, the memory that the framework's allocator needs, and every port."""
    unsaid = Instance.model_validate({key: value for key, value in QUESTION.items() if key != "margin"}).kept_margin
    assert (unsaid.time, unsaid.confidence, unsaid.memory, unsaid.ports) == ("model", 0.8, "software", 0.0)


def test_prices_of_own_products_are_in_no_doubt() -> None:
    nic = {"name": "own", "gbit_s": 400, "usd": 1000, "w": 20}
    asked = question(network=QUESTION["network"] | {"nics": nic})
    assert price_doubt(asked, ("nic", "own"), rises=True) == price_doubt(asked, ("nic", "unlisted"), rises=True) == 0.0


def test_every_price_of_the_catalog_has_a_basis() -> None:
    priced = {(kind, name): price_of(entry) for kind in KINDS for name, entry in entries(kind).items()}
    assert {product for product, usd in priced.items() if usd} == price_bases().keys()
    for product, basis in price_bases().items():
        assert (basis.least or 0) <= priced[product] <= (basis.most or math.inf), product
        assert bool(basis.source) == bool(basis.least or basis.most), product


@pytest.mark.parametrize(
    ("switch", "falls", "rises"),
    [
        ("51t", 1 - 55_000 / 88_832, 150_000 / 88_832 - 1),
        ("128x400g", 1 - 55_000 / 88_832, 150_000 / 88_832 - 1),
        ("256x400g", 1 - 110_000 / 177_664, 0.25),
        ("64x400g", 0.25, 0.25),
        ({"extends": "51t", "name": "51t", "usd": 60_000}, 0.0, 0.0),
    ],
)
def test_prices_are_in_doubt_as_far_as_others_are_known(switch: Any, falls: float, rises: float) -> None:
    name = switch if isinstance(switch, str) else switch["name"]
    asked = question(network=QUESTION["network"] | {"switches": switch})
    for share, up in ((falls, False), (rises, True)):
        assert price_doubt(asked, ("switch", name), rises=up) == pytest.approx(share)
        assert left_open(asked, ("switch", name), rises=up) == pytest.approx(share)


def test_a_link_of_a_rounded_rate_is_one_link() -> None:
    optic = catalogued("optic", "800g-dr8", Optic)
    assert optic.links_of(800 * (1 + 1e-12)) == 1
    assert (optic.pairs_of(800), optic.model_copy(update={"fibre": "duplex"}).pairs_of(800)) == (8, 1)


def test_lengths_in_the_hall_ask_for_no_reach() -> None:
    """docs/reference/instance.md: 50, 100 and 500 m are the lengths of links where no hall is laid out."""
    laid = question(network=QUESTION["network"] | {"cables": "hall"})
    assert laid.network.needed_reach_m == (0.0, 0.0, 0.0)


def test_what_rules_no_plan_out_is_a_million_bounds() -> None:
    """A million seconds at least, and no more than 1e15, the largest number of an instance."""
    bounds = [{"max_iteration_time_s": 0.5}, {"max_iteration_time_s": 7.5}, {}]
    assert [ample_s(Workload.model_validate(LLAMA | bound)) for bound in bounds] == [1e6, 7.5e6, 1e15]


def test_suggested_bounds_have_five_digits_and_whole_sums_stay() -> None:
    values = [(5.017612, True), (5.017612, False), (1_234_567.0, True), (99_999.0, True)]
    assert [typed(value, up=up) for value, up in values] == [5.0177, 5.0176, 1_234_567.0, 99_999.0]
    assert [typed(1_234_567.5), typed(100_001.0)] == [1_234_600.0, 100_001.0]


def test_tolerances_are_those_of_the_arithmetic_and_of_solvers() -> None:
    """docs/verifier.md: 1e-9; doubles round to 2^-53, 9,007 times here; feasibility of Gurobi, CPLEX and SCIP: 1e-6."""
    assert (EQUAL, SOLVED) == (1e-9, 1e-6)
    assert pytest.approx(9007 * 2**-53, rel=1e-3) == REORDERED
    assert question().solver.gap == 0.0


def test_what_old_software_lacks_is_at_its_least() -> None:
    """arXiv 2104.04473: neither sequence parallelism nor sharded states."""
    old = Workload.model_validate(
        {"name": "w", "model": SHAPE, "global_batch": 64, "software": {"framework": "megatron-2021"}}
    )
    assert (old.mapping.zero, old.mapping.sequence_parallel, old.mapping.cp) == ((0,), (False,), (1,))
    assert old.options.software.memory_margin == 0.1  # a tenth, which nobody measured


def test_tokens_choose_among_the_experts_of_their_groups() -> None:
    """arXiv 2412.19437, section 2.1.2: of the groups a token has some, and of their experts its own."""
    for groups, top_groups, topk in ((4, 2, 32), (2, 1, 32), (1, 1, 64)):
        shape = SHAPE | {"experts": 64, "expert_groups": groups, "top_groups": top_groups}
        assert Transformer.model_validate(shape | {"top_k": topk}).top_k == topk
        with pytest.raises(ValueError, match="top_k"):
            Transformer.model_validate(shape | {"top_k": topk + 1})


def test_experts_on_one_tp_rank_are_not_split() -> None:
    """docs/reference/instance.md: false, true or a number of ranks; 1 rank splits nothing."""
    asked = LLAMA | {"max_iteration_time_s": 1}
    split = [
        Workload.model_validate(asked | {"options": {"expert_tp": given}}).options.expert_tp for given in (1, True)
    ]
    assert split == [False, True]
    Workload.model_validate(asked | {"mapping": {"tp": 1}})  # whose one rank splits nothing either
