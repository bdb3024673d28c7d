"""The cluster behind a proxy, as metrics, the admin API and the web page show it."""

from collections.abc import Mapping, Sequence

from msgspec import Struct


class UpstreamClusterState(Struct, frozen=True, gc=False):
    """`bootstrap` are the bootstrap servers; `controller_id` is what the cluster reports to clients."""

    bootstrap: str
    controller_id: int


class UpstreamState(Struct, frozen=True, gc=False):
    """The broker behind a broker of the proxy. Counters are totals since the start of that broker of the proxy.

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
