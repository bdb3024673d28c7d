"""Fetch requests for one partition, and answers that tell of one, in fewer steps than generated code takes.

Nearly every Fetch request is for one partition, or a session's and names the one whose place has changed; then all but
the topic's name has a fixed size. As in `one_batch`, other shapes and what is wrong are left to the generated
functions, and what these make of a message is what is made of it here. Of the versions without topic ids the short way
has those that clients ask in: 4 (kafka-python before 2.1), 11 (aiokafka, librdkafka before 2.4, Sarama), 12
(kafka-python 3).
"""

from collections.abc import Callable, Mapping
from struct import Struct
from typing import cast

from sluice.protocol.apis.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from sluice.protocol.types import ZERO_UUID

from .compile import Encoder, PrefixDecoder, decode_prefix, encoder
from .wire import CACHED, UNREADABLE, Buffer, Parts, StringPackers, StringReaders, varints

_FIRST_OF_BATCHES, _LAST_PLAIN, _BY_NAME, _TOPIC_IDS_SINCE, _REPLICA_STATE_SINCE = 4, 11, 12, 13, 15
_ONE = 2  # as a compact count
_CONSUMER = -1  # in place of a replica's id
# Behind the partition: no tags of it and of its topic, nothing forgotten, no rack, no tags of the request.
_NOTHING_MORE = bytes((0, 0, 1, 1, 0))
_NO_TAGS = bytes(3)  # of the partition, the topic and the response

# By position: cluster id, replica id, its state, max_wait_ms, min_bytes, max_bytes, isolation level, session id and
# epoch, topics. And: partition, leader epoch, offset, epoch that was fetched last, log start, most bytes.


def one_partition_decoder(version: int) -> PrefixDecoder[FetchRequest]:
    """As `decode_prefix`, for Fetch requests."""
    general = decode_prefix(FetchRequest, version)
    if version >= _TOPIC_IDS_SINCE:
        return _by_id_decoder(general) if version < _REPLICA_STATE_SINCE else _consumer_decoder(general)
    makers = {_FIRST_OF_BATCHES: _oldest_decoder, _LAST_PLAIN: _plain_decoder, _BY_NAME: _flexible_decoder}
    return makers[version](general) if version in makers else general


def one_partition_encoder(version: int) -> Encoder[FetchResponse]:
    """As `encoder`, for Fetch responses."""
    general = encoder(FetchResponse, version)
    if version >= _TOPIC_IDS_SINCE:
        return _by_id_encoder(general)
    makers = {_FIRST_OF_BATCHES: _oldest_encoder, _LAST_PLAIN: _plain_encoder, _BY_NAME: _flexible_encoder}
    return makers[version](general) if version in makers else general


def _oldest_decoder(general: PrefixDecoder[FetchRequest]) -> PrefixDecoder[FetchRequest]:
    read = Struct(">iiiibih").unpack_from
    # And partitions, index, offset, most bytes.
    read_name = cast("Mapping[int, Callable[[Buffer, int], tuple[bytes, int, int, int, int]]]", StringReaders("iiqi"))

    def decode(buf: Buffer, pos: int, end: int) -> tuple[FetchRequest, int]:
        try:
            replica_id, max_wait_ms, min_bytes, max_bytes, isolation_level, topics, name_n = read(buf, pos)
            if topics == 1:
                name, partitions, index, offset, most_bytes = read_name[name_n](buf, pos + 23)
                stop = pos + 43 + name_n
                if partitions == 1 and stop <= end:
                    wanted = [FetchPartition(index, -1, offset, -1, -1, most_bytes)]
                    topic = [FetchTopic(name.decode(), ZERO_UUID, wanted)]
                    # fmt: off
                    return FetchRequest(
                        None, replica_id, None, max_wait_ms, min_bytes, max_bytes, isolation_level, 0, -1, topic
                    ), stop
                    # fmt: on
        except UNREADABLE:  # the other way will find it, and say what it is
            pass
        return general(buf, pos, end)

    return decode


