import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** An application with the Java client, in a naive and a fixed version, as shop.py: Shop MODE VERSION BOOTSTRAP CLIENT_ID. */
public final class Shop {
    private static final int RETRIES = 5;
    private static final ProducerRecord<String, String> BILL = new ProducerRecord<>("bills", "one pizza");

    public static void main(String[] arguments) throws Exception {
        boolean isFixed = arguments[1].equals("fixed");
        Properties client = new Properties();
        client.put("bootstrap.servers", arguments[2]);
        client.put("client.id", arguments[3]);
        client.put("key.serializer", StringSerializer.class.getName());
        client.put("value.serializer", StringSerializer.class.getName());
        client.put("key.deserializer", StringDeserializer.class.getName());
        client.put("value.deserializer", StringDeserializer.class.getName());
        client.put("linger.ms", "0");
        try {
            switch (arguments[0]) {
                case "consume" -> consume(client, isFixed);
                case "send" -> send(client, isFixed);
                case "write" -> write(client, isFixed);
                default -> forward(client, isFixed);
            }
        } catch (KafkaException error) { // a fenced writer ends
            System.out.println("ended by " + error);
        }
        Runtime.getRuntime().halt(0);
    }

    private static void consume(Properties client, boolean isFixed) {
        KafkaConsumer<String, String> consumer = consumer(client);
        while (true) {
            ConsumerRecord<String, String> order = next(consumer);
            if (!isFixed) {
                commit(consumer, order);
            }
            System.out.println("processed " + order.value());
            if (isFixed) {
                commit(consumer, order);
            }
        }
    }

    private static void send(Properties client, boolean isFixed) throws Exception {
        client.put("request.timeout.ms", "500");
        if (isFixed) {
            new KafkaProducer<String, String>(client).send(BILL).get();
            return;
        }
        client.put("enable.idempotence", "false");
        client.put("retries", "0");
        client.put("delivery.timeout.ms", "500");
        KafkaProducer<String, String> producer = new KafkaProducer<>(client);
        for (int attempt = 0; attempt < RETRIES; attempt++) {
            try {
                producer.send(BILL).get();
                return;
            } catch (java.util.concurrent.ExecutionException error) {
                // it sends the bill again
            }
        }
    }

    private static void write(Properties client, boolean isFixed) throws Exception {
        if (isFixed) {
            client.put("transactional.id", "biller");
        }
        KafkaProducer<String, String> producer = new KafkaProducer<>(client);
        if (!isFixed) {
            producer.send(BILL).get();
            return;
        }
        producer.initTransactions();
        producer.beginTransaction();
        producer.send(BILL);
        producer.commitTransaction();
    }

    private static void forward(Properties client, boolean isFixed) {
        KafkaConsumer<String, String> consumer = consumer(client);
        client.put("max.in.flight.requests.per.connection", "1");
        KafkaProducer<String, String> producer = new KafkaProducer<>(client);
        while (true) {
            ConsumerRecord<String, String> order = next(consumer);
            producer.send(new ProducerRecord<>("bills", order.value()));
            if (isFixed) {
                producer.flush();
            }
            commit(consumer, order);
        }
    }

    private static KafkaConsumer<String, String> consumer(Properties client) {
        Properties all = new Properties();
        all.putAll(client);
        // With a group.instance.id, a restarted application gets its partitions at once.
        all.put("group.id", "shop");
        all.put("group.instance.id", "shop");
        all.put("enable.auto.commit", "false");
        all.put("auto.offset.reset", "earliest");
        all.put("max.poll.records", "1");
        KafkaConsumer<String, String> consumer = new KafkaConsumer<>(all);
        consumer.subscribe(List.of("orders"));
        return consumer;
    }

    private static ConsumerRecord<String, String> next(KafkaConsumer<String, String> consumer) {
        while (true) {
            for (ConsumerRecord<String, String> order : consumer.poll(Duration.ofMillis(100))) {
                return order;
            }
        }
    }

    private static void commit(KafkaConsumer<String, String> consumer, ConsumerRecord<String, String> order) {
        TopicPartition partition = new TopicPartition(order.topic(), order.partition());
        consumer.commitSync(Map.of(partition, new OffsetAndMetadata(order.offset() + 1)));
    }
}
