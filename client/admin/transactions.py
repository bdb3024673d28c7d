"""Transactions and producers, as an admin client sees them (KIP-664): a partition's leader is asked, a transactional
id's coordinator, and all brokers for all transactions.
"""

import asyncio
from collections.abc import Iterable, Mapping
from functools import partial

from sluice.client.errors import KafkaException, raise_for
from sluice.client.metadata.cluster import TopicPartition
from sluice.client.network.in_flight import Request, request_of
from sluice.protocol.apis import describe_transactions, list_transactions
from sluice.protocol.apis.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    ProducerState,
    TopicRequest,
)
from sluice.protocol.apis.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from sluice.protocol.apis.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from sluice.protocol.apis.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from sluice.protocol.apis.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

from .calls import AdminCalls, NodeProvider, Outcomes, broker, outcome_of
from .lookups import TRANSACTION, coordinators, leaders
from .partitions import by_topic

# Long enough for the broker to take it, and nothing is going to be produced.
_FENCING_TRANSACTION_TIMEOUT_MS = 1


class TransactionAdmin:
    """Calls about transactions."""

    _calls: AdminCalls

    async def describe_producers(
        self, partitions: Iterable[TopicPartition], *, timeout_ms: int | None = None
    ) -> Outcomes[TopicPartition, list[ProducerState]]:
        """The producers that a partition knows."""
        deadline_ms = self._calls.deadline_ms(timeout_ms)

        async def fetch(
            node: NodeProvider, wanted: list[TopicPartition]
        ) -> dict[TopicPartition, list[ProducerState] | KafkaException]:
            topics = [TopicRequest(name=name, partition_indexes=found) for name, found in by_topic(wanted).items()]
            request = request_of(DescribeProducersRequest(topics=topics))
            answer = await self._calls.once(node, lambda _: request, DescribeProducersResponse, deadline_ms)
            return {
                TopicPartition(topic.name, partition.partition_index): outcome_of(
                    partition.error_code, partition.error_message, partition.active_producers
                )
                for topic in answer.topics
                for partition in topic.partitions
            }

        return await self._calls.of_keys(partitions, leaders(self._calls, deadline_ms), fetch, deadline_ms)

    async def describe_transactions(
        self, transactional_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> Outcomes[str, describe_transactions.TransactionState]:
        """What became of the last transaction of each id."""
        deadline_ms = self._calls.deadline_ms(timeout_ms)

        async def fetch(
            node: NodeProvider, wanted: list[str]
        ) -> dict[str, describe_transactions.TransactionState | KafkaException]:
            request = request_of(DescribeTransactionsRequest(transactional_ids=wanted))
            answer = await self._calls.once(node, lambda _: request, DescribeTransactionsResponse, deadline_ms)
            return {
                state.transactional_id: outcome_of(state.error_code, None, state) for state in answer.transaction_states
            }

        lookup = coordinators(self._calls, TRANSACTION, deadline_ms)
        return await self._calls.of_keys(transactional_ids, lookup, fetch, deadline_ms)

    async def list_transactions(
        self,
        *,
        states: Iterable[str] = (),
        producer_ids: Iterable[int] = (),
        longer_than_ms: int = -1,
        id_pattern: str | None = None,
        timeout_ms: int | None = None,
    ) -> dict[str, list_transactions.TransactionState]:
        """Transactions by their ids, of all coordinators."""
        message = ListTransactionsRequest(
            state_filters=list(states),
            producer_id_filters=list(producer_ids),
            duration_filter=longer_than_ms,
            transactional_id_pattern=id_pattern,
        )
        request = request_of(message, oldest=2 if id_pattern is not None else int(longer_than_ms >= 0))
        deadline_ms = self._calls.deadline_ms(timeout_ms)

        async def of_broker(node_id: int) -> ListTransactionsResponse:
            return await self._calls.call(
                broker(node_id),
                lambda _: request,
                ListTransactionsResponse,
                deadline_ms,
                lambda answer: raise_for(answer.error_code),
            )

        answers = await asyncio.gather(*map(of_broker, await self._calls.broker_ids(deadline_ms)))
        return {state.transactional_id: state for answer in answers for state in answer.transaction_states}

    async def abort_transaction(
        self,
        partition: TopicPartition,
        *,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        timeout_ms: int | None = None,
    ) -> None:
        """Ends a transaction in a partition, whatever its coordinator knows: for one that hangs."""
        deadline_ms = self._calls.deadline_ms(timeout_ms)
        topic = WritableTxnMarkerTopic(name=partition.topic, partition_indexes=[partition.partition])
        marker = WritableTxnMarker(
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            coordinator_epoch=coordinator_epoch,
            transaction_result=False,
            topics=[topic],
        )
        request = request_of(WriteTxnMarkersRequest(markers=[marker]))

        async def fetch(
            node: NodeProvider, wanted: list[TopicPartition]
        ) -> Mapping[TopicPartition, KafkaException | None]:
            answer = await self._calls.once(node, lambda _: request, WriteTxnMarkersResponse, deadline_ms)
            code = answer.markers[0].topics[0].partitions[0].error_code
            return dict.fromkeys(wanted, outcome_of(code, None, None))

        lookup = leaders(self._calls, deadline_ms)
        (await self._calls.of_keys([partition], lookup, fetch, deadline_ms)).all()

    async def fence_producers(
        self, transactional_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> Outcomes[str, tuple[int, int]]:
        """Ends what producers of these ids may do; the producer id and epoch that took their place."""
        deadline_ms = self._calls.deadline_ms(timeout_ms)

        async def fetch(node: NodeProvider, wanted: list[str]) -> dict[str, tuple[int, int] | KafkaException]:
            fenced: dict[str, tuple[int, int] | KafkaException] = {}
            for transactional_id in wanted:  # it knows one id a request
                ask = partial(_fencing, transactional_id)
                answer = await self._calls.once(node, ask, InitProducerIdResponse, deadline_ms)
                producer = answer.producer_id, answer.producer_epoch
                fenced[transactional_id] = outcome_of(answer.error_code, None, producer)
            return fenced

        lookup = coordinators(self._calls, TRANSACTION, deadline_ms)
        return await self._calls.of_keys(transactional_ids, lookup, fetch, deadline_ms)


def _fencing(transactional_id: str, _timeout_ms: int) -> Request:
    return request_of(
        InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=_FENCING_TRANSACTION_TIMEOUT_MS)
    )
