"""Produce requests with one batch for one partition, and answers for one, in fewer steps than generated code takes.

Nearly every Produce request is such a one, so that all but the topic's name and the records has a fixed size: two reads
take it apart, and one packs its answer. What has another shape, and what is wrong, is left to the generated functions;
what these make of a message is what is made of it here, too. Versions from 7 on, which is what clients of today speak.
"""

from collections.abc import Callable, Mapping
from struct import Struct
from typing import cast

from sluice.protocol.apis.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from sluice.protocol.types import ZERO_UUID

from .compile import Encoder, PrefixDecoder, decode_prefix, encoder
from .wire import CACHED, UNREADABLE, Buffer, Parts, StringPackers, StringReaders, read_varint

_FIRST, _ERRORS_SINCE, _FLEXIBLE_SINCE, _TOPIC_IDS_SINCE = 7, 8, 9, 13
_ReadName = Callable[[Buffer, int], tuple[bytes, int, int, int]]  # and partitions, index, length of the records
_TAGS = Struct("3s").unpack_from
_NO_TAGS = (bytes(3),)  # of the partition, the topic and the request
_ONE = 2  # as a compact count
_NO_MORE = bytes(3)  # behind the errors by record, of which there is none: no message, no tags of partition and topic


def one_batch_decoder(version: int) -> PrefixDecoder[ProduceRequest]:
    """As `decode_prefix`, for Produce requests."""
    general = decode_prefix(ProduceRequest, version)
    if version < _FIRST:
        return general
    if version < _FLEXIBLE_SINCE:
        return _plain_decoder(general)
    return _flexible_decoder(general) if version < _TOPIC_IDS_SINCE else _by_id_decoder(general)


def one_batch_encoder(version: int) -> Encoder[ProduceResponse]:
    """As `encoder`, for Produce responses."""
    general = encoder(ProduceResponse, version)
    if version < _FIRST:
        return general
    if version < _FLEXIBLE_SINCE:
        return _plain_encoder(general, has_errors=version >= _ERRORS_SINCE)
    return _flexible_encoder(general) if version < _TOPIC_IDS_SINCE else _by_id_encoder(general)


def _plain_decoder(general: PrefixDecoder[ProduceRequest]) -> PrefixDecoder[ProduceRequest]:
    read = Struct(">hhiih").unpack_from
    read_name = cast("Mapping[int, _ReadName]", StringReaders("iii"))  # as the format says

    def decode(buf: Buffer, pos: int, end: int) -> tuple[ProduceRequest, int]:
        try:
            transactional_id_n, acks, timeout_ms, topics, name_n = read(buf, pos)
            if transactional_id_n == -1 and topics == 1:
                name, partitions, index, records_n = read_name[name_n](buf, pos + 14)
                start = pos + name_n + 26
                stop = start + records_n
                if partitions == 1 and start <= stop <= end:
                    data = [PartitionProduceData(index, buf[start:stop])]
                    topic_data = [TopicProduceData(name.decode(), ZERO_UUID, data)]
                    return ProduceRequest(None, acks, timeout_ms, topic_data), stop
        except UNREADABLE:  # the other way will find it, and say what it is
            pass
        return general(buf, pos, end)

    return decode


def _flexible_decoder(general: PrefixDecoder[ProduceRequest]) -> PrefixDecoder[ProduceRequest]:
    read = Struct(">BhiBB").unpack_from
    read_name = cast("Mapping[int, _ReadName]", StringReaders("BiB"))  # as the format says

    def decode(buf: Buffer, pos: int, end: int) -> tuple[ProduceRequest, int]:
        try:
            transactional_id_n, acks, timeout_ms, topics, name_n = read(buf, pos)
            if transactional_id_n == 0 and topics == _ONE and name_n < CACHED:
                name, partitions, index, records_n = read_name[name_n - 1](buf, pos + 9)
                start = pos + name_n + 14
                if records_n >= CACHED:
                    records_n, start = read_varint(buf, start, records_n)
                stop = start + records_n - 1
                if partitions == _ONE and start <= stop <= end - 3 and _TAGS(buf, stop) == _NO_TAGS:
                    data = [PartitionProduceData(index, buf[start:stop])]
                    topic_data = [TopicProduceData(name.decode(), ZERO_UUID, data)]
                    return ProduceRequest(None, acks, timeout_ms, topic_data), stop + 3
        except UNREADABLE:  # as above
            pass
        return general(buf, pos, end)

    return decode


