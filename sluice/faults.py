"""The actions of fault rules, for tests that make brokers fail: the actions, `Rule` and `FaultError`.

    from sluice.faults import Close, Error

    broker.faults.add(Error("NOT_LEADER_OR_FOLLOWER"), api="Produce", times=3)

broker/faults/ implements them; docs/faults.md describes each.
"""

from sluice.broker.faults.actions.brokers import BrokerDown, Isolate
from sluice.broker.faults.actions.connections import (
    Bandwidth,
    DropIdle,
    RefuseConnections,
    SilentConnections,
    StallSasl,
    StallTls,
)
from sluice.broker.faults.actions.delay import Delay, Hold
from sluice.broker.faults.actions.disks import DiskFull, SlowDisk
from sluice.broker.faults.actions.error_response import Error
from sluice.broker.faults.actions.frames import CorrelationId, Garbage, Oversize, Truncate
from sluice.broker.faults.actions.leaders import (
    ControllerLost,
    CoordinatorMoved,
    LeaderMoved,
    SlowElection,
    UncleanElection,
)
from sluice.broker.faults.actions.no_response import BlackHole, Close
from sluice.broker.faults.actions.records import CorruptRecords, Duplicate
from sluice.broker.faults.actions.share_groups import AcknowledgementError, AcquisitionLockLost, Redelivery
from sluice.broker.faults.actions.stale_metadata import MetadataLag, StaleMetadata
from sluice.broker.faults.actions.throttle import Throttle
from sluice.broker.faults.actions.wrong_metadata import (
    EmptyMetadata,
    OffsetLie,
    StaleLeaderHint,
    UnknownLeader,
    WrongLeader,
)
from sluice.broker.faults.rule import Rule
from sluice.errors import FaultError

__all__ = [
    "AcknowledgementError",
    "AcquisitionLockLost",
    "Bandwidth",
    "BlackHole",
    "BrokerDown",
    "Close",
    "ControllerLost",
    "CoordinatorMoved",
    "CorrelationId",
    "CorruptRecords",
    "Delay",
    "DiskFull",
    "DropIdle",
    "Duplicate",
    "EmptyMetadata",
    "Error",
    "FaultError",
    "Garbage",
    "Hold",
    "Isolate",
    "LeaderMoved",
    "MetadataLag",
    "OffsetLie",
    "Oversize",
    "Redelivery",
    "RefuseConnections",
    "Rule",
    "SilentConnections",
    "SlowDisk",
    "SlowElection",
    "StaleLeaderHint",
    "StaleMetadata",
    "StallSasl",
    "StallTls",
    "Throttle",
    "Truncate",
    "UncleanElection",
    "UnknownLeader",
    "WrongLeader",
]
