import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Producing and reading. */
final class Records {
    static final Duration TIMEOUT = Duration.ofSeconds(30);

    static void register(Map<String, Main.Verb> verbs) {
        verbs.put("produce", Records::produce);
        verbs.put("read", Records::read);
        verbs.put("oversize", Records::oversize);
    }

    static Properties properties(String bootstrap, Object... pairs) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.putAll(Logins.properties());
        for (int i = 0; i < pairs.length; i += 2) {
            properties.put(pairs[i], pairs[i + 1].toString());
        }
        return properties;
    }

    static KafkaProducer<byte[], byte[]> producer(String bootstrap, Object... pairs) {
        return producer(properties(bootstrap, pairs));
    }

    static KafkaProducer<byte[], byte[]> producer(Properties properties) {
        ByteArraySerializer bytes = new ByteArraySerializer();
        return new KafkaProducer<>(properties, bytes, bytes);
    }

    static KafkaConsumer<byte[], byte[]> consumer(Properties properties) {
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        return new KafkaConsumer<>(properties, bytes, bytes);
    }

    private static byte[] bytes(String text) {
        return text == null ? null : Base64.getDecoder().decode(text);
    }

    private static String text(byte[] bytes) {
        return bytes == null ? null : Base64.getEncoder().encodeToString(bytes);
    }

    /** Produces the rows to the partitions in turn and waits until all are acknowledged. */
    static void send(KafkaProducer<byte[], byte[]> producer, String topic, List<Given.Row> rows, int partitions)
            throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (Given.Row row : rows) {
            List<Header> headers = new ArrayList<>();
            for (List<String> header : row.headers) {
                headers.add(new RecordHeader(header.get(0), bytes(header.get(1))));
            }
            int partition = sent.size() % partitions;
            sent.add(producer.send(
                    new ProducerRecord<>(topic, partition, row.timestamp, bytes(row.key), bytes(row.value), headers)));
        }
        producer.flush();
        for (Future<RecordMetadata> one : sent) {
            one.get();
        }
    }

    private static void produce(String bootstrap, Given given, Main.Steps steps) throws Exception {
        try (KafkaProducer<byte[], byte[]> producer = producer(
                bootstrap,
                "acks", given.acks,
                "compression.type", given.compression,
                "enable.idempotence", given.idempotent,
                "linger.ms", 5)) {
            send(producer, given.topic, given.rows, given.partitions);
        }
        steps.report("sent", given.rows.size());
    }

    /** Returns the next `count` records. */
    static List<ConsumerRecord<byte[], byte[]>> poll(KafkaConsumer<byte[], byte[]> consumer, long count) {
        List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
        long deadline = System.nanoTime() + TIMEOUT.toNanos();
        while (records.size() < count) {
            if (System.nanoTime() > deadline) {
                throw new AssertionError(records.size() + " of " + count + " records");
            }
            consumer.poll(Duration.ofMillis(200)).forEach(records::add);
        }
        return records;
    }

    private static Map<String, Object> row(ConsumerRecord<byte[], byte[]> record) {
        List<List<String>> headers = new ArrayList<>();
        for (Header header : record.headers()) {
            headers.add(Arrays.asList(header.key(), text(header.value())));
        }
        Map<String, Object> row = new HashMap<>();
        row.put("key", text(record.key()));
        row.put("value", text(record.value()));
        row.put("headers", headers);
        row.put("timestamp", record.timestamp());
        return row;
    }

    private static void read(String bootstrap, Given given, Main.Steps steps) {
        List<Map<String, Object>> rows = new ArrayList<>();
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(
                properties(bootstrap, "isolation.level", given.isolation, "enable.auto.commit", false))) {
            List<TopicPartition> partitions = List.of(new TopicPartition(given.topic, 0));
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            poll(consumer, given.count).forEach(record -> rows.add(row(record)));
        }
        steps.report("rows", rows);
    }

    private static void oversize(String bootstrap, Given given, Main.Steps steps) throws Exception {
        int error = 0;
        try (KafkaProducer<byte[], byte[]> producer = producer(bootstrap)) {
            producer.send(new ProducerRecord<>(given.topic, new byte[given.size])).get();
        } catch (ExecutionException failure) {
            RecordTooLargeException documented = (RecordTooLargeException) failure.getCause();
            error = Errors.forException(documented).code();
        }
        steps.report("error", error);
    }
}
