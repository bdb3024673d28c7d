"""The error codes in an answer. A request context knows the first; the others are found in the answer as it was
encoded: few answers have an error, so that reading those again costs less than keeping count in all.
"""

from collections.abc import Iterator, Sequence

from sluice.broker.requests.route import ApiRoute
from sluice.protocol.apis import API_KEYS
from sluice.protocol.codec.compile import decode_prefix
from sluice.protocol.message import Message

# Of a larger answer, which is one with records, only the first error is told.
_LARGEST_READ_BYTES = 256 * 1024
_HEADER_BYTES = 4  # the correlation id; flexible answers have one byte more, of tagged fields


def error_codes(route: ApiRoute, body: Sequence[bytes | memoryview], size: int, first: int) -> tuple[int, ...]:
    """Each once, in the order they have there; `size` is that of the answer with its header."""
    if not _HEADER_BYTES < size <= _LARGEST_READ_BYTES:
        return (first,)
    view = memoryview(b"".join(body))
    answer, _ = decode_prefix(API_KEYS[route.api_key].response, route.version)(view, 0, len(view))
    return tuple(dict.fromkeys(_found(answer))) or (first,)


def _found(message: Message) -> Iterator[int]:
    for name in message.__struct_fields__:
        value = getattr(message, name)
        if name == "error_code":
            if value:
                yield value
        elif isinstance(value, Message):
            yield from _found(value)
        elif isinstance(value, list) and value and isinstance(value[0], Message):
            for item in value:
                yield from _found(item)
