import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.DescribeClusterResult;
import org.apache.kafka.clients.admin.ListOffsetsResult.ListOffsetsResultInfo;
import org.apache.kafka.clients.admin.LogDirDescription;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.quota.ClientQuotaFilter;
import org.apache.kafka.common.quota.ClientQuotaFilterComponent;

/** Admin calls about topics, configs, records, quotas and the cluster. */
final class Admins {
    /** A verb with its own admin client. */
    interface AdminVerb {
        void run(Admin admin, Given given, Main.Steps steps) throws Exception;
    }

    static Main.Verb with(AdminVerb verb) {
        return (bootstrap, given, steps) -> {
            try (Admin admin = Admin.create(Records.properties(bootstrap))) {
                verb.run(admin, given, steps);
            }
        };
    }

    static void register(Map<String, Main.Verb> verbs) {
        verbs.put("topics", with(Admins::topics));
        verbs.put("create_partitions", with(Admins::createPartitions));
        verbs.put("topic_configs", with(Admins::topicConfigs));
        verbs.put("broker_configs", with(Admins::brokerConfigs));
        verbs.put("incremental_alter_configs", with(Admins::incrementalAlterConfigs));
        verbs.put("alter_configs", with(Admins::alterConfigs));
        verbs.put("delete_records", with(Admins::deleteRecords));
        verbs.put("list_offsets", with(Admins::listOffsets));
        verbs.put("max_timestamp", with(Admins::maxTimestamp));
        verbs.put("client_quotas", with(Admins::clientQuotas));
        verbs.put("cluster", with(Admins::cluster));
        verbs.put("log_dirs", with(Admins::logDirs));
    }

    /** Returns the error code of a call; 0 if it succeeded. */
    static int error(KafkaFuture<?> future) throws InterruptedException {
        try {
            future.get();
            return 0;
        } catch (ExecutionException failure) {
            return Errors.forException(failure.getCause()).code();
        }
    }

    /** A state that a broker may reach a moment later. */
    interface Question<T> {
        T fetch() throws Exception;
    }

    static <T> T until(Question<T> question, T wanted) throws Exception {
        long deadline = System.nanoTime() + Records.TIMEOUT.toNanos() / 3;
        T result = question.fetch();
        while (!result.equals(wanted) && System.nanoTime() < deadline) {
            Thread.sleep(50);
            result = question.fetch();
        }
        return result;
    }

    private static int partitions(Admin admin, String topic) throws Exception {
        return admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().size();
    }

    private static void topics(Admin admin, Given given, Main.Steps steps) throws Exception {
        List<NewTopic> wanted = List.of(new NewTopic(given.topic, given.partitions, (short) 1));
        Question<Boolean> listed = () -> admin.listTopics().names().get().contains(given.topic);
        steps.report("created", error(admin.createTopics(wanted).all()));
        steps.report("created again", error(admin.createTopics(wanted).all()));
        steps.report("listed", until(listed, true));
        steps.report("partitions", partitions(admin, given.topic));
        steps.report("deleted", error(admin.deleteTopics(List.of(given.topic)).all()));
        steps.report("listed", until(listed, false));
        steps.report("deleted again", error(admin.deleteTopics(List.of(given.topic)).all()));
    }

    private static void createPartitions(Admin admin, Given given, Main.Steps steps) throws Exception {
        Map<String, NewPartitions> wanted = Map.of(given.topic, NewPartitions.increaseTo(given.partitions));
        steps.report("error", error(admin.createPartitions(wanted).all()));
        steps.report("partitions", until(() -> partitions(admin, given.topic), given.partitions));
        steps.report("error", error(admin.createPartitions(wanted).all()));
    }

    private static ConfigResource topic(Given given) {
        return new ConfigResource(ConfigResource.Type.TOPIC, given.topic);
    }

    private static String config(Admin admin, ConfigResource resource, String name) throws Exception {
        return admin.describeConfigs(List.of(resource)).all().get().get(resource).get(name).value();
    }

    private static void topicConfigs(Admin admin, Given given, Main.Steps steps) throws Exception {
        steps.report(
                "retention.ms", config(admin, topic(given), "retention.ms"),
                "cleanup.policy", config(admin, topic(given), "cleanup.policy"));
    }

    private static void brokerConfigs(Admin admin, Given given, Main.Steps steps) throws Exception {
        String node = admin.describeCluster().nodes().get().iterator().next().idString();
        ConfigResource broker = new ConfigResource(ConfigResource.Type.BROKER, node);
        steps.report("message.max.bytes", config(admin, broker, "message.max.bytes"));
    }

    private static void alter(Admin admin, Given given, AlterConfigOp.OpType operation, String value) throws Exception {
        Collection<AlterConfigOp> operations =
                List.of(new AlterConfigOp(new ConfigEntry("retention.ms", value), operation));
        admin.incrementalAlterConfigs(Map.of(topic(given), operations)).all().get();
    }

