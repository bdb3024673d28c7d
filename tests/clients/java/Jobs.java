import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.UUID;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/** The jobs of the lint matrix (tools/lint/job.py). */
final class Jobs {
    private static final Map<String, List<Integer>> OFFSETS_APART =
            Map.of("record", List.of(0), "poll", List.of(0), "ahead", List.of(10), "back", List.of(0, -10));

    /** The fields of tools/lint/job.py that the Java clients support. */
    static final class Job {
        String role;
        Map<String, String> settings;
        String client_id;
        List<String> topics;
        int bursts;
        int records;
        int size;
        double every_ms;
        int keys;
        int hot_percent;
        boolean wait;
        boolean wait_each;
        boolean new_client;
        int skew_ms;
        String transactional_id;
        double hold_ms;
        boolean abort;
        String output;
        Map<String, String> output_settings;
        String group;
        int partitions;
        String instance_id;
        double for_ms;
        int poll_ms;
        double process_ms;
        double rest_ms;
        int most;
        String commit;
        double rejoin_ms;
        boolean leave;

        byte[] keyOf(int number) {
            if (keys == 0) {
                return null;
            }
            return ("key-" + (number * 37 % 100 < hot_percent ? 0 : number % keys)).getBytes();
        }

        byte[] valueOf(int number) {
            String text = "record " + number + ", ";
            return Arrays.copyOf(text.repeat(size / text.length() + 1).getBytes(), size);
        }
    }

    static void register(Map<String, Main.Verb> verbs) {
        verbs.put("work", Jobs::work);
    }

    private static void work(String bootstrap, Given given, Main.Steps steps) throws Exception {
        Job job = given.job;
        switch (job.role) {
            case "produce" -> produce(bootstrap, job);
            case "consume" -> consume(bootstrap, job);
            default -> copy(bootstrap, job);
        }
    }

    private static void sleep(double ms) throws InterruptedException {
        if (ms > 0) {
            Thread.sleep((long) ms);
        }
    }

    private static Properties properties(String bootstrap, Job job, Map<String, String> settings, Object... pairs) {
        Properties properties = Records.properties(bootstrap, pairs);
        if (!job.client_id.isEmpty()) {
            properties.put("client.id", job.client_id);
        }
        properties.putAll(settings);
        return properties;
    }

    private static KafkaProducer<byte[], byte[]> producer(String bootstrap, Job job, Map<String, String> settings) {
        Properties properties = properties(bootstrap, job, settings);
        if (!job.transactional_id.isEmpty()) {
            properties.put("transactional.id", job.transactional_id);
        }
        KafkaProducer<byte[], byte[]> producer = Records.producer(properties);
        if (!job.transactional_id.isEmpty()) {
            producer.initTransactions();
        }
        return producer;
    }

