// Many producers of Apache Kafka in one process: BOOTSTRAP TOPIC PARTITIONS CLIENTS PERIOD_S SEED NAME=VALUE...
// Prints "ready" when all have sent a record, starts to send at the rate after a line of input, and stops after another.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.Random;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class JavaClients {
    public static void main(String[] args) throws Exception {
        int partitions = Integer.parseInt(args[2]);
        double period = Double.parseDouble(args[4]);
        Random random = new Random(Long.parseLong(args[5]));
        List<KafkaProducer<byte[], byte[]>> producers = new ArrayList<>();
        for (int index = 0; index < Integer.parseInt(args[3]); index++) {
            Properties config = new Properties();
            config.put("bootstrap.servers", args[0]);
            config.put("client.id", "client-" + index);
            for (int at = 6; at < args.length; at++) {
                String[] pair = args[at].split("=", 2);
                config.put(pair[0], pair[1]);
            }
            producers.add(new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer()));
        }
        List<Future<?>> first = new ArrayList<>();
        for (int index = 0; index < producers.size(); index++) {
            first.add(producers.get(index).send(record(args[1], index % partitions)));
        }
        for (Future<?> one : first) {
            one.get();
        }
        System.out.println("ready");
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        input.readLine();
        var timer = Executors.newScheduledThreadPool(2);
        long periodUs = (long) (period * 1e6);
        for (int index = 0; index < producers.size(); index++) {
            var producer = producers.get(index);
            int partition = index % partitions;
            timer.scheduleAtFixedRate(() -> producer.send(record(args[1], partition)),
                (long) (random.nextDouble() * periodUs), periodUs, TimeUnit.MICROSECONDS);
        }
        input.readLine();
        System.exit(0);
    }

    private static ProducerRecord<byte[], byte[]> record(String topic, int partition) {
        return new ProducerRecord<>(topic, partition, null, new byte[0]);
    }
}
