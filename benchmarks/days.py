"""Ask the three questions of docs/days.md on 98,304 GPUs again; takes some minutes."""

from __future__ import annotations

from typing import Any

import coopt

TOKENS, BATCH, SEQ = 50e12, 6144, 8192


def question(days: float, domains: list[str], ratio: float | list[float], **failures: Any) -> coopt.Instance:
    """Llama 3.1 405B on 98,304 H100 in so many days."""
    workload = {"name": "w", "model": "llama3-405b", "global_batch": BATCH, "train_tokens": TOKENS, "train_days": days}
    network = {
        "hb_domains": domains,
        "fabrics": ["rail-only", "rail-optimized"],
        "nics": "cx7-400g",
        "switches": ["qm9700", "128x400g"],
        "optics": ["400g-sr4", "400g-dr4"],
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
        }
    )


def told(instance: coopt.Instance) -> str:
    """The plan in a line: domains, spares, cost, shares of the time, seconds, calendar days."""
    plan = coopt.solve(instance)
    if plan.design is None:
        return plan.status
    (run,), domain = plan.workloads, plan.design.hb_domain
    assert run.uptime is not None
    days = TOKENS / (BATCH * SEQ) * run.iteration_time_s / run.uptime.goodput / 86400
    return (
        f"{domain.name}: {plan.design.spare_domains} standing by, ${plan.objective.value:,.0f}, "
        f"enough {run.uptime.running:.1%}, goodput {run.uptime.goodput:.1%}, {run.iteration_time_s:.3f} s, "
        f"{days:.2f} days"
    )


def main() -> None:
    """Print the answers."""
    small = "hgx-h100-8"
    for domain in (small, "h100-hb16", "h100-hb32", "h100-hb64", "h100-hb128"):
        print("65 days", told(question(65, [domain], 4.0)))
    for chance in (0.5, 0.95, 0.99):
        print(f"62 days with {chance:.0%}", told(question(62, [small], 4.0, confidence=chance)))
    for ratio in (1.0, 3.0):
        print(f"{ratio:g}:1", told(question(200, [small], [ratio], spare_domains=60)))


if __name__ == "__main__":
    main()
