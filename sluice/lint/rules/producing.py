"""Rules about producers."""

from collections.abc import Iterator

from sluice.lint.facts.deliveries import is_recognizable, of_one_timeout
from sluice.lint.facts.measures.examples import Examples
from sluice.lint.facts.subjects import ClientFacts
from sluice.lint.rule import Evidence, Remedy, Severity, Unknown, cited, properties, rule
from sluice.protocol.errors import ErrorCode


@rule(
    Severity.INFO,
    title="Producers that request an acknowledgment of the leader only",
    why="Acknowledged records are lost if the leader fails before its followers have them. Some libraries have this "
    "default, such as aiokafka and Sarama; Kafka's own default is acks=all since 3.0.",
    citation=cited(
        "Producer Configs, acks",
        "In this case should the leader fail immediately after acknowledging the record but before the followers have "
        "replicated it then the record will be lost.",
    ),
    remedy=properties(
        "acks=all",
        aiokafka="acks='all', or enable_idempotence=True",
        franz_go="kgo.RequiredAcks(kgo.AllISRAcks()), the default",
        kafkajs="producer.send({acks: -1}), the default",
    ),
    silent="If the journal has no fields of Produce requests, because an older version wrote it.",
)
def acks_below_all(facts: ClientFacts) -> Iterator[Evidence]:
    sent = facts.producing.acks[1]
    if sent:
        requests = facts.producing.acks.total()
        yield Evidence(f"{sent:,} of {requests:,} Produce requests have acks=1", facts.producing.examples["acks=1"])


@rule(
    Severity.WARNING,
    title="Producers that request no acknowledgment",
    why="The broker sends no response, so the producer does not learn of errors, throttle times or a new leader. "
    "Records are lost without a trace.",
    citation=cited(
        "Producer Configs, acks",
        "No guarantee can be made that the server has received the record in this case, and the retries configuration "
        "will not take effect (as the client won't generally know of any failures).",
    ),
    remedy=properties(
        "acks=all",
        aiokafka="acks='all'",
        franz_go="kgo.RequiredAcks(kgo.AllISRAcks()), the default",
        kafkajs="producer.send({acks: -1}), the default",
    ),
    silent="If the journal has no fields of Produce requests, because an older version wrote it.",
)
def acks_zero(facts: ClientFacts) -> Iterator[Evidence]:
    sent = facts.producing.acks[0]
    if sent:
        requests = facts.producing.acks.total()
        yield Evidence(f"{sent:,} of {requests:,} Produce requests have acks=0", facts.producing.examples["acks=0"])


_LEAST_AHEAD = 5  # a test may choose the timestamp of a single record


@rule(
    Severity.WARNING,
    title="Record timestamps in the future",
    why="Segments with such records are not deleted in time, lookups by time miss records, and the broker refuses "
    "records that are an hour ahead (message.timestamp.after.max.ms). Usually the clock of the producer is wrong, or "
    "the application passes seconds, microseconds or local time.",
    citation=cited(
        "Topic Configs, message.timestamp.after.max.ms",
        "If message.timestamp.type=CreateTime, the message will be rejected if the difference in timestamps exceeds "
        "this specified threshold.",
    ),
    remedy=Remedy(
        java="synchronize the clock; new ProducerRecord(...) without timestamp",
        librdkafka="synchronize the clock; produce without timestamp",
        aiokafka="synchronize the clock; send() without timestamp_ms",
        franz_go="synchronize the clock; kgo.Record without Timestamp",
        kafkajs="synchronize the clock; messages without timestamp",
    ),
    silent="If timestamps are less than 10 s ahead, or in the past: they may be those of the events.",
)
def clock_ahead(facts: ClientFacts) -> Iterator[Evidence]:
    producing = facts.producing
    ahead, refused = producing.ahead_ms, producing.bad_timestamps
    if producing.ahead_records >= _LEAST_AHEAD or refused >= _LEAST_AHEAD:
        words = f", {refused:,} were refused with INVALID_TIMESTAMP" if refused else ""
        yield Evidence(
            f"the timestamps of {producing.ahead_records:,} records in {ahead.count:,} batches are up to "
            f"{ahead.highest / 1e3:,.0f} s ahead of the broker's clock{words}",
            producing.examples["ahead"],
        )


