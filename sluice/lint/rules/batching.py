"""Rules about the sizes of records, batches and partitions, and of producers per record."""

from collections.abc import Iterator

from sluice.lint.facts.subjects import ClientFacts
from sluice.lint.facts.topics import TopicFacts
from sluice.lint.rule import Evidence, Remedy, Severity, cited, properties, rule

# With fewer, chance decides where they go: a producer without keys fills a batch for one partition after the other.
_LEAST_BATCHES, _LEAST_TOPIC_BYTES = 100, 1024 * 1024
# Four times its share, or 80 % with few partitions.
_TIMES, _MOST_OF_TOPIC = 4, 0.8


@rule(
    Severity.WARNING,
    title="Topics with most data in one partition",
    why="One broker stores it, and one consumer of a group reads it, while the others have little to do. Usually many "
    "records have the same key, or an application chooses the partition.",
    citation=cited(
        "Introduction",
        "Events with the same event key (e.g., a customer or vehicle ID) are written to the same partition",
        "https://kafka.apache.org/documentation/#intro_concepts_and_terms",
    ),
    remedy=Remedy(
        java="keys with more distinct values, or none; a partitioner.class that distributes a frequent key",
        librdkafka="keys with more distinct values, or none; the partitioner property",
        aiokafka="keys with more distinct values, or none; partitioner",
        franz_go="keys with more distinct values, or none; kgo.RecordPartitioner",
        kafkajs="keys with more distinct values, or none; createPartitioner",
    ),
    silent="Below 100 batches or 1 MiB, or if only one partition is seen.",
)
def hot_partition(facts: TopicFacts) -> Iterator[Evidence]:
    produced = facts.produced
    partitions = len(produced.keys() | facts.read.keys())
    total = sum(each.bytes for each in produced.values())
    batches = sum(each.batches for each in produced.values())
    if partitions < 2 or batches < _LEAST_BATCHES or total < _LEAST_TOPIC_BYTES:
        return
    hottest = max(produced, key=lambda partition: produced[partition].bytes)
    share = produced[hottest].bytes / total
    if share >= min(_MOST_OF_TOPIC, _TIMES / partitions):
        yield Evidence(
            f"partition {hottest} has {share:.0%} of the {total / 1e6:,.1f} MB produced to {partitions:,} partitions"
        )


# Ten times the default max.request.size, so that no single test record decides.
_LEAST_BYTES = 10 * 1024 * 1024
# Compression is per batch: smaller ones have little redundancy.
_LEAST_BATCH_BYTES = 4096


@rule(
    Severity.INFO,
    title="Producers that do not compress large batches",
    why="Text and JSON shrink to a fraction in network, page cache and disk, also for each replica and consumer. "
    "Values that are compressed already, such as images, do not shrink. No compression is the default of all "
    "libraries.",
    citation=cited(
        "Design, End-to-end Batch Compression",
        "In some cases the bottleneck is actually not CPU or disk but network bandwidth.",
        "https://kafka.apache.org/documentation/#design_compression",
    ),
    remedy=properties(
        "compression.type=lz4 or zstd",
        aiokafka="compression_type='lz4' or 'zstd'",
        franz_go="kgo.ProducerBatchCompression(kgo.Lz4Compression()), or kgo.ZstdCompression()",
        kafkajs="producer.send({compression: CompressionTypes.GZIP})",
    ),
    silent="Below 10 MiB without compression, or if batches have less than 4 KiB on average.",
)
def no_compression(facts: ClientFacts) -> Iterator[Evidence]:
    producing = facts.producing
    plain, total = producing.compression["none"], producing.compression.total()
    if plain >= _LEAST_BYTES and 2 * plain > total and producing.batch_bytes.mean >= _LEAST_BATCH_BYTES:
        yield Evidence(
            f"{plain / 1e6:,.0f} of {total / 1e6:,.0f} MB are not compressed, in batches of "
            f"{producing.batch_bytes.mean:,.0f} bytes on average"
        )


_MOST = 0.9  # share of such requests; some are sent while a connection is made, and have more records