    private static void send(KafkaProducer<byte[], byte[]> producer, Job job, int burst) throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (int number = burst * job.records; number < (burst + 1) * job.records; number++) {
            Long stamp = job.skew_ms == 0 ? null : System.currentTimeMillis() + job.skew_ms;
            String topic = job.topics.get(number % job.topics.size());
            sent.add(producer.send(new ProducerRecord<>(topic, null, stamp, job.keyOf(number), job.valueOf(number))));
            if (job.wait_each) {
                sent.get(sent.size() - 1).get();
            }
        }
        if (job.wait) {
            for (Future<RecordMetadata> each : sent) {
                each.get();
            }
        }
    }

    private static void bursts(KafkaProducer<byte[], byte[]> producer, Job job, int from, int to) throws Exception {
        for (int burst = from; burst < to; burst++) {
            if (job.transactional_id.isEmpty()) {
                send(producer, job, burst);
            } else {
                producer.beginTransaction();
                send(producer, job, burst);
                sleep(job.hold_ms);
                if (job.abort) {
                    producer.abortTransaction();
                } else {
                    producer.commitTransaction();
                }
            }
            sleep(job.every_ms);
        }
    }

    private static void produce(String bootstrap, Job job) throws Exception {
        int each = job.new_client ? 1 : job.bursts;
        for (int from = 0; from < job.bursts; from += each) {
            try (KafkaProducer<byte[], byte[]> producer = producer(bootstrap, job, job.settings)) {
                bursts(producer, job, from, from + each);
            }
        }
    }

    private static KafkaConsumer<byte[], byte[]> consumer(String bootstrap, Job job) {
        Properties properties = properties(bootstrap, job, Map.of(), "auto.offset.reset", "earliest");
        if (!job.group.isEmpty()) {
            properties.put("group.id", job.group.replace("{life}", UUID.randomUUID().toString()));
        }
        if (job.group.isEmpty() || !job.commit.equals("auto") || job.role.equals("copy")) {
            properties.put("enable.auto.commit", "false");
        }
        if (!job.instance_id.isEmpty()) {
            properties.put("group.instance.id", job.instance_id);
        }
        if (job.most != 500) {
            properties.put("max.poll.records", String.valueOf(job.most));
        }
        properties.putAll(job.settings);
        KafkaConsumer<byte[], byte[]> consumer = Records.consumer(properties);
        if (!job.group.isEmpty()) {
            consumer.subscribe(job.topics);
            return consumer;
        }
        List<TopicPartition> partitions = new ArrayList<>();
        for (String topic : job.topics) {
            for (PartitionInfo each : consumer.partitionsFor(topic)) {
                if (job.partitions == 0 || each.partition() < job.partitions) {
                    partitions.add(new TopicPartition(topic, each.partition()));
                }
            }
        }
        consumer.assign(partitions);
        return consumer;
    }

    private static Map<TopicPartition, OffsetAndMetadata> positions(ConsumerRecords<byte[], byte[]> records, int apart) {
        Map<TopicPartition, OffsetAndMetadata> found = new HashMap<>();
        for (ConsumerRecord<byte[], byte[]> each : records) {
            found.put(
                    new TopicPartition(each.topic(), each.partition()),
                    new OffsetAndMetadata(Math.max(0, each.offset() + 1 + apart)));
        }
        return found;
    }

    private static void poll(KafkaConsumer<byte[], byte[]> consumer, Job job) throws Exception {
        ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(job.poll_ms));
        if (!job.group.isEmpty() && !records.isEmpty()) {
            if (job.commit.equals("record")) {
                for (ConsumerRecord<byte[], byte[]> each : records) {
                    TopicPartition partition = new TopicPartition(each.topic(), each.partition());
                    consumer.commitSync(Map.of(partition, new OffsetAndMetadata(each.offset() + 1)));
                }
            } else if (OFFSETS_APART.containsKey(job.commit)) {
                for (int apart : OFFSETS_APART.get(job.commit)) {
                    consumer.commitSync(positions(records, apart));
                }
            }
        }
        sleep((records.isEmpty() ? 0 : job.process_ms) + job.rest_ms);
    }

    private static void consume(String bootstrap, Job job) throws Exception {
        long ends = System.nanoTime() + (long) (job.for_ms * 1e6);
        while (System.nanoTime() < ends) {
            long until = job.rejoin_ms > 0 ? Math.min(ends, System.nanoTime() + (long) (job.rejoin_ms * 1e6)) : ends;
            KafkaConsumer<byte[], byte[]> consumer = consumer(bootstrap, job);
            try {
                do {
                    poll(consumer, job);
                } while (!job.new_client && System.nanoTime() < until);
            } finally {
                if (job.leave) {
                    consumer.close();
                }
            }
        }
    }

    private static void copy(String bootstrap, Job job) throws Exception {
        long ends = System.nanoTime() + (long) (job.for_ms * 1e6);
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(bootstrap, job);
                KafkaProducer<byte[], byte[]> producer = producer(bootstrap, job, job.output_settings)) {
            while (System.nanoTime() < ends) {
                ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(job.poll_ms));
                if (!records.isEmpty()) {
                    producer.beginTransaction();
                    for (ConsumerRecord<byte[], byte[]> each : records) {
                        producer.send(new ProducerRecord<>(job.output, each.value()));
                    }
                    producer.sendOffsetsToTransaction(positions(records, 0), consumer.groupMetadata());
                    sleep(job.hold_ms);
                    producer.commitTransaction();
                }
                sleep((records.isEmpty() ? 0 : job.process_ms) + job.rest_ms);
            }
        }
    }
}
