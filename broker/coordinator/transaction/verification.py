"""Whether a producer may write to partitions in its transaction, asked before the first records of it are stored there
(KIP-890). So no record is left in a transaction of which the coordinator knows nothing and that nobody ever ends.

Clients that say themselves which partitions they add are verified; for newer ones the partition is added here. The
coordinator may be another broker, which is asked in this process. Follows
ReplicaManager.maybeSendPartitionsToTransactionCoordinator and AddPartitionsToTxnManager, without their network.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from sluice.broker.coordinator.common.coordinator_log import coordinator_of
from sluice.broker.metadata.topic import TRANSACTION_STATE_TOPIC, TopicPartition
from sluice.broker.replica.inter_broker import reaches, send_request
from sluice.protocol.errors import ErrorCode

from .metadata import EPOCH_RAISING_CLIENT

if TYPE_CHECKING:
    from sluice.broker.coordinator.services import CoordinatorHost
    from sluice.broker.metadata.topic import Partition

Errors = dict["Partition", ErrorCode]


def verify(
    host: "CoordinatorHost",
    transactional_id: str,
    producer_id: int,
    producer_epoch: int,
    sequences: "Mapping[Partition, int]",
    add: bool,
    done: "Callable[[Errors], None]",
) -> None:
    """Calls `done` with the partitions that must not be written to, and why: now, or when the answer is replicated.

    `sequences`: for each partition the first sequence of what is to be written, -1 where that has none. `add`: whether
    the client leaves it to the broker to add partitions.
    """
    if not add and not host.config.boolean("transaction.partition.verification.enable"):
        done({})
        return
    errors: Errors = {}
    asked: dict[TopicPartition, Partition] = {}
    for partition, sequence in sequences.items():
        producers = partition.log.producers
        if producers.is_fenced(producer_id, producer_epoch):
            errors[partition] = ErrorCode.INVALID_PRODUCER_EPOCH
        elif not producers.has_ongoing_transaction(producer_id, producer_epoch):
            producers.start_verification(
                producer_id, producer_epoch, sequence, raises_epochs=add, now_ms=host.clock.wall_ms()
            )
            asked[TopicPartition(partition.topic.name, partition.index)] = partition
    names = frozenset(asked)

    def refuse(codes: Mapping[TopicPartition, ErrorCode]) -> None:
        done(errors | {asked[name]: _told(code) for name, code in codes.items() if code})

    coordinator = coordinator_of(host, TRANSACTION_STATE_TOPIC, transactional_id) if asked else None
    if not asked:
        done(errors)
    elif coordinator is None:
        refuse(dict.fromkeys(names, ErrorCode.COORDINATOR_NOT_AVAILABLE))
    elif add:
        send_request(
            host,
            coordinator,
            lambda respond: coordinator.transactions.add_partitions(
                transactional_id, producer_id, producer_epoch, names, EPOCH_RAISING_CLIENT, respond
            ),
            lambda code: refuse(dict.fromkeys(names, code)),
        )
    elif not reaches(host, coordinator):
        refuse(dict.fromkeys(names, ErrorCode.NETWORK_EXCEPTION))
    else:
        refuse(coordinator.transactions.verify_partitions(transactional_id, producer_id, producer_epoch, names))


def _told(code: ErrorCode) -> ErrorCode:
    # Producers know this one as the answer to a write.
    return ErrorCode.INVALID_PRODUCER_EPOCH if code == ErrorCode.PRODUCER_FENCED else code
