"""All actions: as the union that types a rule's `action`, and by name."""

from typing import get_args

from sluice.broker.faults.fault import Action

from .brokers import BrokerDown, Isolate
from .connections import Bandwidth, DropIdle, RefuseConnections, SilentConnections, StallSasl, StallTls
from .delay import Delay, Hold
from .disks import DiskFull, SlowDisk
from .error_response import Error
from .frames import CorrelationId, Garbage, Oversize, Truncate
from .leaders import ControllerLost, CoordinatorMoved, LeaderMoved, SlowElection, UncleanElection
from .no_response import BlackHole, Close
from .records import CorruptRecords, Duplicate
from .share_groups import AcknowledgementError, AcquisitionLockLost, Redelivery
from .stale_metadata import MetadataLag, StaleMetadata
from .throttle import Throttle
from .wrong_metadata import EmptyMetadata, OffsetLie, StaleLeaderHint, UnknownLeader, WrongLeader

RequestActions = (
    Error
    | Delay
    | Hold
    | BlackHole
    | Close
    | CorrelationId
    | Truncate
    | Garbage
    | Oversize
    | CorruptRecords
    | Duplicate
    | Throttle
    | SlowDisk
)
WrongMetadataActions = UnknownLeader | WrongLeader | StaleLeaderHint | EmptyMetadata | OffsetLie
ConnectionActions = RefuseConnections | SilentConnections | StallTls | StallSasl | Bandwidth | DropIdle
ShareGroupActions = AcquisitionLockLost | Redelivery | AcknowledgementError
LeaderActions = ControllerLost | SlowElection | UncleanElection | LeaderMoved | CoordinatorMoved
StateActions = BrokerDown | Isolate | StaleMetadata | MetadataLag | DiskFull
AnyAction = RequestActions | WrongMetadataActions | ShareGroupActions | ConnectionActions | LeaderActions | StateActions

KINDS: dict[str, type[Action]] = {str(each.__struct_config__.tag): each for each in get_args(AnyAction)}
