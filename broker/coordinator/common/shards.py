"""The shards of a coordinator: the partitions of its topic that the broker leads.

Follows Kafka's CoordinatorRuntime and the loading partitions of its TransactionStateManager. Requests fail with
COORDINATOR_LOAD_IN_PROGRESS for a key that is being loaded, and with NOT_COORDINATOR for one without a shard.

    no shard  --load-->  Loading  --loaded-->  Active
        ^                   |                    |
        '------unload-------'-------unload-------'
"""

from collections.abc import Callable
from enum import Enum, auto
from functools import partial

from sluice.broker.controller.broker_node import BrokerNode
from sluice.broker.metadata.topic import Partition
from sluice.errors import NotDurableError
from sluice.protocol.errors import ErrorCode

from .coordinator_log import CoordinatorLog


class ShardState(Enum):
    LOADING = auto()
    ACTIVE = auto()


_ERRORS = {
    None: ErrorCode.NOT_COORDINATOR,
    ShardState.LOADING: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ShardState.ACTIVE: ErrorCode.NONE,
}


class Shard:
    __slots__ = ("state",)

    def __init__(self) -> None:
        self.state = ShardState.LOADING


class CoordinatorShards:
    """The shards of one coordinator; `recover` loads the state of a partition, `resign` drops it."""

    __slots__ = ("_delay_ms", "_host", "_log", "_recover", "_resign", "_shards")

    def __init__(
        self,
        host: BrokerNode,
        log: CoordinatorLog,
        recover: Callable[[Partition], None],
        resign: Callable[[Partition], None],
    ) -> None:
        self._host = host
        self._log = log
        self._recover = recover
        self._resign = resign
        self._delay_ms = host.config.integer("sluice.coordinator.load.delay.ms")
        self._shards: dict[int, Shard] = {}

    def error(self, key: str) -> ErrorCode:
        try:
            partition = self._log.partition_of(key)
        except NotDurableError:  # the topic cannot be created
            return ErrorCode.NOT_COORDINATOR
        shard = self._shards.get(partition.index)
        if shard is None and self._host.replicas.leads(partition):  # the topic was created by `partition_of`
            self.load(partition)
            shard = self._shards[partition.index]
        return _ERRORS[None if shard is None else shard.state]

    @property
    def is_loading(self) -> bool:
        return any(shard.state is ShardState.LOADING for shard in self._shards.values())

    def load_led(self) -> None:
        topic = self._host.metadata.topics.get(self._log.name)
        for partition in () if topic is None else topic.partitions:
            if self._host.replicas.leads(partition):
                self.load(partition)

    def load(self, partition: Partition) -> None:
        if partition.index in self._shards:
            return
        shard = self._shards[partition.index] = Shard()
        finish = partial(self._finish_loading, partition, shard)
        if self._delay_ms:
            self._host.scheduler.schedule_once(self._delay_ms, finish)
        else:
            finish()

    def _finish_loading(self, partition: Partition, shard: Shard) -> None:
        if self._shards.get(partition.index) is shard:  # not unloaded in the meantime
            shard.state = ShardState.ACTIVE
            self._recover(partition)

    def unload(self, partition: Partition) -> None:
        shard = self._shards.pop(partition.index, None)
        if shard is not None and shard.state is ShardState.ACTIVE:
            self._resign(partition)