_LEAST = 2  # one batch or request may be given up because the application ends


@rule(
    Severity.ERROR,
    title="Producers whose delivery timeout does not allow a second attempt",
    why="If one response is late, such as during an election, the records are lost although a retry would succeed.",
    citation=cited(
        "Producer Configs, delivery.timeout.ms",
        "The value of this config should be greater than or equal to the sum of request.timeout.ms and linger.ms.",
    ),
    remedy=Remedy(
        java="delivery.timeout.ms=120000, the default",
        librdkafka="message.timeout.ms above socket.timeout.ms; the defaults are 300000 and 60000",
        aiokafka="request_timeout_ms=40000, the default, which also limits the delivery",
        franz_go="kgo.RecordDeliveryTimeout above kgo.ProduceRequestTimeout, kgo.RecordRetries above 1",
        kafkajs="retry: {retries: 5}, the default",
    ),
    silent="If the client closed its connection, or sent no other batch for 5 s after that.",
)
def delivery_timeout_too_short(facts: ClientFacts) -> Iterator[Evidence]:
    given_up = facts.deliveries.given_up()
    unanswered = of_one_timeout(
        [each for each in given_up if not each.request.error_codes and is_recognizable(each.request)]
    )
    if len(unanswered) >= _LEAST:
        yield Evidence(
            f"{len(unanswered):,} batches were sent once, had no response in time, and were not sent again",
            Examples.of(each.request for each in unanswered),
        )


@rule(
    Severity.ERROR,
    title="Records that a retry reordered",
    why="The partition does not have the order in which the application sent its records.",
    citation=cited(
        "Producer Configs, retries",
        "if two batches are sent to a single partition, and the first fails and is retried but the second succeeds, "
        "then the records in the second batch may appear first",
    ),
    remedy=Remedy(
        java="enable.idempotence=true, the default",
        librdkafka="enable.idempotence=true",
        aiokafka="enable_idempotence=True",
        franz_go="without kgo.DisableIdempotentWrite()",
        kafkajs="kafka.producer({idempotent: true}), or maxInFlightRequests: 1",
    ),
    silent="If requests have several partitions, or the producer regroups the records of a failed batch.",
)
def reordered_by_retry(facts: ClientFacts) -> Iterator[Evidence]:
    deliveries = facts.deliveries
    if deliveries.reordered:
        yield Evidence(
            f"{deliveries.reordered:,} batches were appended after later records of the same partition, because they "
            "failed first and were retried",
            deliveries.reordered_examples,
        )


@rule(
    Severity.INFO,
    title="Producers without idempotence and with several requests in flight",
    why="If a batch fails and the next one for the partition succeeds, a retry appends the first after the second. "
    "librdkafka and Sarama have this default; it is harmless only if the order of records does not matter, or retries "
    "are disabled.",
    citation=cited(
        "Producer Configs, max.in.flight.requests.per.connection",
        "Note that if this configuration is set to be greater than 1 and enable.idempotence is set to false, there is "
        "a risk of message reordering after a failed send due to retries (i.e., if retries are enabled)",
    ),
    remedy=Remedy(
        java="enable.idempotence=true, the default",
        librdkafka="enable.idempotence=true, or max.in.flight=1",
        aiokafka="enable_idempotence=True; without it, it has one request in flight",
        franz_go="without kgo.DisableIdempotentWrite(), or kgo.MaxProduceRequestsInflightPerBroker(1)",
        kafkajs="kafka.producer({idempotent: true}), or maxInFlightRequests: 1",
    ),
    silent="If no two requests overlapped at the broker, which reads a connection only between two requests.",
)
def reordering_possible(facts: ClientFacts) -> Iterator[Evidence]:
    producing = facts.producing
    if producing.unordered:
        yield Evidence(
            f"{producing.unordered:,} of {producing.requests:,} Produce requests without a producer id were sent while "
            f"another one for the same partition was in flight, up to {producing.in_flight} at once",
            producing.examples["unordered"],
        )


