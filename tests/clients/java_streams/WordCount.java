import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;

/**
 * One instance of a word count in Kafka Streams: counts the words of the topic "lines" into the topic "counts".
 *
 * Arguments: settings of Kafka Streams, KEY=VALUE. Prints each state of the instance; ends when standard input does.
 */
public final class WordCount {
    private static final String STORE = "counts-store";

    public static void main(String[] args) throws Exception {
        Properties settings = new Properties();
        for (String setting : args) {
            int at = setting.indexOf('=');
            settings.put(setting.substring(0, at), setting.substring(at + 1));
        }
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream("lines", Consumed.with(Serdes.String(), Serdes.String()))
            .flatMapValues(line -> Arrays.asList(line.split(" ")))
            .groupBy((key, word) -> word, org.apache.kafka.streams.kstream.Grouped.with(Serdes.String(), Serdes.String()))
            .count(Materialized.as(STORE))
            .toStream()
            .to("counts", Produced.with(Serdes.String(), Serdes.Long()));
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        streams.setStateListener((after, before) -> say(after.toString()));
        streams.start();
        while (System.in.read() != -1) {
            continue;
        }
        streams.close();
    }

    private static void say(String line) {
        synchronized (System.out) {
            byte[] bytes = (line + "\n").getBytes(StandardCharsets.UTF_8);
            System.out.write(bytes, 0, bytes.length);
            System.out.flush();
        }
    }
}
