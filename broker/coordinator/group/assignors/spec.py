"""What a server-side assignor is given, and what it gives back (Kafka's GroupSpec and GroupAssignment): plain data.

Kafka's assignors take members and topics in the order of their hashes. Ours take them in the order of the mappings here
(members as they came, topics by name), so that results do not depend on chance; where Kafka's own order does not
depend on hashes, neither of the two does, and the results are the same.
"""

from collections.abc import Callable, Mapping, Set
from typing import NamedTuple

Assignment = Mapping[bytes, Set[int]]  # topic id -> partitions; topics without partitions are left out


class MemberSpec(NamedTuple):
    """A member as its assignor sees it."""

    subscribed: Set[bytes]  # ids of topics, all of them in GroupSpec.partition_counts
    assigned: Assignment  # the target that it had until now
    instance_id: str | None = None  # of a static member


class GroupSpec(NamedTuple):
    """A group as its assignor sees it."""

    members: Mapping[str, MemberSpec]
    partition_counts: Mapping[bytes, int]  # by topic id
    homogeneous: bool  # whether all members subscribe to the same topics


Assign = Callable[[GroupSpec], dict[str, Assignment]]  # members left out get nothing