def _plain_decoder(general: PrefixDecoder[FetchRequest]) -> PrefixDecoder[FetchRequest]:
    read = Struct(">iiiibiiih").unpack_from
    # And partitions, index, leader epoch, offset, log start, most bytes, forgotten topics, length of the rack.
    readers = StringReaders("iiiqqiih")
    read_name = cast(
        "Mapping[int, Callable[[Buffer, int], tuple[bytes, int, int, int, int, int, int, int, int]]]", readers
    )

    def decode(buf: Buffer, pos: int, end: int) -> tuple[FetchRequest, int]:
        try:
            # fmt: off
            (replica_id, max_wait_ms, min_bytes, max_bytes, isolation_level, session_id, session_epoch, topics,
                name_n) = read(buf, pos)
            # fmt: on
            if topics == 1:
                name, partitions, index, epoch, offset, log_start, most_bytes, forgotten, rack_n = read_name[name_n](
                    buf, pos + 31
                )
                stop = pos + 69 + name_n
                if partitions == 1 and not forgotten and not rack_n and stop <= end:
                    wanted = [FetchPartition(index, epoch, offset, -1, log_start, most_bytes)]
                    topic = [FetchTopic(name.decode(), ZERO_UUID, wanted)]
                    # fmt: off
                    return FetchRequest(
                        None, replica_id, None, max_wait_ms, min_bytes, max_bytes, isolation_level, session_id,
                        session_epoch, topic
                    ), stop
                    # fmt: on
        except UNREADABLE:  # as above
            pass
        return general(buf, pos, end)

    return decode


def _flexible_decoder(general: PrefixDecoder[FetchRequest]) -> PrefixDecoder[FetchRequest]:
    read = Struct(">iiiibiiBB").unpack_from
    # And partitions, index, leader epoch, offset, epoch fetched last, log start, most bytes, the rest.
    readers = StringReaders("Biiqiqi5s")
    read_name = cast(
        "Mapping[int, Callable[[Buffer, int], tuple[bytes, int, int, int, int, int, int, int, bytes]]]", readers
    )

    def decode(buf: Buffer, pos: int, end: int) -> tuple[FetchRequest, int]:
        try:
            # fmt: off
            (replica_id, max_wait_ms, min_bytes, max_bytes, isolation_level, session_id, session_epoch, topics,
                name_n) = read(buf, pos)
            # fmt: on
            if topics == _ONE and name_n < CACHED:
                name, partitions, index, epoch, offset, last_epoch, log_start, most_bytes, rest = read_name[name_n - 1](
                    buf, pos + 27
                )
                stop = pos + 64 + name_n
                if partitions == _ONE and rest == _NOTHING_MORE and stop <= end:
                    wanted = [FetchPartition(index, epoch, offset, last_epoch, log_start, most_bytes)]
                    topic = [FetchTopic(name.decode(), ZERO_UUID, wanted)]
                    # fmt: off
                    return FetchRequest(
                        None, replica_id, None, max_wait_ms, min_bytes, max_bytes, isolation_level, session_id,
                        session_epoch, topic
                    ), stop
                    # fmt: on
        except UNREADABLE:  # as above
            pass
        return general(buf, pos, end)

    return decode


def _by_id_decoder(general: PrefixDecoder[FetchRequest]) -> PrefixDecoder[FetchRequest]:
    reader = Struct(">iiiibiiB16sBiiqiqi5s")
    read, size = reader.unpack_from, reader.size

    def decode(buf: Buffer, pos: int, end: int) -> tuple[FetchRequest, int]:
        stop = pos + size
        if stop <= end:
            # fmt: off
            (replica_id, max_wait_ms, min_bytes, max_bytes, isolation_level, session_id, session_epoch, topics,
                topic_id, partitions, index, epoch, offset, last_epoch, log_start, most_bytes, rest) = read(buf, pos)
            if topics == partitions == _ONE and rest == _NOTHING_MORE:
                wanted = [FetchPartition(index, epoch, offset, last_epoch, log_start, most_bytes)]
                return FetchRequest(
                    None, replica_id, None, max_wait_ms, min_bytes, max_bytes, isolation_level, session_id,
                    session_epoch, [FetchTopic("", topic_id, wanted)]
                ), stop
            # fmt: on
        return general(buf, pos, end)

    return decode


def _consumer_decoder(general: PrefixDecoder[FetchRequest]) -> PrefixDecoder[FetchRequest]:
    """Since v15 a follower tells its id in a tagged field."""
    reader = Struct(">iiibiiB16sBiiqiqi5s")
    read, size = reader.unpack_from, reader.size

    def decode(buf: Buffer, pos: int, end: int) -> tuple[FetchRequest, int]:
        stop = pos + size
        if stop <= end:
            # fmt: off
            (max_wait_ms, min_bytes, max_bytes, isolation_level, session_id, session_epoch, topics, topic_id,
                partitions, index, epoch, offset, last_epoch, log_start, most_bytes, rest) = read(buf, pos)
            if topics == partitions == _ONE and rest == _NOTHING_MORE:
                wanted = [FetchPartition(index, epoch, offset, last_epoch, log_start, most_bytes)]
                return FetchRequest(
                    None, _CONSUMER, None, max_wait_ms, min_bytes, max_bytes, isolation_level, session_id,
                    session_epoch, [FetchTopic("", topic_id, wanted)]
                ), stop
            # fmt: on
        return general(buf, pos, end)

    return decode


