"""Which partitions of its topic a coordinator has, and how far it is with them. Follows Kafka's CoordinatorRuntime and
the loading partitions of its TransactionStateManager.

A coordinator answers for the keys of those partitions that its broker leads. When the broker becomes the leader of one,
what is written there is *loaded*, and until that is done clients are told to come again. When it is the leader no more,
what was loaded is dropped, and clients are told to look for the coordinator elsewhere.

    not here  --load-->  Loading  --loaded-->  Active
        ^                   |                    |
        '------unload-------'-------unload-------'
"""

from collections.abc import Callable
from enum import Enum, auto
from functools import partial
from typing import TYPE_CHECKING

from sluice.broker.metadata.topic import Partition
from sluice.protocol.errors import ErrorCode

from .coordinator_log import CoordinatorLog

if TYPE_CHECKING:
    from sluice.broker.coordinator.services import CoordinatorHost


class LoadState(Enum):
    """How far the coordinator is with a partition. One that is not here has no state."""

    LOADING = auto()
    ACTIVE = auto()


# State -> what is said to whoever asks about a key of such a partition.
ANSWERS = {
    None: ErrorCode.NOT_COORDINATOR,
    LoadState.LOADING: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    LoadState.ACTIVE: ErrorCode.NONE,
}


class Shard:
    """One stay of a partition here."""

    __slots__ = ("state",)

    def __init__(self) -> None:
        self.state = LoadState.LOADING


class CoordinatorShards:
    """The partitions of one coordinator.

    `recover(partition)` takes in what is written there, `resign(partition)` drops it.
    """

    __slots__ = ("_delay_ms", "_here", "_host", "_log", "_recover", "_resign")

    def __init__(
        self,
        host: "CoordinatorHost",
        log: CoordinatorLog,
        recover: Callable[[Partition], None],
        resign: Callable[[Partition], None],
    ) -> None:
        self._host = host
        self._log = log
        self._recover = recover
        self._resign = resign
        self._delay_ms = host.config.integer("sluice.coordinator.load.delay.ms")
        self._here: dict[int, Shard] = {}

    def error(self, key: str) -> ErrorCode:
        """NONE where this coordinator answers for the key, else what the client is told."""
        partition = self._log.partition_of(key)
        here = self._here.get(partition.index)
        if here is None and self._host.leads(partition):  # the topic has just been created
            self.load(partition)
            here = self._here[partition.index]
        return ANSWERS[None if here is None else here.state]

    @property
    def is_loading(self) -> bool:
        """Whether any partition is."""
        return any(here.state is LoadState.LOADING for here in self._here.values())

    def load_led(self) -> None:
        """Loads all that the broker leads."""
        topic = self._host.cluster.topics.get(self._log.name)
        for partition in () if topic is None else topic.partitions:
            if self._host.leads(partition):
                self.load(partition)

    def load(self, partition: Partition) -> None:
        """The broker leads this partition: takes in what is written there. Does nothing where that is here already.

        It takes `sluice.coordinator.load.delay.ms`, so that it can be seen what clients do meanwhile.
        """
        if partition.index in self._here:
            return
        here = self._here[partition.index] = Shard()
        loaded = partial(self._loaded, partition, here)
        if self._delay_ms:
            self._host.scheduler.schedule_once(self._delay_ms, loaded)
        else:
            loaded()

    def _loaded(self, partition: Partition, here: Shard) -> None:
        if self._here.get(partition.index) is here:  # else it was unloaded meanwhile
            here.state = LoadState.ACTIVE
            self._recover(partition)

    def unload(self, partition: Partition) -> None:
        """The broker leads this partition no more: drops what was loaded. Does nothing where it is not here."""
        here = self._here.pop(partition.index, None)
        if here is not None and here.state is LoadState.ACTIVE:
            self._resign(partition)
