"""The last state of each group, so that the journal records each change once.

The state of a consumer group (KIP-848) is compared after each write.
"""

from sluice.broker.journal.journal import Journal

from .group import Group

_NEW, _DELETED = "Empty", "Dead"


class GroupStateJournal:
    def __init__(self, journal: Journal | None, node_id: int) -> None:
        self._journal = journal
        self._node_id = node_id
        self._states: dict[str, str] = {}

    def loaded(self, group: Group) -> None:
        # A move to this broker is not a change.
        self._states[group.group_id] = group.state_name

    def unloaded(self, group: Group) -> None:
        self._states.pop(group.group_id, None)

    def record_change(self, group: Group) -> None:
        self._record(group, group.state_name)

    def deleted(self, group: Group) -> None:
        self._record(group, _DELETED)
        del self._states[group.group_id]

    def _record(self, group: Group, after: str) -> None:
        before = self._states.get(group.group_id, _NEW)
        self._states[group.group_id] = after
        if self._journal is not None and after != before:
            self._journal.add_cluster_event(
                "group-state",
                self._node_id,
                group_id=group.group_id,
                group_type=group.type,
                before=before,
                after=after,
                generation=group.generation,
                members=len(group.members),
            )
