"""An immutable member of a share group. Follows Kafka's ShareGroupMember."""

from typing import NamedTuple

from sluice.broker.coordinator.group.assignors.spec import Assignment

_NOTHING: Assignment = {}


class ShareMember(NamedTuple):
    member_id: str
    member_epoch: int = 0
    previous_member_epoch: int = -1
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""  # as Java prints an address: "/127.0.0.1"
    subscribed_topic_names: frozenset[str] = frozenset()
    assigned: Assignment = _NOTHING