@rule(
    Severity.WARNING,
    title="Producers that send each record in a request of its own, at a high rate",
    why="A request costs the client, the network and the broker many times what a record costs. Above 200 requests/s, "
    "even linger.ms=5, Kafka's default, would collect several records.",
    citation=cited(
        "Producer Configs, linger.ms",
        "The default changed from 0 to 5 in Apache Kafka 4.0 as the efficiency gains from larger batches typically "
        "result in similar or lower producer latency despite the increased linger.",
    ),
    remedy=Remedy(
        java="linger.ms=5, and send() without get() or flush() per record",
        librdkafka="linger.ms=5, and no flush() per message",
        aiokafka="linger_ms=5, and send() instead of await send_and_wait() per record",
        franz_go="kgo.ProducerLinger(5*time.Millisecond), and Produce instead of ProduceSync per record",
        kafkajs="several messages per producer.send() or sendBatch()",
    ),
    silent="Below 200 requests/s, if more than a tenth of the requests have several records, or if two would not fit "
    "into a batch of the default batch.size.",
)
def one_record_per_batch(facts: ClientFacts) -> Iterator[Evidence]:
    producing = facts.producing
    single = producing.single
    if single.fastest_ns and single.count >= _MOST * producing.requests:
        yield Evidence(
            f"{single.count:,} of {producing.requests:,} Produce requests have one record, {single.in_words}",
            single.examples,
        )


_MOST_REQUESTS = 2  # Produce requests per producer id


@rule(
    Severity.WARNING,
    title="Applications that create a producer for one or two requests",
    why="Each producer connects, gets metadata and a new producer id before it can send. Brokers keep the state of "
    "each producer id for a day (producer.id.expiration.ms), and producers cannot batch.",
    citation=cited(
        "KafkaProducer",
        "The producer is thread safe and sharing a single producer instance across threads will generally be faster "
        "than having multiple instances.",
    ),
    remedy=Remedy(
        java="one KafkaProducer per application",
        librdkafka="one producer per application",
        aiokafka="one AIOKafkaProducer per application",
        franz_go="one kgo.Client per application",
        kafkajs="one kafka.producer() per application, connected once",
    ),
    silent="Below 20 producer ids per minute. Producers without idempotence have no producer ids: then "
    "connection-per-message applies.",
)
def producer_per_message(facts: ClientFacts) -> Iterator[Evidence]:
    inits, requests = facts.producing.inits, facts.producing.requests
    if inits.fastest_ns and requests <= _MOST_REQUESTS * inits.count:
        yield Evidence(
            f"{inits.count:,} InitProducerId requests for {requests:,} Produce requests, {inits.in_words}",
            inits.examples,
        )


_LEAST = 3  # a producer that splits a batch has one refusal per split


@rule(
    Severity.ERROR,
    title="Batches that are too large for the topic, again and again",
    why="A record above the limit is lost unless the application handles the error. The producer allows larger "
    "requests than the topic (max.message.bytes, by default 1,048,588 bytes).",
    citation=cited(
        "Producer Configs, max.request.size",
        "Note that the server has its own cap on the record batch size (after compression if compression is enabled) "
        "which may be different from this.",
    ),
    remedy=Remedy(
        java="max.request.size at most the topic's max.message.bytes, or a larger max.message.bytes",
        librdkafka="message.max.bytes at most the topic's max.message.bytes, or a larger max.message.bytes",
        aiokafka="max_request_size at most the topic's max.message.bytes, or a larger max.message.bytes",
        franz_go="kgo.ProducerBatchMaxBytes at most the topic's max.message.bytes, or a larger max.message.bytes",
        kafkajs="smaller messages, fewer per producer.send(), or a larger max.message.bytes",
    ),
    silent="Below three refusals, or if the producer itself refuses the record.",
)
def records_too_large(facts: ClientFacts) -> Iterator[Evidence]:
    count = facts.producing.too_large
    if count >= _LEAST:
        yield Evidence(
            f"{count:,} of {facts.producing.requests:,} Produce requests were refused with MESSAGE_TOO_LARGE",
            facts.producing.examples["too large"],
        )


@rule(
    Severity.INFO,
    title="Producers that send batches far below the batch size, at a high rate",
    why="Each request costs the same, whether its batches are full or not, and small batches compress badly.",
    citation=cited(
        "Producer Configs, batch.size", "A small batch size will make batching less common and may reduce throughput"
    ),
    remedy=Remedy(
        java="linger.ms=20, batch.size=65536",
        librdkafka="linger.ms=20, batch.num.messages=10000, batch.size=1000000",
        aiokafka="linger_ms=20, max_batch_size=65536",
        franz_go="kgo.ProducerLinger(20*time.Millisecond), kgo.ProducerBatchMaxBytes(1000012)",
        kafkajs="more messages per producer.send() or sendBatch()",
    ),
    silent="Below 200 requests/s, or if more than a tenth of the requests have larger batches.",
)
def small_batches(facts: ClientFacts) -> Iterator[Evidence]:
    producing = facts.producing
    small = producing.small
    if small.fastest_ns and small.count + producing.single.count >= _MOST * producing.requests:
        yield Evidence(
            f"{small.count:,} of {producing.requests:,} Produce requests have batches of several records below 1 KiB "
            f"({producing.records.mean:.1f} records, {producing.batch_bytes.mean:,.0f} bytes on average), "
            f"{small.in_words}",
            small.examples,
        )