_MOST = 0.9  # share of timeout_ms; a client that waits as long as the broker is right


@rule(
    Severity.WARNING,
    title="Producers that give requests up before the broker would respond",
    why="The broker still appends the batch. The retry costs a new connection, and without idempotence it duplicates "
    "the records.",
    citation=cited(
        "Producer Configs, request.timeout.ms",
        "This should be larger than replica.lag.time.max.ms (a broker configuration) to reduce the possibility of "
        "message duplication due to unnecessary producer retries.",
    ),
    remedy=Remedy(
        java="request.timeout.ms=30000, the default, above replica.lag.time.max.ms",
        librdkafka="socket.timeout.ms above request.timeout.ms; the defaults are 60000 and 30000",
        aiokafka="request_timeout_ms=40000, the default",
        franz_go="kgo.RequestTimeoutOverhead(10*time.Second), the default",
        kafkajs="requestTimeout above the timeout of producer.send(); both are 30000 by default",
    ),
    silent="If the client waits as long as timeout_ms of its requests, or reads no response but keeps the connection.",
)
def request_timeout_too_short(facts: ClientFacts) -> Iterator[Evidence]:
    early = [each for each in facts.deliveries.abandoned if each.waited_ms < _MOST * each.timeout_ms]
    again = [each for each in early if each.is_again]
    early = again + of_one_timeout([each for each in early if not each.is_again])
    if len(early) >= _LEAST:
        shortest = min(early, key=lambda each: each.waited_ms)
        yield Evidence(
            f"{len(early):,} Produce requests were given up, such as one after {shortest.waited_ms:,} ms although the "
            f"broker was to wait {shortest.timeout_ms:,} ms for the replicas",
            Examples.of(each.request for each in early),
        )


@rule(
    Severity.ERROR,
    title="Producers that do not retry retriable errors",
    why="The records are lost unless the application handles each error. Such errors are common: each election of a "
    "leader, such as in a rolling restart, causes NOT_LEADER_OR_FOLLOWER.",
    citation=cited(
        "Producer Configs, retries",
        "Setting a value of zero will disable this automatic retry behaviour, so that the transient errors will be "
        "propagated to the application to be handled.",
    ),
    remedy=Remedy(
        java="retries=2147483647, the default; limit delivery.timeout.ms instead",
        librdkafka="retries=2147483647, the default; limit message.timeout.ms instead",
        aiokafka="no such setting: it retries for request_timeout_ms",
        franz_go="without kgo.RecordRetries(0); limit kgo.RecordDeliveryTimeout instead",
        kafkajs="retry: {retries: 5}, the default",
    ),
    silent="If the producer sent no other batch for 5 s after that, is transactional, or may have regrouped the "
    "records.",
)
def retries_disabled(facts: ClientFacts) -> Iterator[Evidence | Unknown]:
    failed = [each.request for each in facts.deliveries.given_up() if each.request.error_codes]
    given_up = [each for each in failed if is_recognizable(each)]
    if len(given_up) < _LEAST:
        if len(failed) >= _LEAST:
            yield Unknown("Set sluice.journal.record.hashes=true, or enable idempotence in the producer.")
    else:
        names = sorted({ErrorCode(code).name for each in given_up for code in each.error_codes})
        yield Evidence(
            f"{len(given_up):,} batches failed with a retriable error ({', '.join(names)}) and were not sent again",
            Examples.of(given_up),
        )