def _oldest_encoder(general: Encoder[FetchResponse]) -> Encoder[FetchResponse]:
    packers = StringPackers(">iih", "iihqqii")

    def encode(response: FetchResponse, parts: Parts) -> None:
        only = _only_answer(response)
        if only is None:
            general(response, parts)
            return
        topic, item, records = only
        name = topic.topic.encode()
        name_n = len(name)
        # fmt: off
        parts.append(packers[name_n](
            response.throttle_time_ms, 1, name_n, name, 1, item.partition_index, item.error_code, item.high_watermark,
            item.last_stable_offset, -1 if item.aborted_transactions is None else 0, sum(map(len, records)),
        ))
        # fmt: on
        parts += records

    return encode


def _plain_encoder(general: Encoder[FetchResponse]) -> Encoder[FetchResponse]:
    packers = StringPackers(">ihiih", "iihqqqiii")

    def encode(response: FetchResponse, parts: Parts) -> None:
        only = _only_answer(response)
        if only is None:
            general(response, parts)
            return
        topic, item, records = only
        name = topic.topic.encode()
        name_n = len(name)
        # fmt: off
        parts.append(packers[name_n](
            response.throttle_time_ms, response.error_code, response.session_id, 1, name_n, name, 1,
            item.partition_index, item.error_code, item.high_watermark, item.last_stable_offset, item.log_start_offset,
            -1 if item.aborted_transactions is None else 0, item.preferred_read_replica, sum(map(len, records)),
        ))
        # fmt: on
        parts += records

    return encode


def _flexible_encoder(general: Encoder[FetchResponse]) -> Encoder[FetchResponse]:
    packers = StringPackers(">ihiBB", "BihqqqBi")

    def encode(response: FetchResponse, parts: Parts) -> None:
        only = _only_answer(response)
        name = only[0].topic.encode() if only is not None else b""
        if only is None or len(name) + 1 >= CACHED:
            general(response, parts)
            return
        _, item, records = only
        name_n = len(name)
        # fmt: off
        parts.append(packers[name_n](
            response.throttle_time_ms, response.error_code, response.session_id, _ONE, name_n + 1, name, _ONE,
            item.partition_index, item.error_code, item.high_watermark, item.last_stable_offset, item.log_start_offset,
            0 if item.aborted_transactions is None else 1, item.preferred_read_replica,
        ) + varints[sum(map(len, records)) + 1])
        # fmt: on
        parts += records
        parts.append(_NO_TAGS)

    return encode


def _by_id_encoder(general: Encoder[FetchResponse]) -> Encoder[FetchResponse]:
    pack = Struct(">ihiB16sBihqqqBi").pack

    def encode(response: FetchResponse, parts: Parts) -> None:
        only = _only_answer(response)
        if only is None:
            general(response, parts)
            return
        topic, item, records = only
        # fmt: off
        parts.append(pack(
            response.throttle_time_ms, response.error_code, response.session_id, _ONE, topic.topic_id, _ONE,
            item.partition_index, item.error_code, item.high_watermark, item.last_stable_offset, item.log_start_offset,
            0 if item.aborted_transactions is None else 1, item.preferred_read_replica,
        ) + varints[sum(map(len, records)) + 1])
        # fmt: on
        parts += records
        parts.append(_NO_TAGS)

    return encode


def _only_answer(
    response: FetchResponse,
) -> tuple[FetchableTopicResponse, PartitionData, list[bytes | memoryview]] | None:
    """The one partition and its records, where there is nothing beside it that may or may not be in a response."""
    responses = response.responses
    if len(responses) != 1 or len(responses[0].partitions) != 1:
        return None
    topic = responses[0]
    item = topic.partitions[0]
    records = item.records
    if (
        type(records) is not list
        or item.aborted_transactions
        or item.current_leader is not None
        or item.diverging_epoch is not None
        or item.snapshot_id is not None
        or response.node_endpoints
        or item.unknown_tagged_fields is not None
        or topic.unknown_tagged_fields is not None
        or response.unknown_tagged_fields is not None
    ):
        return None
    return topic, item, records
