"""The input and output of server-side assignors (Kafka's GroupSpec and GroupAssignment).

Kafka's assignors iterate in hash order. Here members are in order of joining and topics in order of name; where Kafka's
order does not depend on hashes, the results are equal.
"""

from collections.abc import Callable, Mapping, Set
from typing import NamedTuple

Assignment = Mapping[bytes, Set[int]]  # topic id -> partitions, without empty sets


class MemberSpec(NamedTuple):
    subscribed: Set[bytes]  # topic ids, all of them in GroupSpec.partition_counts
    assigned: Assignment  # the previous target
    instance_id: str | None = None  # of a static member


class GroupSpec(NamedTuple):
    members: Mapping[str, MemberSpec]
    partition_counts: Mapping[bytes, int]  # by topic id
    homogeneous: bool  # whether all members subscribe to the same topics


Assign = Callable[[GroupSpec], dict[str, Assignment]]  # missing members get no partitions