    private static void incrementalAlterConfigs(Admin admin, Given given, Main.Steps steps) throws Exception {
        Question<String> retention = () -> config(admin, topic(given), "retention.ms");
        alter(admin, given, AlterConfigOp.OpType.SET, "5000");
        String altered = until(retention, "5000");
        steps.report("retention.ms", altered, "retention.bytes", config(admin, topic(given), "retention.bytes"));
        alter(admin, given, AlterConfigOp.OpType.DELETE, null);
        String deleted = until(retention, "604800000");
        steps.report("retention.ms", deleted, "retention.bytes", config(admin, topic(given), "retention.bytes"));
    }

    /** The client has no alterConfigs since 4.0, so it is called by reflection. */
    private static void alterConfigs(Admin admin, Given given, Main.Steps steps) throws Exception {
        Config wanted = new Config(List.of(new ConfigEntry("retention.ms", "5000")));
        Admin.class.getMethod("alterConfigs", Map.class).invoke(admin, Map.of(topic(given), wanted));
        steps.report("retention.ms", until(() -> config(admin, topic(given), "retention.ms"), "5000"));
    }

    private static ListOffsetsResultInfo offset(Admin admin, Given given, OffsetSpec spec) throws Exception {
        TopicPartition partition = new TopicPartition(given.topic, 0);
        return admin.listOffsets(Map.of(partition, spec)).partitionResult(partition).get();
    }

    private static void deleteRecords(Admin admin, Given given, Main.Steps steps) throws Exception {
        TopicPartition partition = new TopicPartition(given.topic, 0);
        Map<TopicPartition, RecordsToDelete> wanted = Map.of(partition, RecordsToDelete.beforeOffset(given.count));
        steps.report("low_watermark", admin.deleteRecords(wanted).lowWatermarks().get(partition).get().lowWatermark());
        steps.report("earliest", offset(admin, given, OffsetSpec.earliest()).offset());
    }

    private static void listOffsets(Admin admin, Given given, Main.Steps steps) throws Exception {
        steps.report(
                "earliest", offset(admin, given, OffsetSpec.earliest()).offset(),
                "latest", offset(admin, given, OffsetSpec.latest()).offset(),
                "by_timestamp", offset(admin, given, OffsetSpec.forTimestamp(given.count)).offset());
    }

    private static void maxTimestamp(Admin admin, Given given, Main.Steps steps) throws Exception {
        ListOffsetsResultInfo found = offset(admin, given, OffsetSpec.maxTimestamp());
        steps.report("offset", found.offset(), "timestamp", found.timestamp());
    }

    private static void clientQuotas(Admin admin, Given given, Main.Steps steps) throws Exception {
        ClientQuotaEntity entity = new ClientQuotaEntity(given.entity);
        List<ClientQuotaFilterComponent> components = new ArrayList<>();
        given.entity.forEach((type, name) -> components.add(
                name == null
                        ? ClientQuotaFilterComponent.ofDefaultEntity(type)
                        : ClientQuotaFilterComponent.ofEntity(type, name)));
        ClientQuotaFilter filter = ClientQuotaFilter.containsOnly(components);
        for (Double rate : new Double[] {1e6, null}) {
            ClientQuotaAlteration.Op set = new ClientQuotaAlteration.Op(given.key, rate);
            admin.alterClientQuotas(List.of(new ClientQuotaAlteration(entity, List.of(set)))).all().get();
            boolean present = until(
                    () -> admin.describeClientQuotas(filter).entities().get().containsKey(entity), rate != null);
            Map<String, Double> quotas = admin.describeClientQuotas(filter).entities().get().get(entity);
            steps.report("rate", present ? quotas.get(given.key) : null);
        }
    }

    private static void cluster(Admin admin, Given given, Main.Steps steps) throws Exception {
        DescribeClusterResult cluster = admin.describeCluster();
        Collection<Node> nodes = cluster.nodes().get();
        steps.report(
                "nodes", nodes.size(),
                "controller", nodes.contains(cluster.controller().get()),
                "id", !cluster.clusterId().get().isEmpty());
    }

    private static void logDirs(Admin admin, Given given, Main.Steps steps) throws Exception {
        List<Integer> nodes = admin.describeCluster().nodes().get().stream().map(Node::id).collect(Collectors.toList());
        long partitions = 0;
        for (Map<String, LogDirDescription> directories : admin.describeLogDirs(nodes).allDescriptions().get().values()) {
            for (LogDirDescription directory : directories.values()) {
                partitions += directory.replicaInfos().keySet().stream()
                        .filter(partition -> partition.topic().equals(given.topic))
                        .count();
            }
        }
        steps.report("partitions", partitions);
    }
}
