"""The shards of a coordinator: the partitions of its topic that the broker leads.

Follows Kafka's CoordinatorRuntime and the loading partitions of its TransactionStateManager. Requests fail with
COORDINATOR_LOAD_IN_PROGRESS for a key that is being loaded, and with NOT_COORDINATOR for one without a shard.

    no shard  --load-->  Loading  --loaded-->  Active
        ^                   |                    |
        '------unload-------'-------unload-------'
"""

from collections.abc import Callable

from sluice.broker.controller.broker_node import BrokerNode
from sluice.broker.metadata.topic import Partition
from sluice.errors import NotDurableError
from sluice.protocol.errors import ErrorCode

from .coordinator_log import CoordinatorLog


class CoordinatorShards:
    """The shards of one coordinator; `recover` loads the state of a partition, `resign` drops it."""

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
        self._loading: dict[int, object] = {}  # by partition index
        self._active: set[int] = set()

    def error(self, key: str) -> ErrorCode:
        try:
            partition = self._log.partition_of(key)
        except NotDurableError:  # the topic cannot be created
            return ErrorCode.NOT_COORDINATOR
        if self._host.replicas.leads(partition):  # the topic may be created by `partition_of`
            self.load(partition)
        if partition.index in self._active:
            return ErrorCode.NONE
        is_loading = partition.index in self._loading
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if is_loading else ErrorCode.NOT_COORDINATOR

    @property
    def is_loading(self) -> bool:
        return bool(self._loading)

    def load_led(self) -> None:
        topic = self._host.metadata.topics.get(self._log.name)
        for partition in () if topic is None else topic.partitions:
            if self._host.replicas.leads(partition):
                self.load(partition)

    def load(self, partition: Partition) -> None:
        index = partition.index
        if index in self._active or index in self._loading:
            return
        loading = self._loading[index] = object()

        def finish() -> None:
            if self._loading.get(index) is loading:  # not unloaded in the meantime
                del self._loading[index]
                self._active.add(index)
                self._recover(partition)

        if self._delay_ms:
            self._host.scheduler.schedule_once(self._delay_ms, finish)
        else:
            finish()

    def unload(self, partition: Partition) -> None:
        self._loading.pop(partition.index, None)
        if partition.index in self._active:
            self._active.remove(partition.index)
            self._resign(partition)
