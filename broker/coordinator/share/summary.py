"""What the group coordinator reads of a share partition."""

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from sluice.protocol.errors import ErrorCode

NO_OFFSET = -1


class PartitionSummary(NamedTuple):
    error: ErrorCode = ErrorCode.NONE
    start_offset: int = NO_OFFSET
    state_epoch: int = 0
    leader_epoch: int = 0
    delivery_complete_count: int = -1


ShareErrors = Mapping[bytes, Mapping[int, ErrorCode]]
ShareSummaries = Mapping[bytes, Mapping[int, PartitionSummary]]


@cache
def failed_summary(error: ErrorCode) -> PartitionSummary:
    return PartitionSummary(error)
