"""Admin calls for transactions and producers (KIP-664)."""

from collections.abc import Iterable

from sluice.client.errors import KafkaException
from sluice.client.metadata.cluster import TopicPartition, by_partition, by_topic
from sluice.client.network.in_flight import request_of
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
from sluice.text.arguments import Milliseconds, checks_arguments

from .calls import AdminCalls, NodeProvider, Outcomes, RequestSource, outcome, raise_error
from .lookups import find_leaders, find_transaction_coordinators

# The smallest timeout that brokers accept; the transaction stays empty.
_FENCING_TRANSACTION_TIMEOUT_MS = 1


@checks_arguments
class TransactionAdmin:
    _calls: AdminCalls

    async def describe_producers(
        self, partitions: Iterable[TopicPartition], *, timeout_ms: Milliseconds | None = None
    ) -> Outcomes[TopicPartition, list[ProducerState]]:
        """Return the active producers of partitions."""

        def build(wanted: list[TopicPartition]) -> RequestSource:
            topics = [TopicRequest(name=name, partition_indexes=found) for name, found in by_topic(wanted).items()]
            return request_of(DescribeProducersRequest(topics=topics))

        return await self._calls.call_by_key(
            partitions,
            find_leaders,
            build,
            DescribeProducersResponse,
            lambda response, _: {
                partition: outcome(result, result.active_producers)
                for partition, result in by_partition(response.topics).items()
            },
            timeout_ms,
        )

    async def describe_transactions(
        self, transactional_ids: Iterable[str], *, timeout_ms: Milliseconds | None = None
    ) -> Outcomes[str, describe_transactions.TransactionState]:
        """Return the state of each transactional id's last transaction."""
        return await self._calls.call_by_key(
            transactional_ids,
            find_transaction_coordinators,
            lambda wanted: request_of(DescribeTransactionsRequest(transactional_ids=wanted)),
            DescribeTransactionsResponse,
            lambda response, _: {
                state.transactional_id: outcome(state, state) for state in response.transaction_states
            },
            timeout_ms,
        )

    async def list_transactions(
        self,
        *,
        states: Iterable[str] = (),
        producer_ids: Iterable[int] = (),
        longer_than_ms: int = -1,
        id_pattern: str | None = None,
        timeout_ms: Milliseconds | None = None,
    ) -> dict[str, list_transactions.TransactionState]:
        """Return the transactions of all coordinators, by transactional id."""
        message = ListTransactionsRequest(
            state_filters=list(states),
            producer_id_filters=list(producer_ids),
            duration_filter=longer_than_ms,
            transactional_id_pattern=id_pattern,
        )
        request = request_of(message, oldest=2 if id_pattern is not None else int(longer_than_ms >= 0))
        responses = await self._calls.call_all_brokers(request, ListTransactionsResponse, raise_error, timeout_ms)
        return {state.transactional_id: state for response in responses for state in response.transaction_states}

    async def abort_transaction(
        self,
        partition: TopicPartition,
        *,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        timeout_ms: Milliseconds | None = None,
    ) -> None:
        """Abort a hanging transaction in one partition, bypassing its coordinator."""
        marker = WritableTxnMarker(
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            coordinator_epoch=coordinator_epoch,
            transaction_result=False,
            topics=[WritableTxnMarkerTopic(name=partition.topic, partition_indexes=[partition.partition])],
        )
        outcomes = await self._calls.call_by_key(
            [partition],
            find_leaders,
            lambda _: request_of(WriteTxnMarkersRequest(markers=[marker])),
            WriteTxnMarkersResponse,
            lambda response, _: {partition: outcome(response.markers[0].topics[0].partitions[0], None)},
            timeout_ms,
        )
        outcomes.all()

    async def fence_producers(
        self, transactional_ids: Iterable[str], *, timeout_ms: Milliseconds | None = None
    ) -> Outcomes[str, tuple[int, int]]:
        """Fence producers by transactional id; return their new producer ids and epochs."""

        async def fetch(
            node: NodeProvider, wanted: list[str], deadline_ms: float
        ) -> dict[str, tuple[int, int] | KafkaException]:
            fenced: dict[str, tuple[int, int] | KafkaException] = {}
            for transactional_id in wanted:  # a request has one id
                message = InitProducerIdRequest(
                    transactional_id=transactional_id, transaction_timeout_ms=_FENCING_TRANSACTION_TIMEOUT_MS
                )
                response = await self._calls.call_once(node, request_of(message), InitProducerIdResponse, deadline_ms)
                fenced[transactional_id] = outcome(response, (response.producer_id, response.producer_epoch))
            return fenced

        return await self._calls.fetch_by_key(transactional_ids, find_transaction_coordinators, fetch, timeout_ms)
