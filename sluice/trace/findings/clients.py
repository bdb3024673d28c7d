"""Findings about clients and their connections."""

from collections.abc import Iterator

from sluice.journal_events import ClientEvent, ConnectionClosed, ConnectionOpened, ConnectionRefused, Gap, Request
from sluice.trace.described import counted, has_failed

from .history import NS_PER_S, Found, History, client_of, grouped, listed, seqs, topics_of


def no_requests(history: History) -> Iterator[Found]:
    """Yield a finding if no client connected, or none got as far as a request."""
    if history.requests:
        return
    opened = history.of(ConnectionOpened)
    if opened:
        title = "No client sent a Kafka request"
        text = (
            f"{counted(len(opened), 'connection')} opened. Check the security protocol of the client and the listener."
        )
    else:
        title = "No client connected"
        text = "Check bootstrap.servers of the client, and whether the test starts it."
    yield Found("no-requests", "error", title, text, history.start_ns, seqs(opened))


def connections_refused(history: History) -> Iterator[Found]:
    for reason, alike in grouped(history.of(ConnectionRefused), lambda one: one.reason).items():
        first = alike[0]
        title = f"{counted(len(alike), 'connection')} refused: {reason}"
        clients = dict.fromkeys(one.client_id for one in alike if one.client_id)
        text = f"From {history.when(first.at_ns)} to {history.when(alike[-1].at_ns)}."
        holders = _holders(history, first)
        if holders:
            text += f" Open connections from the same address at the first refusal: {listed(holders)}."
        yield Found("connection-refused", "error", title, text, first.at_ns, seqs(alike), [*clients])


def _holders(history: History, refused: ConnectionRefused) -> list[str]:
    """Return the connections of an address that were open when another was refused, with their clients."""
    clients = {one.connection: client_of(one) for one in history.requests}
    return [
        f"#{one.connection} of client {clients[one.connection]}"
        for one in history.of(ConnectionOpened)
        if one.connection in clients
        and _host(one) == _host(refused)
        and one.at_ns <= refused.at_ns
        and (one.connection not in history.closed or history.closed[one.connection].at_ns > refused.at_ns)
    ]


def _host(event: ClientEvent) -> str:
    return event.peer.rpartition(":")[0]


_JOURNAL_READER = "sluice-journal"  # client id of `sluice trace kafka://...`, whose fetches are not recorded
# What a client that is not only a producer sends.
_OTHER_WORK = frozenset(
    {
        *("Produce", "Fetch", "ShareFetch", "ListOffsets", "JoinGroup", "ConsumerGroupHeartbeat", "OffsetFetch"),
        *("CreateTopics", "DeleteTopics", "CreatePartitions", "DescribeConfigs", "DescribeTopicPartitions"),
        *("DescribeGroups", "ListGroups", "DescribeCluster", "IncrementalAlterConfigs", "AlterConfigs"),
    }
)


def nothing_produced(history: History) -> Iterator[Found]:
    for client, requests in grouped(history.requests, client_of).items():
        if client != _JOURNAL_READER and _OTHER_WORK.isdisjoint(one.api for one in requests):
            inits = [one for one in requests if one.api == "InitProducerId" and not has_failed(one)]
            lookups = [one for one in requests if one.api == "Metadata" and one.partitions and not has_failed(one)]
            if inits:
                yield _nothing_from(history, client, inits[0], lookups, "initialized a producer id")
            elif lookups:
                yield _nothing_from(history, client, lookups[0], lookups, "looked up the topic")
            elif {one.api for one in requests} == {"ApiVersions"} and not any(one.rule_id for one in requests):
                yield _nothing_from(history, client, requests[0], [], "connected")


def _nothing_from(history: History, client: str, first: Request, lookups: list[Request], did: str) -> Found:
    topics = topics_of(lookups)
    where = f" to {listed(topics)}" if topics else ""
    title = f"Client {client} produced nothing{where}"
    text = f"It {did} at {history.when(first.received_ns)}, and sent no Produce request. Possible reasons: it was not "
    text += "flushed or closed, serialization failed, or the test ended within linger.ms."
    return Found("nothing-produced", "warning", title, text, first.received_ns, [first.seq], [client, *topics])


_AT_ONCE_NS = NS_PER_S  # brokers of a cluster stop one after the other


def unclosed_client(history: History) -> Iterator[Found]:
    """Yield clients whose last connections were closed by the brokers as these stopped."""
    clients = {one.connection: client_of(one) for one in history.requests}
    closed = [one for one in history.of(ConnectionClosed) if one.connection in clients]
    for client, ends in grouped(closed, lambda one: clients[one.connection]).items():
        last_ns = max(ends[-1].at_ns, history.last_seen_ns[client])
        last = [one for one in ends if last_ns - one.at_ns < _AT_ONCE_NS]
        if last and not any(one.by_client or one.reason for one in last):
            yield _unclosed(history, client, last)


def _unclosed(history: History, client: str, left: list[ConnectionClosed]) -> Found:
    first = left[0]
    title = f"Client {client} was not closed"
    text = f"{counted(len(left), 'connection')} still open when the brokers stopped, at {history.when(first.at_ns)}: "
    text += f"{listed(f'#{one.connection}' for one in left)}. Close clients in the test, also after a failure."
    return Found("unclosed-client", "warning", title, text, first.at_ns, seqs(left), [client])


def lost_events(history: History) -> Iterator[Found]:
    gaps = history.of(Gap)
    if gaps:
        lost = sum(gap.lost for gap in gaps)
        title = f"The journal no longer had {counted(lost, 'event')} before the first"
        text = "The journal keeps the last events. Increase sluice.journal.events to see the start."
        yield Found("lost-events", "warning", title, text, gaps[0].at_ns, seqs(gaps))
