"""The input and output of server-side assignors (Kafka's GroupSpec and GroupAssignment).

Kafka's assignors iterate in hash order; here, members are in order of joining and topics in order of name.
"""

from collections.abc import Callable, Mapping, Set
from typing import NamedTuple

Assignment = Mapping[bytes, Set[int]]  # topic id -> partitions, without empty sets


class MemberSpec(NamedTuple):
    subscribed: Set[bytes]
    assigned: Assignment
    instance_id: str | None = None


class GroupSpec(NamedTuple):
    members: Mapping[str, MemberSpec]
    partition_counts: Mapping[bytes, int]
    homogeneous: bool


Assign = Callable[[GroupSpec], dict[str, Assignment]]  # missing members get no partitions
