import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.TransactionDescription;
import org.apache.kafka.clients.admin.TransactionListing;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.ProducerFencedException;

/** Transactions, and their descriptions by an admin client. */
final class Transactions {
    static void register(Map<String, Main.Verb> verbs) {
        verbs.put("transactions", Transactions::transactions);
        verbs.put("fence", Transactions::fence);
        verbs.put("transactional_offsets", Transactions::transactionalOffsets);
        verbs.put("list_transactions", Transactions::list);
        verbs.put("describe_transaction", Transactions::describe);
        verbs.put("describe_producers", Transactions::describeProducers);
    }

    private static KafkaProducer<byte[], byte[]> producer(String bootstrap, Given given) {
        KafkaProducer<byte[], byte[]> producer =
                Records.producer(bootstrap, "transactional.id", given.transactional_id);
        producer.initTransactions();
        return producer;
    }

    private static void end(KafkaProducer<byte[], byte[]> producer, String end) {
        if (end.equals("commit")) {
            producer.commitTransaction();
        } else {
            producer.abortTransaction();
        }
    }

    private static void transactions(String bootstrap, Given given, Main.Steps steps) throws Exception {
        try (KafkaProducer<byte[], byte[]> producer = producer(bootstrap, given)) {
            for (Given.Round round : given.rounds) {
                producer.beginTransaction();
                Records.send(producer, given.topic, round.rows, 1);
                end(producer, round.end);
                steps.report("end", round.end);
            }
        }
    }

    private static void fence(String bootstrap, Given given, Main.Steps steps) throws Exception {
        boolean fenced = false;
        try (KafkaProducer<byte[], byte[]> first = producer(bootstrap, given)) {
            first.beginTransaction();
            first.send(new ProducerRecord<>(given.topic, "first".getBytes())).get();
            try (AutoCloseable second = producer(bootstrap, given)) {
                first.commitTransaction();
            } catch (ProducerFencedException | InvalidProducerEpochException expected) {
                fenced = true;
            }
        }
        steps.report("fenced", fenced);
    }

    private static void transactionalOffsets(String bootstrap, Given given, Main.Steps steps) throws Exception {
        TopicPartition partition = new TopicPartition(given.topic, 0);
        try (KafkaProducer<byte[], byte[]> producer = producer(bootstrap, given);
                KafkaConsumer<byte[], byte[]> consumer = Groups.consumer(bootstrap, given, null, "max.poll.records", 3)) {
            consumer.subscribe(List.of(given.topic));
            for (String end : List.of("commit", "abort")) {
                long next = 0;
                producer.beginTransaction();
                for (ConsumerRecord<byte[], byte[]> record : Records.poll(consumer, 3)) {
                    producer.send(new ProducerRecord<>(given.output, record.value()));
                    next = record.offset() + 1;
                }
                producer.sendOffsetsToTransaction(
                        Map.of(partition, new OffsetAndMetadata(next)), consumer.groupMetadata());
                end(producer, end);
                steps.report("after_" + end, consumer.committed(Set.of(partition)).get(partition).offset());
            }
        }
    }

    /** An admin call while a transaction is open. */
    interface Question {
        void run(Admin admin) throws Exception;
    }

    private static void whileOpen(String bootstrap, Given given, Question question) throws Exception {
        try (KafkaProducer<byte[], byte[]> producer = producer(bootstrap, given);
                Admin admin = Admin.create(Records.properties(bootstrap))) {
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(given.topic, "v".getBytes())).get();
            question.run(admin);
            producer.abortTransaction();
        }
    }

    private static void list(String bootstrap, Given given, Main.Steps steps) throws Exception {
        whileOpen(bootstrap, given, admin -> {
            for (TransactionListing listing : admin.listTransactions().all().get()) {
                if (listing.transactionalId().equals(given.transactional_id)) {
                    steps.report("state", listing.state().toString());
                }
            }
        });
    }

    private static void describe(String bootstrap, Given given, Main.Steps steps) throws Exception {
        whileOpen(bootstrap, given, admin -> {
            TransactionDescription found =
                    admin.describeTransactions(List.of(given.transactional_id)).all().get().get(given.transactional_id);
            steps.report("state", found.state().toString(), "partitions", found.topicPartitions().size());
        });
    }

    private static void describeProducers(String bootstrap, Given given, Main.Steps steps) throws Exception {
        TopicPartition partition = new TopicPartition(given.topic, 0);
        whileOpen(bootstrap, given, admin -> steps.report(
                "producers",
                admin.describeProducers(List.of(partition)).partitionResult(partition).get().activeProducers().size()));
    }
}
