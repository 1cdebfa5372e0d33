"""Trees grown in turn, the construction published as MULTITREE (Huang et al., ISCA 2021)."""

from __future__ import annotations

from coopt.network.schedules.board import Arc, Board, Path, free_path, take
from coopt.network.schedules.schedule_form import Hop, Schedule, schedule_of


def grown_in_turn(board: Board) -> Schedule:
    """One tree for each domain; in every step the trees take turns, one attachment each, until no free link helps.

    A tree grows from the member that joined first among those that joined before this step. Behind switches, the path
    takes a link of every arc on it.
    """
    grown = _Growth(board)
    step = 0
    while grown.grow(step):
        step += 1
    return schedule_of(board, "multitree", grown.hops, found_by="trees grown in turn")


class _Growth:
    """Members of every tree, and the hops so far."""

    def __init__(self, board: Board) -> None:
        self.board = board
        self.joined = [[root] for root in range(board.domains)]
        self.members = [{root} for root in range(board.domains)]
        self.hops: list[Hop] = []

    def grow(self, step: int) -> bool:
        """Fill one step; False when every tree is complete."""
        left = dict(self.board.links)
        ports = [self.board.ports(domain) for domain in range(self.board.domains)]
        frozen = [list(joined) for joined in self.joined]
        growing = [root for root, members in enumerate(self.members) if len(members) < self.board.domains]
        if not growing:
            return False
        while growing:
            still = []
            for root in growing:
                path = self._attachment(root, frozen[root], left, ports)
                if path is None:
                    continue  # links only get fewer: this tree is done for the step
                take(left, path)
                ports[path[0]] -= 1
                self.joined[root].append(path[-1])
                self.members[root].add(path[-1])
                self.hops.append(Hop(step, root, path))
                still.append(root)
            growing = still
        return True

    def _attachment(self, root: int, parents: list[int], left: dict[Arc, int], ports: list[int]) -> Path | None:
        """The way to one more member."""
        members, near, domains = self.members[root], self.board.near, self.board.domains
        for parent in parents:
            if not ports[parent]:
                continue
            if self.board.direct:
                for child in near[parent]:
                    if child not in members and left[parent, child] > 0:
                        return parent, child
                continue
            path = free_path(self.board, parent, lambda end: end < domains and end not in members, left)
            if path is not None:
                return path
        return None
