"""Rules about connections."""

from collections.abc import Iterator
from re import fullmatch

from sluice.lint.facts.subjects import ClientFacts
from sluice.lint.rule import Evidence, Remedy, Severity, cited, properties, rule

_MOST_SHORT = 0.5  # a client that connects anew may bootstrap over a second connection, which has no further request


@rule(
    Severity.WARNING,
    title="Applications that connect for each message",
    why="A connection costs several round trips, with TLS also CPU time of the broker, and ends all batching. Brokers "
    "limit the rate of new connections (max.connection.creation.rate).",
    citation=cited(
        "KafkaProducer",
        "The producer is thread safe and sharing a single producer instance across threads will generally be faster "
        "than having multiple instances.",
    ),
    remedy=Remedy(
        java="one producer, consumer or Admin per application, closed at its end",
        librdkafka="one handle per application, closed at its end",
        aiokafka="start() once per application, stop() at its end",
        franz_go="one kgo.Client per application, closed at its end",
        kafkajs="connect() once per application, disconnect() at its end",
    ),
    silent="Below three such connections per second.",
)
def connection_per_message(facts: ClientFacts) -> Iterator[Evidence]:
    connections = facts.connections
    short = connections.short
    if short.fastest_ns and short.count >= _MOST_SHORT * connections.closed:
        yield Evidence(
            f"{short.count:,} of {connections.count:,} connections were closed by the client within 10 s, with at most "
            f"one request after the handshake and metadata, {short.in_words}",
            short.examples,
        )


_MOST_SHOWN = 5


@rule(
    Severity.WARNING,
    title="Clients that use API versions that Kafka 4.0 no longer serves",
    why="A broker of Kafka 4.0 or later closes the connection at such a request (KIP-896), and has no message formats "
    "0 and 1 (KIP-724).",
    citation=cited(
        "Upgrading to 4.0",
        "Clients (including Streams and Connect) must be on version 2.1 or higher before upgrading to 4.0.",
        "https://kafka.apache.org/40/getting-started/upgrade",
    ),
    remedy=Remedy(
        java="kafka-clients 2.1 or later",
        librdkafka="librdkafka 2.0 or later, without broker.version.fallback and api.version.request=false",
        aiokafka="a current version, without api_version of an old broker",
        franz_go="without kgo.MaxVersions of an old broker",
        kafkajs="kafkajs 2.0 or later",
    ),
    silent="If the broker closes the connection before the request is recorded.",
)
def ended_versions(facts: ClientFacts) -> Iterator[Evidence]:
    ended = facts.connections.ended
    if ended:
        shown = ", ".join(f"{api} {version}" for api, version in sorted(ended)[:_MOST_SHOWN])
        more = f" and {len(ended) - _MOST_SHOWN} others" if len(ended) > _MOST_SHOWN else ""
        sets = facts.producing.message_sets
        words = f"; {sets:,} batches have message format 0 or 1 (KIP-724)" if sets else ""
        yield Evidence(
            f"requests in versions below those of Kafka 4.0: {shown}{more}{words}", next(iter(ended.values()))
        )


# A client has up to five connections to a broker: for bootstrap, data, coordinators and administration.
_LEAST_IDLE = 50
_IDLE_S = 60.0
_MOST_IDLE = 0.8  # share of the open connections


@rule(
    Severity.INFO,
    title="Hosts with many idle connections of one client id",
    why="Each connection costs the broker memory and counts against max.connections.per.ip. Usually the application "
    "creates clients and does not close them, or has one per thread.",
    citation=cited(
        "Broker Configs, max.connections.per.ip",
        "New connections from the ip address are dropped if the limit is reached.",
    ),
    remedy=Remedy(
        java="close() unused clients, or share one; connections.max.idle.ms=540000, the default",
        librdkafka="close unused handles, or share one; connections.max.idle.ms",
        aiokafka="stop() unused clients, or share one; connections_max_idle_ms=540000, the default",
        franz_go="Close() unused clients, or share one; kgo.ConnIdleTimeout",
        kafkajs="disconnect() unused clients, or share one",
    ),
    silent="Below 50 idle connections of a host to one broker at the end of the journal.",
)
def idle_connections(facts: ClientFacts) -> Iterator[Evidence]:
    for place, idle, opened in facts.connections.idle(_IDLE_S):
        if idle >= _LEAST_IDLE and idle >= _MOST_IDLE * opened:
            broker, host = place
            yield Evidence(
                f"{idle:,} of {opened:,} open connections from {host} to broker {broker} had no request in the last "
                f"{_IDLE_S:.0f} s"
            )


