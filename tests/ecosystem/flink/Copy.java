import java.util.concurrent.atomic.AtomicInteger;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.restartstrategy.RestartStrategies;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/** Copies records from one topic to another exactly once, and fails once on the way: Copy BOOTSTRAP FROM TO. */
public final class Copy {
    private static final AtomicInteger SEEN = new AtomicInteger();

    /** Slow enough for some checkpoints; fails at the 150th record. */
    private static final class FailOnce implements MapFunction<String, String> {
        @Override
        public String map(String value) throws Exception {
            Thread.sleep(20);
            if (SEEN.incrementAndGet() == 150) throw new IllegalStateException("the failure of this test");
            return value;
        }
    }

    public static void main(String[] arguments) throws Exception {
        var environment = StreamExecutionEnvironment.getExecutionEnvironment();
        environment.setParallelism(1);
        environment.enableCheckpointing(500);
        environment.setRestartStrategy(RestartStrategies.fixedDelayRestart(3, 100));
        var source = KafkaSource.<String>builder()
            .setBootstrapServers(arguments[0])
            .setTopics(arguments[1])
            .setGroupId("flink")
            .setStartingOffsets(OffsetsInitializer.earliest())
            .setBounded(OffsetsInitializer.latest())
            .setValueOnlyDeserializer(new SimpleStringSchema())
            .build();
        var serializer = KafkaRecordSerializationSchema.builder()
            .setTopic(arguments[2])
            .setValueSerializationSchema(new SimpleStringSchema())
            .build();
        var sink = KafkaSink.<String>builder()
            .setBootstrapServers(arguments[0])
            .setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE)
            .setTransactionalIdPrefix("flink")
            .setProperty("transaction.timeout.ms", "60000")
            .setRecordSerializer(serializer)
            .build();
        environment.fromSource(source, WatermarkStrategy.noWatermarks(), "source").map(new FailOnce()).sinkTo(sink);
        environment.execute();
        System.out.println("records seen: " + SEEN.get());
    }
}
