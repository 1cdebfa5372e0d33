"""Ask the three questions of docs/days.md on 98,304 GPUs again, in the words of the page; takes a
minute.
"""

from __future__ import annotations

from typing import Any

import coopt

TOKENS, BATCH, SEQ = 50e12, 6144, 8192


def question(
    days: float, domains: list[str], ratio: float | list[float], **failures: Any
) -> coopt.Instance:
    """Llama 3.1 405B on 98,304 H100 in so many days."""
    workload = {
        "name": "w",
        "model": "llama3-405b",
        "global_batch": BATCH,
        "train_tokens": TOKENS,
        "train_days": days,
    }
    network = {
        "hb_domains": domains,
        "fabrics": ["rail-only", "rail-optimized"],
        "nics": "cx7-400g",
        "switches": "qm9700",
        "optics": ["400g-sr4", "800g-sr8", "800g-dr8"],
        "oversubscription": ratio,
    }
    rates = {"rates": "llama-3", "restart_s": 120.0, "restart_s_per_1000_gpus": 0.0, **failures}
    return coopt.Instance.model_validate(
        {
            "schema": 1,
            "name": "days-100k",
            "cluster": {"gpu": "h100-sxm", "gpus": 98_304},
            "workload": [workload],
            "network": network,
            "availability": rates,
            "margin": "none",
        }
    )


def answer(instance: coopt.Instance) -> dict[str, str]:
    """What the page says of a plan, as it is written there."""
    plan = coopt.solve(instance)
    assert plan.design is not None, "each of these questions has a plan"
    (run,), design = plan.workloads, plan.design
    assert run.uptime is not None
    days = TOKENS / (BATCH * SEQ) * run.iteration_time_s / run.uptime.goodput / 86400
    spares = design.spare_domains
    shown = (
        f"{design.hb_domain.size}",
        f"${(plan.objective.value or 0.0) / 1e6:,.1f} M",
        f"{spares}",
        f"{spares * design.hb_domain.size:,}",
        f"{run.uptime.running:.1%}",
        f"{run.uptime.goodput:.1%}",
        f"{run.iteration_time_s:.2f} s",
        f"{days:.1f}",
    )
    return dict(
        zip(
            ("size", "cost", "spares", "idle", "running", "goodput", "iteration", "days"),
            shown,
            strict=True,
        )
    )


DOMAINS = ("hgx-h100-8", "h100-hb16", "h100-hb32", "h100-hb64", "h100-hb128")


def of_domain(domain: str) -> str:
    """The row of a kind of domain."""
    return "| " + " | ".join(answer(question(65, [domain], 4.0)).values()) + " |"


def of_chance(chance: float) -> str:
    """What stands by for 62 days that are kept with a probability."""
    found = answer(question(62, [DOMAINS[0]], 4.0, confidence=chance))
    return f"{found['spares']} with {chance:.0%}, at {found['cost']}"


def of_ratio(ratio: float) -> str:
    """The days that a network of an oversubscription takes."""
    found = answer(question(200, [DOMAINS[0]], [ratio], spare_domains=60))
    return f"{found['days']} days at {ratio:g}:1 for {found['cost']}"


def main() -> None:
    """Print the answers."""
    for domain in DOMAINS:
        print(of_domain(domain))
    for chance in (0.5, 0.95, 0.99):
        print(of_chance(chance))
    for ratio in (1.0, 3.0):
        print(of_ratio(ratio))


if __name__ == "__main__":
    main()
