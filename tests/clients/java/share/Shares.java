import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;

/** Members of share groups, which clients older than 4.0 do not have. */
final class Shares {
    /** After the last expected delivery, so that a further one would be noticed. */
    private static final long QUIET_NS = 500_000_000;

    static void register(Map<String, Main.Verb> verbs) {
        verbs.put("share", Shares::share);
    }

    /** Polls until `count` records were delivered, and then for a while; reports the deliveries of each value. */
    private static void share(String bootstrap, Given given, Main.Steps steps) {
        Map<String, Integer> deliveries = new HashMap<>();
        List<KafkaShareConsumer<byte[], byte[]>> members = new ArrayList<>();
        try {
            for (int i = 0; i < given.members; i++) {
                members.add(member(bootstrap, given));
            }
            long deadline = System.nanoTime() + Records.TIMEOUT.toNanos();
            long total = 0;
            for (long quiet = 0; quiet < QUIET_NS; ) {
                if (System.nanoTime() > deadline) {
                    throw new AssertionError("expected " + given.count + " deliveries, got " + deliveries);
                }
                long started = System.nanoTime();
                for (KafkaShareConsumer<byte[], byte[]> member : members) {
                    total += poll(member, given, deliveries);
                }
                quiet += total >= given.count ? System.nanoTime() - started : 0;
            }
        } finally {
            members.forEach(KafkaShareConsumer::close);
        }
        steps.report("deliveries", deliveries);
    }

    private static KafkaShareConsumer<byte[], byte[]> member(String bootstrap, Given given) {
        Properties properties = Records.properties(bootstrap);
        properties.put("group.id", given.group);
        properties.put("share.acknowledgement.mode", "explicit");
        String deserializer = "org.apache.kafka.common.serialization.ByteArrayDeserializer";
        properties.put("key.deserializer", deserializer);
        properties.put("value.deserializer", deserializer);
        KafkaShareConsumer<byte[], byte[]> member = new KafkaShareConsumer<>(properties);
        member.subscribe(List.of(given.topic));
        return member;
    }

    /** Counts and acknowledges the records of one poll. */
    private static int poll(
            KafkaShareConsumer<byte[], byte[]> member, Given given, Map<String, Integer> deliveries) {
        int count = 0;
        for (ConsumerRecord<byte[], byte[]> record : member.poll(Duration.ofMillis(100))) {
            int times = deliveries.merge(new String(record.value(), StandardCharsets.UTF_8), 1, Integer::sum);
            member.acknowledge(record, acknowledgement(given.acknowledge, times));
            count++;
        }
        member.commitSync(Records.TIMEOUT).forEach((partition, failure) -> failure.ifPresent(cause -> {
            throw cause;
        }));
        return count;
    }

    private static AcknowledgeType acknowledgement(String wanted, int times) {
        if (wanted.equals("release-always")) {
            return AcknowledgeType.RELEASE;
        }
        return times > 1 || wanted.equals("accept")
                ? AcknowledgeType.ACCEPT
                : wanted.equals("reject") ? AcknowledgeType.REJECT : AcknowledgeType.RELEASE;
    }
}
