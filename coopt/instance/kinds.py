"""Which commands answer which kind of question."""

from __future__ import annotations

from coopt.instance.errors import InstanceError
from coopt.instance.schema import Instance

WORDS = {"sites": "spreads over several sites", "direct": "may join domains by direct links"}


def require_one_network(instance: Instance, asked: str) -> None:
    """Refuse a question of another kind than one network that workloads use in turn.

    Raises
    ------
    InstanceError
        When the instance is of another kind; `asked` is what was to be done.
    """
    if instance.problem != "shared":
        raise InstanceError(
            f"{instance.name}: {WORDS[instance.problem]}, and {asked} knows one network only, "
            "needs an instance of one network"
        )
