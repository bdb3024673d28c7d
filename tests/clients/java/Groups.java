import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

/** Members of groups, of both protocols. */
final class Groups {
    static void register(Map<String, Main.Verb> verbs) {
        verbs.put("rebalance", Groups::rebalance);
        verbs.put("static", Groups::restartStaticMember);
        verbs.put("resume", Groups::resume);
    }

    /** A consumer in the group; a member of the classic protocol notices a rebalance early. */
    static KafkaConsumer<byte[], byte[]> consumer(String bootstrap, Given given, String instanceId, Object... pairs) {
        Properties properties = Records.properties(bootstrap, pairs);
        properties.put("group.id", given.group);
        properties.put("auto.offset.reset", "earliest");
        properties.put("enable.auto.commit", "false");
        properties.put("group.protocol", given.protocol);
        if (given.protocol.equals("consumer")) {
            properties.put("group.remote.assignor", "uniform");
        } else {
            String assignor = given.assignor.equals("range") ? "RangeAssignor" : "CooperativeStickyAssignor";
            properties.put("partition.assignment.strategy", "org.apache.kafka.clients.consumer." + assignor);
            properties.put("heartbeat.interval.ms", "100");
        }
        if (instanceId != null) {
            properties.put("group.instance.id", instanceId);
        }
        return Records.consumer(properties);
    }

    /** A consumer that counts its revocations. */
    private static final class Member implements ConsumerRebalanceListener, AutoCloseable {
        final KafkaConsumer<byte[], byte[]> consumer;
        int revocations;

        Member(String bootstrap, Given given, String instanceId) {
            consumer = Groups.consumer(bootstrap, given, instanceId);
            consumer.subscribe(List.of(given.topic), this);
        }

        Set<Integer> assigned() {
            Set<Integer> partitions = new TreeSet<>();
            consumer.assignment().forEach(partition -> partitions.add(partition.partition()));
            return partitions;
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> assigned) {}

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> revoked) {
            revocations += revoked.isEmpty() ? 0 : 1;
        }

        @Override
        public void close() {
            consumer.close();
        }
    }

    /** Polls until every partition is assigned once and every member has some, for a while; returns the counts. */
    private static List<Integer> settle(int partitions, Member... members) {
        long deadline = System.nanoTime() + Records.TIMEOUT.toNanos();
        long heldSince = 0;
        while (heldSince == 0 || System.nanoTime() < heldSince + 300_000_000) {
            if (System.nanoTime() > deadline) {
                throw new AssertionError("partitions are not all assigned");
            }
            Set<Integer> all = new TreeSet<>();
            int sum = 0;
            boolean someWithout = false;
            for (Member member : members) {
                member.consumer.poll(Duration.ofMillis(20));
            }
            for (Member member : members) {
                Set<Integer> assigned = member.assigned();
                all.addAll(assigned);
                sum += assigned.size();
                someWithout |= assigned.isEmpty();
            }
            boolean sharedOut = sum == partitions && all.size() == partitions && !someWithout;
            heldSince = !sharedOut ? 0 : heldSince == 0 ? System.nanoTime() : heldSince;
        }
        List<Integer> sizes = new ArrayList<>();
        for (Member member : members) {
            sizes.add(member.assigned().size());
        }
        sizes.sort(null);
        return sizes;
    }

    private static void rebalance(String bootstrap, Given given, Main.Steps steps) {
        try (Member first = new Member(bootstrap, given, null)) {
            steps.report("members", 1, "partitions", settle(given.partitions, first));
            try (Member second = new Member(bootstrap, given, null)) {
                steps.report("members", 2, "partitions", settle(given.partitions, first, second));
            }
            steps.report("members", 1, "partitions", settle(given.partitions, first));
        }
    }

    private static void restartStaticMember(String bootstrap, Given given, Main.Steps steps) {
        try (Member stays = new Member(bootstrap, given, "stays")) {
            List<Integer> shares;
            Set<Integer> before;
            try (Member restarted = new Member(bootstrap, given, "restarted")) {
                shares = settle(given.partitions, stays, restarted);
                before = restarted.assigned();
            }
            int revocations = stays.revocations;
            try (Member restarted = new Member(bootstrap, given, "restarted")) {
                settle(given.partitions, stays, restarted);
                steps.report(
                        "partitions", shares,
                        "kept", restarted.assigned().equals(before),
                        "revocations_of_the_other", stays.revocations - revocations);
            }
        }
    }

    private static void resume(String bootstrap, Given given, Main.Steps steps) {
        for (String name : List.of("first", "resumed")) {
            List<String> values = new ArrayList<>();
            try (KafkaConsumer<byte[], byte[]> consumer = consumer(bootstrap, given, null, "max.poll.records", 5)) {
                consumer.subscribe(List.of(given.topic));
                for (ConsumerRecord<byte[], byte[]> record : Records.poll(consumer, 5)) {
                    values.add(new String(record.value(), StandardCharsets.UTF_8));
                    consumer.commitSync(Map.of(
                            new TopicPartition(given.topic, 0), new OffsetAndMetadata(record.offset() + 1)));
                }
            }
            steps.report(name, values);
        }
    }
}
