"""Verification that a producer may write to partitions before the first records of its transaction (KIP-890).

Otherwise late records could open a transaction that the coordinator does not know and never ends. Partitions of clients
that send AddPartitionsToTxn are verified; for newer clients they are added here. Follows
ReplicaManager.maybeSendPartitionsToTransactionCoordinator and AddPartitionsToTxnManager.
"""

from collections.abc import Callable, Mapping

from sluice.broker.broker import Broker
from sluice.broker.controller.inter_broker import reaches, send_request
from sluice.broker.coordinator.common.coordinator_log import coordinator_of
from sluice.broker.coordinator.transaction.metadata import EPOCH_RAISING_CLIENT
from sluice.broker.metadata.topic import TRANSACTION_STATE_TOPIC, Partition, TopicPartition
from sluice.protocol.errors import ErrorCode

Errors = dict[Partition, ErrorCode]


def verify(
    broker: Broker,
    transactional_id: str,
    producer_id: int,
    producer_epoch: int,
    sequences: Mapping[Partition, int],
    add: bool,
    done: Callable[[Errors], None],
) -> None:
    """Call `done`, possibly later, with the errors of partitions.

    `sequences`: the first of each partition, -1 if none. `add`: add the partitions for the client.
    """
    if not add and not broker.config.boolean("transaction.partition.verification.enable"):
        done({})
        return
    errors: Errors = {}
    unverified: dict[TopicPartition, Partition] = {}
    for partition, sequence in sequences.items():
        if not broker.replicas.leads(partition):
            continue  # the append fails
        producers = partition.log.producers
        if producers.is_fenced(producer_id, producer_epoch):
            errors[partition] = ErrorCode.INVALID_PRODUCER_EPOCH
        elif not producers.has_ongoing_transaction(producer_id, producer_epoch):
            producers.start_verification(
                producer_id, producer_epoch, sequence, raises_epochs=add, now_ms=broker.clock.wall_ms()
            )
            unverified[TopicPartition(partition.topic.name, partition.index)] = partition
    if not unverified:
        done(errors)
        return
    names = frozenset(unverified)

    def respond(codes: Mapping[TopicPartition, ErrorCode]) -> None:
        done(errors | {unverified[name]: _produce_error(code) for name, code in codes.items() if code})

    coordinator = coordinator_of(broker, TRANSACTION_STATE_TOPIC, transactional_id)
    if coordinator is None:
        respond(dict.fromkeys(names, ErrorCode.COORDINATOR_NOT_AVAILABLE))
    elif add:
        send_request(
            broker,
            coordinator,
            lambda reply: coordinator.transactions.add_partitions(
                transactional_id, producer_id, producer_epoch, names, EPOCH_RAISING_CLIENT, reply
            ),
            lambda code: respond(dict.fromkeys(names, code)),
        )
    elif not reaches(broker, coordinator):
        respond(dict.fromkeys(names, ErrorCode.NETWORK_EXCEPTION))
    else:
        respond(coordinator.transactions.verify_partitions(transactional_id, producer_id, producer_epoch, names))


def _produce_error(code: ErrorCode) -> ErrorCode:
    # INVALID_PRODUCER_EPOCH is the error that producers expect in a Produce response.
    return ErrorCode.INVALID_PRODUCER_EPOCH if code == ErrorCode.PRODUCER_FENCED else code