_LEAST_LOGINS = 5  # a person who mistypes a password gives up earlier


@rule(
    Severity.WARNING,
    title="Clients that log in again and again with wrong credentials",
    why="A retry cannot succeed. Each one costs the broker a connection and a comparison of a salted password.",
    citation=cited(
        "Broker Configs, connection.failed.authentication.delay.ms",
        "Connection close delay on failed authentication: this is the time (in milliseconds) by which connection close "
        "will be delayed on authentication failure.",
    ),
    remedy=Remedy(
        java="sasl.jaas.config, sasl.mechanism; stop at an AuthenticationException",
        librdkafka="sasl.username, sasl.password, sasl.mechanisms; stop at _AUTHENTICATION errors",
        aiokafka="sasl_plain_username, sasl_plain_password, sasl_mechanism",
        franz_go="kgo.SASL",
        kafkajs="sasl: {mechanism, username, password}",
    ),
    silent="Below five failed logins of one host.",
)
def logins_refused(facts: ClientFacts) -> Iterator[Evidence]:
    logins = facts.retries.logins
    if logins.most >= _LEAST_LOGINS:
        yield Evidence(f"{logins.count:,} logins failed within {logins.seconds:.3g} s", logins.examples)


# Libraries send these if the application sets no client id.
_DEFAULTS = {
    "": "no client id",
    r"rdkafka": "librdkafka's default client id",
    r"sarama": "Sarama's default client id",
    r"kgo": "franz-go's default client id",
    r"kafkajs": "kafkajs' default client id",
    r"aiokafka-(producer-\d+|[\d.]+\w*)": "a default client id of aiokafka",
    r"kafka-python-(producer-\d+|[\d.]+\w*)": "a default client id of kafka-python",
    r"(producer|adminclient)-\d+": "a default client id of the Java client",
}


@rule(
    Severity.INFO,
    title="Clients without a client id of their own",
    why="Quotas, metrics and the broker's request log identify clients by this id. All clients without one share it.",
    citation=cited(
        "Producer Configs, client.id",
        "An id string to pass to the server when making requests. The purpose of this is to be able to track the "
        "source of requests beyond just ip/port by allowing a logical application name to be included in server-side "
        "request logging.",
    ),
    remedy=properties(
        "client.id=<application>",
        aiokafka="client_id='<application>'",
        franz_go='kgo.ClientID("<application>")',
        kafkajs="clientId: '<application>'",
    ),
    silent="If the rule does not know the default of the library. That of a Java consumer has its group.",
)
def no_client_id(facts: ClientFacts) -> Iterator[Evidence]:
    words = next((words for each, words in _DEFAULTS.items() if fullmatch(each, facts.key.client_id)), "")
    requests = facts.traffic.apis.total()
    if words and requests:
        yield Evidence(f"{requests:,} requests with {words}", facts.traffic.examples)


# Kafka's default maximum (reconnect.backoff.max.ms: 1000) less its jitter. A client that always waits as
# long does no harm.
_HARMLESS_MS = 800


@rule(
    Severity.WARNING,
    title="Clients that reconnect without a growing backoff",
    why="When a broker restarts, all such clients connect at the same high rate and delay its recovery.",
    citation=cited(
        "Producer Configs, reconnect.backoff.max.ms",
        "If provided, the backoff per host will increase exponentially for each consecutive connection failure, up to "
        "this maximum. After calculating the backoff increase, 20% random jitter is added to avoid connection storms.",
    ),
    remedy=Remedy(
        java="reconnect.backoff.ms=50, reconnect.backoff.max.ms=1000, the defaults",
        librdkafka="reconnect.backoff.ms=100, reconnect.backoff.max.ms=10000, the defaults",
        aiokafka="a larger retry_backoff_ms; its waits do not grow",
        franz_go="without kgo.RetryBackoffFn, waits grow from 250 ms to 2.5 s",
        kafkajs="retry: {initialRetryTime: 300, multiplier: 2}, the defaults",
    ),
    silent="If connections fail before they are accepted, which only the client sees, or if several clients of one "
    "host fail at once. Waits after a response to ApiVersions need not grow.",
)
def reconnects_without_growing_waits(facts: ClientFacts) -> Iterator[Evidence]:
    connections = facts.connections
    found = connections.reconnects.constant()
    if found is not None and found.base_ms < _HARMLESS_MS:
        yield Evidence(
            f"waits about {found.base_ms:,.0f} ms each time before it connects again ({found.waits:,} waits)",
            connections.reconnects.examples,
        )
    elif connections.storm.fastest_ns:
        yield Evidence(f"{connections.storm.in_words} connections after lost ones", connections.storm.examples)
