"""What share of the time trains: published figures, and the same by drawing runs event by event."""

import math
import random
from statistics import NormalDist

import pytest

import coopt
from coopt.instance.catalog import FailureRates, find
from coopt.instance.hardware import HbDomain
from coopt.instance.reserves import Availability
from coopt.perf.uptime import (
    PartCounts,
    best_interval_s,
    binomial_up_to,
    domain_lost,
    enough_domains,
    failures_per_hour,
    promised_share,
    throughput_without,
    trained_share,
    variance_s,
    waiting_variance_s,
)
from coopt.verifier.parts.space import DesignFamily
from coopt.verifier.parts.uptime import lost_domain, lost_of, running_share
from coopt.verifier.simulation.interruptions import RunTerms, run_s, terms_of
from tests.conftest import ROOT, example_count


def rates(name: str) -> FailureRates:
    found = find("failure_rates", name)
    assert isinstance(found, FailureRates)
    return found


def asked(**keys: object) -> Availability:
    return Availability.model_validate({"rates": "llama-3"} | keys)


LLAMA = PartCounts(gpus=16384, nics=16384, optics=70218, switches=1024, domains=2048)


@pytest.mark.parametrize(("gpus", "hours"), [(16_384, 1.8), (131_072, 0.23)])
def test_time_between_failures_is_that_which_meta_projects(gpus, hours):
    counts = PartCounts(gpus=gpus, nics=gpus, optics=0, switches=0, domains=gpus // 8)
    assert 1 / failures_per_hour(rates("rsc-1"), "published", counts) == pytest.approx(hours, rel=0.03)


def test_rates_of_llama_3_add_up_to_its_interruptions():
    per_hour = failures_per_hour(rates("llama-3"), "published", LLAMA)
    assert per_hour * 24 * 54 == pytest.approx(419, rel=0.005)


def test_llama_3_trains_more_than_nine_tenths_of_the_time():
    per_s = failures_per_hour(rates("llama-3"), "published", LLAMA) / 3600
    saved_s = 405e9 * 14 / (0.12e9 * 16384)
    restart_s = 300 + 20 * 16.384 + saved_s
    share = trained_share(per_s, interval_s=best_interval_s(per_s, saved_s), checkpoint_s=saved_s, restart_s=restart_s)
    waits = enough_domains(domain_lost(asked(), size=8, active=8, nics_per_gpu=1), 2048, 16)
    assert 0.90 < share * waits < 0.95


@pytest.mark.parametrize(("size", "least", "most"), [(64, 0.055, 0.075), (72, 0.06, 0.08), (100, 0.08, 0.11)])
def test_a_thousandth_of_the_gpus_costs_about_a_tenth_without_spare_domains(size, least, most):
    terms = {"domains": 512, "size": size, "active": size, "of_replica": 4}
    alone = 1 - throughput_without(0.001, **terms)
    assert least < alone < most
    assert 1 - throughput_without(0.001, **terms, spares=96) < 1e-3
    assert 1 - throughput_without(0.001, **terms | {"active": size - 4}) < 1e-3


def test_best_interval_is_that_of_young_for_rare_failures_and_beats_others():
    for per_s, saved_s in ((1e-7, 5.0), (1e-4, 30.0), (1e-3, 400.0)):
        best = float(best_interval_s(per_s, saved_s))
        terms = {"checkpoint_s": saved_s, "restart_s": 60.0}
        share = trained_share(per_s, interval_s=best, **terms)
        assert all(
            share >= trained_share(per_s, interval_s=best * factor, **terms) for factor in (0.9, 0.99, 1.01, 1.1)
        )
    assert float(best_interval_s(1e-9, 10.0)) == pytest.approx(math.sqrt(2 * 10.0 / 1e-9), rel=1e-3)


def test_without_failures_only_given_checkpoints_take_time():
    assert math.isinf(best_interval_s(0.0, 5.0))
    assert trained_share(0.0, interval_s=math.inf, checkpoint_s=5.0, restart_s=60.0) == 1.0
    assert trained_share(0.0, interval_s=95.0, checkpoint_s=5.0, restart_s=60.0) == 0.95


@pytest.mark.parametrize(("size", "active", "per_host"), [(8, 8, 8), (72, 64, 4), (72, 70, 8), (12, 11, 8), (12, 8, 8)])
@pytest.mark.parametrize("nics", [{"nics_per_gpu": 2}, {"nics_per_gpu": 1, "gpus_per_nic": 4}])
def test_lost_domains_are_those_that_the_verifier_counts_host_by_host(size, active, per_host, nics):
    often = {"domain": {"per_year": 0.2}, "nic": {"per_year": 2.0, "low": 2.0, "high": 2.0}}
    own = asked(rates={"extends": "llama-3", "gpus_per_host": per_host, **often})
    here, there = domain_lost(own, size=size, active=active, **nics), lost_domain(own, size, active, *nics.values())
    assert here == pytest.approx(there, rel=1e-9, abs=1e-15)
    for spares in (0, 3, 40):
        assert enough_domains(here, 500, spares) == pytest.approx(running_share(there, 500, spares), rel=1e-9)


def test_gpus_that_share_a_nic_are_lost_with_it():
    """Of 8 GPUs all train: a domain is whole while no NIC is out, of 8 or of 2; 4 hot spares stand in for one NIC."""
    own = asked(rates={"name": "adapters", "nic": {"per_year": 10.0}}, repair_hours=24.0)
    out = 10.0 * 24 / (8760 + 240)
    for shared, active, whole in (
        (1, 8, (1 - out) ** 8),
        (4, 8, (1 - out) ** 2),
        (4, 4, 1 - out**2),
        (4, 5, (1 - out) ** 2),
    ):
        lost = domain_lost(own, size=8, active=active, nics_per_gpu=1, gpus_per_nic=shared)
        assert lost == pytest.approx(1 - whole, rel=1e-12)


def test_spares_never_leave_fewer_whole_domains():
    shares = [enough_domains(0.01, 1000, spares) for spares in range(40)]
    assert shares == sorted(shares)
    assert binomial_up_to(5, 0.5, 2) == pytest.approx(0.5)


def random_terms(draw: random.Random) -> tuple[RunTerms, float, float]:
    """A cluster with 1 to 20% of its time lost, how long a domain is out, and the share of time with domains enough."""
    domains, hours = draw.randint(4, 200), draw.uniform(2, 48)
    failure_s = draw.uniform(2, 40) * 3600
    saved_s, restart_s = draw.uniform(0.0005, 0.01) * failure_s, draw.uniform(0.005, 0.05) * failure_s
    domain_per_s = draw.uniform(0.1, 1.0) / failure_s / domains
    lost = domain_per_s * hours * 3600 / (1 + domain_per_s * hours * 3600)
    spares = int(lost * domains) + draw.randint(1, 4)
    interval_s = float(best_interval_s(1 / failure_s, saved_s)) * draw.choice([0.5, 1.0, 2.0])
    terms = RunTerms(1 / failure_s, interval_s, saved_s, restart_s, domain_per_s, hours * 3600, domains, spares)
    return terms, lost, enough_domains(lost, domains, spares)


def drawn_and_closed(seed: int, failures: float) -> tuple[float, float]:
    """The share of the time that trains in a long run, drawn event by event and in closed form."""
    draw = random.Random(seed)
    terms, _, running = random_terms(draw)
    share = trained_share(
        terms.per_s, interval_s=terms.interval_s, checkpoint_s=terms.checkpoint_s, restart_s=terms.restart_s
    )
    work_s = failures / terms.per_s
    return work_s / run_s(terms, work_s, draw), running * float(share)


@pytest.mark.parametrize("seed", range(example_count(2, usual=1)))
def test_as_many_runs_keep_their_days_as_are_promised(seed):
    draw = random.Random(seed)
    terms, lost, running = random_terms(draw)
    taken = {"interval_s": terms.interval_s, "checkpoint_s": terms.checkpoint_s, "restart_s": terms.restart_s}
    spread = {
        "mean": 1 / float(trained_share(terms.per_s, **taken)),
        "variance_s": float(variance_s(terms.per_s, **taken)),
        "running": running,
        "waits_s": waiting_variance_s(lost, terms.domains, terms.spares, terms.repair_s),
    }
    span_s = 1500 / terms.per_s
    for chance in (0.5, 0.9):
        work_s = span_s * promised_share(span_s, NormalDist().inv_cdf(chance), **spread)
        kept = sum(run_s(terms, work_s, draw) <= span_s for _ in range(150)) / 150
        assert kept == pytest.approx(chance, abs=4 * math.sqrt(chance * (1 - chance) / 150) + 0.02)


def test_a_host_that_takes_two_domains_stops_training_once():
    lost_per_s, hour_s = 1e-5, 3600.0  # of each of ten domains, two of them on a host
    terms = RunTerms(10 * lost_per_s / 2, hour_s, 20.0, 2000.0, lost_per_s, hour_s, 10, 20, taken=2.0)
    work_s = 20_000 / terms.per_s
    share = trained_share(terms.per_s, interval_s=hour_s, checkpoint_s=20.0, restart_s=2000.0)
    assert work_s / run_s(terms, work_s, random.Random(0)) == pytest.approx(float(share), rel=0.01)


@pytest.mark.parametrize(("size", "taken"), [(16, 1.0), (8, 1.0), (4, 2.0)])
def test_a_failure_takes_as_many_domains_as_share_a_host(size, taken):
    """GPUs that fail often keep a domain of theirs out for longer than a repair."""
    part = "gpu" if taken == 1 else "host"
    often = {"rates": {"extends": "llama-3", "name": "often", part: dict.fromkeys(("low", "per_year", "high"), 20.0)}}
    workload = coopt.load(ROOT / "instances" / "tiny-64.toml").workload[0]
    family = DesignFamily(
        4 * size, HbDomain(name="hb", size=size, gbyte_s=450.0, usd_per_gpu=0.0, w_per_gpu=0.0), 4, None, spares=2
    )
    terms = terms_of(asked(**often), workload, family, ())
    lost = lost_of(asked(**often), family)
    assert terms.taken == pytest.approx(taken, rel=0.1)
    assert terms.domain_per_s * terms.repair_s == pytest.approx(lost / (1 - lost), rel=1e-9)
    assert terms.domains * terms.domain_per_s <= terms.per_s * terms.taken * (1 + 1e-9)


def test_a_run_that_nothing_interrupts_takes_no_checkpoint():
    rates = {"extends": "llama-3", "name": "never"}
    rates |= {
        part: dict.fromkeys(("low", "per_year", "high"), 0.0) for part in find("failure_rates", "llama-3").of_part
    }
    workload = coopt.load(ROOT / "instances" / "tiny-64.toml").workload[0]
    family = DesignFamily(8, HbDomain(name="hb", size=8, gbyte_s=450.0, usd_per_gpu=0.0, w_per_gpu=0.0), 1, None)
    assert run_s(terms_of(asked(rates=rates), workload, family, ()), 2e6, random.Random(0)) == 2e6


CLUSTERS = example_count(200, usual=12)


@pytest.mark.parametrize("seed", range(CLUSTERS))
def test_runs_drawn_event_by_event_train_as_much_as_the_closed_form_says(seed):
    """All clusters of a campaign are drawn for longer, as one of 200 is further off by chance than one of 20."""
    drawn, closed = drawn_and_closed(seed, failures=20_000 if CLUSTERS < 200 else 150_000)
    assert drawn == pytest.approx(closed, rel=0.01)
