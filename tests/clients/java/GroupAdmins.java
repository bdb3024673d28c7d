import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

/** Admin calls about groups and their offsets. */
final class GroupAdmins {
    static void register(Map<String, Main.Verb> verbs) {
        verbs.put("list_groups", live(GroupAdmins::list, GroupAdmins::nothing));
        verbs.put("describe_group", live(GroupAdmins::describe, GroupAdmins::describe));
        verbs.put("delete_group", live(GroupAdmins::deleteLive, GroupAdmins::deleteEmpty));
        verbs.put("list_group_offsets", live(GroupAdmins::listOffsets, GroupAdmins::nothing));
        verbs.put("alter_group_offsets", live(GroupAdmins::nothing, GroupAdmins::alterOffsets));
        verbs.put("delete_group_offsets", live(GroupAdmins::nothing, GroupAdmins::deleteOffsets));
    }

    /** Runs `during` while the group has a member with committed offset 3, and `after` when it has left. */
    private static Main.Verb live(Admins.AdminVerb during, Admins.AdminVerb after) {
        return (bootstrap, given, steps) -> {
            try (Admin admin = Admin.create(Records.properties(bootstrap))) {
                try (KafkaConsumer<byte[], byte[]> consumer = Groups.consumer(bootstrap, given, null)) {
                    consumer.subscribe(List.of(given.topic));
                    Records.poll(consumer, 1);
                    consumer.commitSync(Map.of(partition(given), new OffsetAndMetadata(3)));
                    during.run(admin, given, steps);
                }
                after.run(admin, given, steps);
            }
        };
    }

    private static TopicPartition partition(Given given) {
        return new TopicPartition(given.topic, 0);
    }

    private static void nothing(Admin admin, Given given, Main.Steps steps) {}

    @SuppressWarnings("removal") // 3.9 has no replacement
    private static void list(Admin admin, Given given, Main.Steps steps) throws Exception {
        steps.report("listed", admin.listConsumerGroups().all().get().stream()
                .anyMatch(listing -> listing.groupId().equals(given.group)));
    }

    @SuppressWarnings("removal") // 3.9 has no replacement
    private static void describe(Admin admin, Given given, Main.Steps steps) throws Exception {
        ConsumerGroupDescription group =
                admin.describeConsumerGroups(List.of(given.group)).all().get().get(given.group);
        steps.report("state", group.state().toString(), "members", group.members().size());
    }

    private static int delete(Admin admin, Given given) throws Exception {
        return Admins.error(admin.deleteConsumerGroups(List.of(given.group)).all());
    }

    private static void deleteLive(Admin admin, Given given, Main.Steps steps) throws Exception {
        steps.report("with a member", delete(admin, given));
    }

    private static void deleteEmpty(Admin admin, Given given, Main.Steps steps) throws Exception {
        steps.report("empty", delete(admin, given));
        steps.report("deleted", delete(admin, given));
    }

    private static Map<TopicPartition, OffsetAndMetadata> offsets(Admin admin, Given given) throws Exception {
        return admin.listConsumerGroupOffsets(given.group).partitionsToOffsetAndMetadata().get();
    }

    private static void listOffsets(Admin admin, Given given, Main.Steps steps) throws Exception {
        steps.report("offset", offsets(admin, given).get(partition(given)).offset());
    }

    private static void alterOffsets(Admin admin, Given given, Main.Steps steps) throws Exception {
        Map<TopicPartition, OffsetAndMetadata> wanted = Map.of(partition(given), new OffsetAndMetadata(7));
        admin.alterConsumerGroupOffsets(given.group, wanted).all().get();
        listOffsets(admin, given, steps);
    }

    private static void deleteOffsets(Admin admin, Given given, Main.Steps steps) throws Exception {
        steps.report("error", Admins.error(admin.deleteConsumerGroupOffsets(given.group, Set.of(partition(given))).all()));
        steps.report("left", offsets(admin, given).size());
    }
}
