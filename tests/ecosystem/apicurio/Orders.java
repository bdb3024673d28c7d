import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Writes, or reads and prints, Avro records: Orders write|read BOOTSTRAP REGISTRY. */
public final class Orders {
    private static final String SERDES = "io.apicurio.registry.serde.avro.Avro";
    private static final int RECORDS = 3;

    public static void main(String[] arguments) throws Exception {
        var registry = Map.<String, Object>of(
            "bootstrap.servers", arguments[1],
            "apicurio.registry.url", arguments[2],
            "apicurio.registry.auto-register", true,
            "group.id", "orders",
            "auto.offset.reset", "earliest",
            "key.serializer", ByteArraySerializer.class.getName(),
            "key.deserializer", ByteArrayDeserializer.class.getName(),
            "value.serializer", SERDES + "KafkaSerializer",
            "value.deserializer", SERDES + "KafkaDeserializer");
        if (arguments[0].equals("write")) write(registry);
        else read(registry);
    }

    private static void write(Map<String, Object> settings) throws Exception {
        var schema = new Schema.Parser().parse("{\"type\": \"record\", \"name\": \"Order\", \"fields\": ["
            + "{\"name\": \"number\", \"type\": \"int\"}, {\"name\": \"dish\", \"type\": \"string\"}]}");
        try (var producer = new KafkaProducer<byte[], GenericRecord>(settings)) {
            for (int number = 0; number < RECORDS; number++) {
                var order = new GenericData.Record(schema);
                order.put("number", number);
                order.put("dish", "pizza");
                producer.send(new ProducerRecord<>("avro-orders", order)).get();
            }
        }
    }

    private static void read(Map<String, Object> settings) {
        try (var consumer = new KafkaConsumer<byte[], GenericRecord>(settings)) {
            consumer.subscribe(List.of("avro-orders"));
            for (int read = 0; read < RECORDS;) {
                for (var message : consumer.poll(Duration.ofSeconds(1))) {
                    System.out.println(message.value());
                    read++;
                }
            }
        }
    }
}
