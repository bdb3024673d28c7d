"""The broker behind a broker of a proxy, as metrics and the web page show it."""

from collections.abc import Mapping, Sequence

from msgspec import Struct


class UpstreamState(Struct, frozen=True, gc=False):
    """Counters are totals since the proxy's start.

    address: host and port
    is_reachable: whether the last connection to it was made
    in_flight: requests without a response yet
    durations: by API, the counts of metrics.REQUEST_SECONDS_BOUNDS and the sum in seconds
    errors: responses with an error, by API and error code
    """

    address: str
    is_reachable: bool
    open_connections: int
    connections: int
    connection_failures: int
    disconnects: int
    in_flight: int
    bytes_sent: int
    bytes_received: int
    invalid_responses: int
    durations: Mapping[str, tuple[Sequence[int], float]]
    errors: Mapping[tuple[str, int], int]
