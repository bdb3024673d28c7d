// Many consumers of Apache Kafka in one process: BOOTSTRAP TOPIC PARTITIONS CLIENTS PERIOD_S SEED NAME=VALUE...
// Each is alone in its group, and reads one of the topics TOPIC-0, TOPIC-1, ...
// Prints "ready" when all have partitions, and stops after two lines of input.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

public class JavaConsumers {
    public static void main(String[] args) throws Exception {
        int partitions = Integer.parseInt(args[2]);
        int clients = Integer.parseInt(args[3]);
        CountDownLatch ready = new CountDownLatch(clients);
        for (int index = 0; index < clients; index++) {
            Properties config = new Properties();
            config.put("bootstrap.servers", args[0]);
            config.put("client.id", "client-" + index);
            config.put("group.id", "client-" + index);
            config.put("enable.auto.commit", "false");
            for (int at = 6; at < args.length; at++) {
                String[] pair = args[at].split("=", 2);
                config.put(pair[0], pair[1]);
            }
            String topic = args[1] + "-" + index % partitions;
            Thread thread = new Thread(() -> {
                var consumer = new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
                consumer.subscribe(List.of(topic));
                boolean isReady = false;
                while (true) {
                    consumer.poll(Duration.ofSeconds(1));
                    if (!isReady && !consumer.assignment().isEmpty()) {
                        isReady = true;
                        ready.countDown();
                    }
                }
            });
            thread.setDaemon(true);
            thread.start();
            Thread.sleep((long) (3000 / clients)); // heartbeats have different phases
        }
        ready.await();
        System.out.println("ready");
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        input.readLine();
        input.readLine();
        System.exit(0);
    }
}
