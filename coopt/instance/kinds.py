"""Which commands answer which kind of question."""

from __future__ import annotations

from coopt.instance.errors import InstanceError
from coopt.instance.schema import Instance

WORDS = {
    "sites": ("spreads over several sites", "[[site]]"),
    "robust": ("asks for a robust plan", "[robust]"),
}


def require_one_network(instance: Instance, asked: str) -> None:
    """Refuse a question of another kind than one network that workloads use in turn.

    Raises
    ------
    InstanceError
        When the instance is of another kind; `asked` is what was to be done.
    """
    if instance.problem != "shared":
        what, table = WORDS[instance.problem]
        knows = "knows one network only" if instance.problem == "sites" else "knows nothing of that"
        raise InstanceError(f"{instance.name}: {what}, and {asked} {knows}, needs an instance without {table}")
