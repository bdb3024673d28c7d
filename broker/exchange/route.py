"""One API in one version, as the exchange serves it."""

from struct import Struct
from typing import cast

from sluice.broker.broker import Handle
from sluice.broker.journal.about import Reader
from sluice.broker.requests.route import ApiRoute, Encode
from sluice.broker.requests.served_api import Charge
from sluice.broker.throttling.throttler import ChargeResponse
from sluice.metrics import REQUEST_SECONDS_BOUNDS
from sluice.protocol.apis import API_KEYS
from sluice.protocol.codec.compile import decode_prefix, encoder
from sluice.protocol.entities import all_topics_selector

from .registry import Handler

# The start of a response: size, correlation id; since header version 1, a count of tagged fields, which is always 0.
_HEADS = (Struct(">ii"), Struct(">iix"))
_SIZE_BYTES = 4
# Requests up to this size are not sliced. The smallest elements of most APIs have 2 bytes and take up to 0.1 ms: 25 ms
# in all.
_OTHER_INLINE_BYTES = 512
_INLINE_BYTES = {Charge.PRODUCE_BYTES: 16 * 1024, Charge.FETCH_BYTES: 16 * 1024}
# A small request of these may return all topics, groups or settings.
_LISTS = frozenset(
    {
        "DescribeAcls",
        "DescribeClientQuotas",
        "DescribeConfigs",
        "DescribeLogDirs",
        "ListGroups",
        "ListPartitionReassignments",
        "ListTransactions",
        "Metadata",
    }
)
# The same, unless they name what they want.
_LISTS_OR_SOME = frozenset({"OffsetFetch"})


class Route(ApiRoute):
    """An API version with its codec, handler and counters, compiled on first use."""

    __slots__ = (
        "about",
        "charge",
        "decode",
        "errors",
        "flexible",
        "handle",
        "handler",
        "has_faults",
        "header_bytes",
        "inline_bytes",
        "is_cached",
        "latency_counts",
        "latency_sum_s",
        "pack_head",
        "requests",
        "selects_all",
        "unsliced_bytes",
    )

    def __init__(self, handler: Handler, version: int, charge: ChargeResponse) -> None:
        api = API_KEYS[handler.api_key]
        # An outcome without a response is never encoded.
        super().__init__(api.key, api.name, version, cast("Encode", encoder(api.response, version)))
        self.handler = handler.load()
        self.handle = self.handler  # called with each request
        self.has_faults = False  # whether `handle` is that of fault rules
        self.charge = charge
        self.about: Reader  # extracts the subject of a request; set only with a journal
        # As in Kafka, bytes after a request are ignored: librdkafka appends three (its issue 5049).
        self.decode = decode_prefix(api.request, version)
        self.is_cached = handler.api.cached
        is_list = handler.api.name in _LISTS
        self.unsliced_bytes = 0 if is_list else _INLINE_BYTES.get(handler.api.charge, _OTHER_INLINE_BYTES)
        self.selects_all = all_topics_selector(api.key) if handler.api.name in _LISTS_OR_SOME else None
        # Larger requests go to `LargeRequests`.
        self.inline_bytes = 0 if self.is_cached or self.selects_all is not None else self.unsliced_bytes
        self.flexible = api.request_header_version(version) >= 2  # header version 2 has tagged fields
        head = _HEADS[api.response_header_version(version)]
        self.pack_head = head.pack
        self.header_bytes = head.size - _SIZE_BYTES  # of a response, without its size prefix
        self.requests = 0
        self.errors: dict[int, int] = {}  # error code -> requests
        self.latency_counts = [0] * (len(REQUEST_SECONDS_BOUNDS) + 1)
        self.latency_sum_s = 0.0

    def set_handler(self, handler: Handle) -> None:
        """Replace the handler, but not fault rules."""
        self.handler = handler
        if not self.has_faults:
            self.handle = handler

    def set_faults(self, handle: Handle | None) -> None:
        """Let fault rules handle the requests, or the handler again."""
        self.has_faults = handle is not None
        self.handle = self.handler if handle is None else handle
