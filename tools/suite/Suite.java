import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** The test of clients.py in Java. Each line of standard input is a test: BOOTSTRAP NAME RECORDS CREATES. */
public final class Suite {
    public static void main(String[] arguments) throws Exception {
        System.out.println("started");
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            System.out.println(run(words[0], words[1], Integer.parseInt(words[2]), Boolean.parseBoolean(words[3])));
        }
    }

    private static long now() {
        Instant now = Instant.now();
        return now.getEpochSecond() * 1_000_000_000L + now.getNano();
    }

    private static String run(String bootstrap, String name, int records, boolean creates) throws Exception {
        StringBuilder ends = new StringBuilder();
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", bootstrap);
        if (creates) {
            try (Admin admin = Admin.create(settings)) {
                admin.createTopics(List.of(new NewTopic(name, 1, (short) 1))).all().get();
            }
        }
        ends.append(now());
        try (KafkaProducer<byte[], byte[]> producer =
                new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            for (int i = 0; i < records; i++) {
                producer.send(new ProducerRecord<>(name, new byte[100]));
            }
        }
        ends.append(' ').append(now());
        settings.put("group.id", name);
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        KafkaConsumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        consumer.subscribe(List.of(name));
        for (int count = 0; count < records; ) {
            count += consumer.poll(Duration.ofSeconds(30)).count();
        }
        ends.append(' ').append(now());
        consumer.commitSync();
        ends.append(' ').append(now());
        consumer.close();
        return ends.append(' ').append(now()).toString();
    }
}
