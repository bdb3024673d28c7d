// Producers of Apache Kafka in one process: BOOTSTRAP, and a line of standard input for each, as workloads.py writes them.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class Producers {
    public static void main(String[] args) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] fields = line.split(" ");
            new Thread(() -> run(args[0], fields)).start();
        }
    }

    private static void run(String bootstrap, String[] fields) {
        String clientId = fields[0];
        boolean isClosed = fields[1].equals("closed");
        byte[] record = new byte[Integer.parseInt(fields[2])];
        int count = Integer.parseInt(fields[3]);
        long everyMs = Long.parseLong(fields[4]);
        int backlog = Integer.parseInt(fields[5]);
        Properties config = new Properties();
        config.put("bootstrap.servers", bootstrap);
        config.put("client.id", clientId);
        config.put("linger.ms", fields[6]);
        try (var producer = new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer())) {
            for (int number = 0; number < backlog; number++) {
                producer.send(new ProducerRecord<>(clientId, 0, null, record));
            }
            long dueMs = System.currentTimeMillis();
            while (true) {
                List<Future<RecordMetadata>> sent = new ArrayList<>();
                for (int number = 0; number < count; number++) {
                    sent.add(producer.send(new ProducerRecord<>(clientId, 0, null, record)));
                }
                if (isClosed) {
                    for (Future<RecordMetadata> one : sent) {
                        one.get();
                    }
                    dueMs = System.currentTimeMillis();
                }
                dueMs += everyMs;
                Thread.sleep(Math.max(0, dueMs - System.currentTimeMillis()));
            }
        } catch (Exception failure) {
            failure.printStackTrace();
            System.exit(1);
        }
    }
}
