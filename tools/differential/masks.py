"""Responses as plain data, in which ids, ports and times of one run have symbols instead of values.

A symbol counts the different values of its kind in the order of their first appearance, so that two responses that
name the same topic id still do, and the responses of two brokers are equal if only the ids differ.
"""

import time
from typing import Any

from sluice.protocol.message import Field, Message, fields_of
from sluice.protocol.records.batch import batch_bounds, read_header
from sluice.protocol.records.legacy import Message as LegacyMessage
from sluice.protocol.records.legacy import iter_messages, read_message
from sluice.protocol.records.record import Record, iter_records
from sluice.protocol.types import ZERO_UUID

# Names of fields with generated values -> the kind of the value.
_GENERATED = {
    "cluster_id": "cluster id",
    "leader": "member id",  # of JoinGroup, where it is a string
    "member_id": "member id",
    "producer_id": "producer id",
    "session_id": "session id",
    "client_instance_id": "client instance id",
    "subscription_id": "subscription id",
}
# With KRaft, the controller is any broker that is alive; the epoch of features counts records of the metadata log.
_ANY = ("controller_id", "finalized_features_epoch")
_NONE_OF_THEM = (None, "", -1, 0, ZERO_UUID)
_TIME_TOLERANCE_MS = 24 * 3600 * 1000
_SHORTEST_ID = 8  # characters: replaced within messages, too


class Masks:
    """The symbols of one case."""

    def __init__(self, ports: dict[int, int]) -> None:
        """Mask these ports: port -> broker id."""
        self._ports = ports
        self._symbols: dict[tuple[str, object], str] = {}

    def message(self, message: Message) -> dict[str, Any]:
        """Return a response as plain data: fields that have their defaults are left out."""
        found = {}
        for field in fields_of(type(message)):
            value = getattr(message, field.name)
            if value is not None and (value != field.default or field.name == "error_code"):
                found[field.name] = self._field(field, value)
        return found

    def _field(self, field: Field, value: Any) -> Any:
        if isinstance(value, list):
            return [self._field(field, item) for item in value]
        if isinstance(value, Message):
            return self.message(value)
        if field.type is not None and field.type.name == "records":
            return self._records(b"".join(value) if isinstance(value, list | tuple) else bytes(value))
        return self._value(field, value)

    def _value(self, field: Field, value: Any) -> Any:
        kind = _GENERATED.get(field.name)
        if kind == "member id" and not isinstance(value, str):
            kind = None
        if kind is None and field.type is not None and field.type.name == "uuid":
            kind = "id"
        if kind is not None and value not in _NONE_OF_THEM:
            return self.symbol(kind, value)
        if isinstance(value, bytes | bytearray | memoryview):
            return bytes(value).hex(" ")
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, int) and not isinstance(value, bool):
            if field.name in _ANY and value >= 0:
                return "any"
            if field.name == "port" and value in self._ports:
                return f"port of broker {self._ports[value]}"
            if abs(value - time.time() * 1000) < _TIME_TOLERANCE_MS:
                return "now"
        return value

    def _text(self, value: str) -> str:
        for (_, masked), symbol in self._symbols.items():
            if isinstance(masked, str) and len(masked) >= _SHORTEST_ID:
                value = value.replace(masked, f"<{symbol}>")
        for port, broker in self._ports.items():
            value = value.replace(f":{port}", f":<port of broker {broker}>")
        return value

    def symbol(self, kind: str, value: object) -> str:
        """Return the symbol of a generated value: `<kind> <number>`."""
        known = self._symbols.get((kind, value))
        if known is None:
            number = 1 + sum(other == kind for other, _ in self._symbols)
            known = self._symbols[kind, value] = f"{kind} {number}"
        return known

    def _records(self, data: bytes) -> list[Any]:
        """Return the batches of a Fetch response; a cut one at the end as its number of bytes."""
        found: list[Any] = []
        end = 0
        for start, size, magic in batch_bounds(data):
            end = start + size
            batch = data[start:end]
            if magic < 2:
                found.append([self._record(each) for each in iter_messages(read_message(batch))])
                continue
            header = read_header(batch)
            found.append(
                {
                    "offsets": f"{header.base_offset} to {header.last_offset}",
                    "leader_epoch": header.partition_leader_epoch,
                    "attributes": header.attributes,
                    "timestamps": [self._time(header.base_timestamp), self._time(header.max_timestamp)],
                    "producer": [
                        self.symbol("producer id", header.producer_id) if header.producer_id >= 0 else -1,
                        header.producer_epoch,
                        header.base_sequence,
                    ],
                    "records": [self._record(each) for each in iter_records(batch)],
                }
            )
        if len(data) > end:
            found.append(f"{len(data) - end} bytes of a cut batch")
        return found

    def _record(self, record: Record | LegacyMessage) -> list[Any]:
        return [record.offset, self._time(record.timestamp), _text_of(record.key), _text_of(record.value)]

    def _time(self, value: int) -> int | str:
        return "now" if abs(value - time.time() * 1000) < _TIME_TOLERANCE_MS else value


def _text_of(value: bytes | memoryview | None) -> str | None:
    return None if value is None else bytes(value).decode("latin-1")
