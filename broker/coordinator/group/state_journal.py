"""The state that each group was last seen in, so that the journal tells every change of it, once.

A classic group's state is changed in few places; that of a consumer group (KIP-848) follows from its members and
epochs, and is looked at whenever something of the group was written.
"""

from sluice.broker.journal.journal import Journal

from .group import Group

_NEW, _GONE = "Empty", "Dead"


class NotedStates:
    """Those of one coordinator's groups."""

    __slots__ = ("_journal", "_node_id", "_states")

    def __init__(self, journal: Journal, node_id: int) -> None:
        self._journal = journal
        self._node_id = node_id
        self._states: dict[str, str] = {}

    def loaded(self, group: Group) -> None:
        """A group is here as it was elsewhere, or before a restart: nothing has happened to it."""
        self._states[group.group_id] = group.state_name

    def unloaded(self, group: Group) -> None:
        """A group is elsewhere."""
        self._states.pop(group.group_id, None)

    def look(self, group: Group) -> None:
        """Something may have happened to a group."""
        self._note(group, group.state_name)

    def gone(self, group: Group) -> None:
        """A group is no more."""
        self._note(group, _GONE)
        del self._states[group.group_id]

    def _note(self, group: Group, after: str) -> None:
        before = self._states.get(group.group_id, _NEW)
        self._states[group.group_id] = after
        if after != before:
            self._journal.note_of_cluster(
                "group-state",
                self._node_id,
                group_id=group.group_id,
                group_type=group.type,
                before=before,
                after=after,
                generation=group.generation,
                members=len(group.members),
            )