def _by_id_decoder(general: PrefixDecoder[ProduceRequest]) -> PrefixDecoder[ProduceRequest]:
    read = Struct(">BhiB16sBiB").unpack_from

    def decode(buf: Buffer, pos: int, end: int) -> tuple[ProduceRequest, int]:
        try:
            transactional_id_n, acks, timeout_ms, topics, topic_id, partitions, index, records_n = read(buf, pos)
            if transactional_id_n == 0 and topics == partitions == _ONE:
                start = pos + 30
                if records_n >= CACHED:
                    records_n, start = read_varint(buf, start, records_n)
                stop = start + records_n - 1
                if start <= stop <= end - 3 and _TAGS(buf, stop) == _NO_TAGS:
                    data = [PartitionProduceData(index, buf[start:stop])]
                    topic_data = [TopicProduceData("", topic_id, data)]
                    return ProduceRequest(None, acks, timeout_ms, topic_data), stop + 3
        except UNREADABLE:  # as above
            pass
        return general(buf, pos, end)

    return decode


def _plain_encoder(general: Encoder[ProduceResponse], *, has_errors: bool) -> Encoder[ProduceResponse]:
    no_errors = b"\0\0\0\0\xff\xff" if has_errors else b""  # and no message
    packers = StringPackers(">ih", f"iihqqq{len(no_errors)}si")

    def encode(response: ProduceResponse, parts: Parts) -> None:
        try:
            (topic,) = response.responses
            (item,) = topic.partition_responses
        except ValueError:  # there are more, or none
            general(response, parts)
            return
        if has_errors and (item.record_errors or item.error_message is not None):
            general(response, parts)
            return
        name = topic.name.encode()
        name_n = len(name)
        # fmt: off
        parts.append(packers[name_n](
            1, name_n, name, 1, item.index, item.error_code, item.base_offset, item.log_append_time_ms,
            item.log_start_offset, no_errors, response.throttle_time_ms,
        ))
        # fmt: on

    return encode


def _flexible_encoder(general: Encoder[ProduceResponse]) -> Encoder[ProduceResponse]:
    packers = StringPackers(">BB", f"BihqqqB{len(_NO_MORE)}siB")

    def encode(response: ProduceResponse, parts: Parts) -> None:
        item = _only_answer(response)
        name = response.responses[0].name.encode() if item is not None else b""
        if item is None or len(name) + 1 >= CACHED:
            general(response, parts)
            return
        name_n = len(name)
        # fmt: off
        parts.append(packers[name_n](
            _ONE, name_n + 1, name, _ONE, item.index, item.error_code, item.base_offset, item.log_append_time_ms,
            item.log_start_offset, 1, _NO_MORE, response.throttle_time_ms, 0,
        ))
        # fmt: on

    return encode


def _by_id_encoder(general: Encoder[ProduceResponse]) -> Encoder[ProduceResponse]:
    pack = Struct(f">B16sBihqqqB{len(_NO_MORE)}siB").pack

    def encode(response: ProduceResponse, parts: Parts) -> None:
        item = _only_answer(response)
        if item is None:
            general(response, parts)
            return
        # fmt: off
        parts.append(pack(
            _ONE, response.responses[0].topic_id, _ONE, item.index, item.error_code, item.base_offset,
            item.log_append_time_ms, item.log_start_offset, 1, _NO_MORE, response.throttle_time_ms, 0,
        ))
        # fmt: on

    return encode


def _only_answer(response: ProduceResponse) -> PartitionProduceResponse | None:
    """The one for the one partition, where there is nothing beside it that may or may not be in a response."""
    responses = response.responses
    if len(responses) != 1 or len(responses[0].partition_responses) != 1:
        return None
    topic = responses[0]
    item = topic.partition_responses[0]
    if (
        item.record_errors
        or item.error_message is not None
        or item.current_leader is not None
        or response.node_endpoints
        or item.unknown_tagged_fields is not None
        or topic.unknown_tagged_fields is not None
        or response.unknown_tagged_fields is not None
    ):
        return None
    return item
