"""The leaders that rules have moved. Several rules may move one partition, each from where the one before it moved it.

A rule that ends moves its leaders back. If other means (an election, a reassignment, the admin port) change the leader
of a partition, or delete it, no rule changes that partition again.
"""

from collections.abc import Callable
from functools import partial

from sluice.broker.metadata.topic import NO_LEADER, Partition
from sluice.errors import ClusterError

from .target import FaultTarget
from .undo import Undo


class LeaderMove:
    def __init__(self, before: int, after: int, undone: Callable[[], None]) -> None:
        self.before = before
        self.after = after
        self.undone = undone


class LeaderMoves:
    def __init__(self, target: FaultTarget) -> None:
        self._target = target
        self._moves: dict[Partition, list[LeaderMove]] = {}  # the last one is the current leader

    def move(self, partition: Partition, to: int, undone: Callable[[], None]) -> Undo:
        """Move a leader until the returned function is called. Raises ClusterError.

        `undone` is called if other means change the leader first.
        """
        controller = self._target.cluster.controller
        controller.on_leader_change = self._changed
        moves = self._moves.setdefault(partition, [])
        move = LeaderMove(partition.leader, to, undone)
        moves.append(move)
        problem = controller.move_leader(partition, to)
        if problem is not None:
            moves.remove(move)
            raise ClusterError(problem)
        return partial(self._move_back, partition, move)

    def _move_back(self, partition: Partition, move: LeaderMove) -> None:
        moves = self._moves.get(partition, [])
        if move not in moves:
            return
        later = moves[moves.index(move) + 1 :]
        moves.remove(move)
        if later:
            later[0].before = move.before
            return
        if not moves:
            del self._moves[partition]
        # Fails if that replica cannot lead any more.
        self._target.cluster.controller.move_leader(partition, move.before)

    def _changed(self, partition: Partition) -> None:
        """Forget the moves of a partition whose leader is not the one that a rule chose, or elected at present."""
        moves = self._moves.get(partition)
        if moves and (partition.deleted or partition.leader not in (NO_LEADER, moves[-1].after)):
            del self._moves[partition]
            for move in moves:
                move.undone()
