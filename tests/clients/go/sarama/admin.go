package main

import (
	"strconv"

	"github.com/IBM/sarama"

	. "sluice/tests/clients/driver"
)

var adminVerbs = map[string]func(*Call){
	"topics":                    with(topics),
	"create_partitions":         with(createPartitions),
	"topic_configs":             with(topicConfigs),
	"broker_configs":            with(brokerConfigs),
	"incremental_alter_configs": with(incrementalAlterConfigs),
	"alter_configs":             with(alterConfigs),
	"delete_records":            with(deleteRecords),
	"list_offsets":              with(listOffsets),
	"list_groups":               live(listGroups, nothing),
	"describe_group":            live(describeGroup, describeGroup),
	"delete_group":              live(deleteLive, deleteEmpty),
	"list_group_offsets":        live(listGroupOffsets, nothing),
	"alter_group_offsets":       live(nothing, alterGroupOffsets),
	"delete_group_offsets":      live(nothing, deleteGroupOffsets),
	"cluster":                   with(cluster),
	"client_quotas":             with(clientQuotas),
	"log_dirs":                  with(logDirs),
}

// verb adds an admin client.
type verb func(admin sarama.ClusterAdmin, call *Call)

func with(run verb) func(*Call) {
	return func(call *Call) {
		admin := Got(sarama.NewClusterAdmin(call.Brokers(), settings()))
		defer admin.Close()
		run(admin, call)
	}
}

func partitions(admin sarama.ClusterAdmin, topic string) int {
	return len(Got(admin.DescribeTopics([]string{topic}))[0].Partitions)
}

func topics(admin sarama.ClusterAdmin, call *Call) {
	detail := &sarama.TopicDetail{NumPartitions: call.Given.Partitions, ReplicationFactor: 1}
	listed := func() bool {
		_, found := Got(admin.ListTopics())[call.Given.Topic]
		return found
	}
	call.Report(Step{"created": code(admin.CreateTopic(call.Given.Topic, detail, false))})
	call.Report(Step{"created again": code(admin.CreateTopic(call.Given.Topic, detail, false))})
	call.Report(Step{"listed": Until(true, listed)})
	call.Report(Step{"partitions": partitions(admin, call.Given.Topic)})
	call.Report(Step{"deleted": code(admin.DeleteTopic(call.Given.Topic))})
	call.Report(Step{"listed": Until(false, listed)})
	call.Report(Step{"deleted again": code(admin.DeleteTopic(call.Given.Topic))})
}

func createPartitions(admin sarama.ClusterAdmin, call *Call) {
	wanted := call.Given.Partitions
	call.Report(Step{"error": code(admin.CreatePartitions(call.Given.Topic, wanted, nil, false))})
	count := func() int { return partitions(admin, call.Given.Topic) }
	call.Report(Step{"partitions": Until(int(wanted), count)})
	call.Report(Step{"error": code(admin.CreatePartitions(call.Given.Topic, wanted, nil, false))})
}

// configs returns the values of the named configs.
func configs(admin sarama.ClusterAdmin, kind sarama.ConfigResourceType, name string, names ...string) Step {
	step := Step{}
	for _, entry := range Got(admin.DescribeConfig(sarama.ConfigResource{Type: kind, Name: name, ConfigNames: names})) {
		step[entry.Name] = entry.Value
	}
	return step
}

func topicConfigs(admin sarama.ClusterAdmin, call *Call) {
	call.Report(configs(admin, sarama.TopicResource, call.Given.Topic, "retention.ms", "cleanup.policy"))
}

func brokerConfigs(admin sarama.ClusterAdmin, call *Call) {
	nodes, _, err := admin.DescribeCluster()
	Must(err)
	call.Report(configs(admin, sarama.BrokerResource, strconv.Itoa(int(nodes[0].ID())), "message.max.bytes"))
}

func untilRetention(admin sarama.ClusterAdmin, topic string, wanted string) string {
	return Until(wanted, func() string {
		return configs(admin, sarama.TopicResource, topic, "retention.ms")["retention.ms"].(string)
	})
}

func incrementalAlterConfigs(admin sarama.ClusterAdmin, call *Call) {
	for _, alteration := range []struct {
		operation sarama.IncrementalAlterConfigsOperation
		value     string
	}{
		{sarama.IncrementalAlterConfigsOperationSet, "5000"},
		{sarama.IncrementalAlterConfigsOperationDelete, "604800000"},
	} {
		entry := sarama.IncrementalAlterConfigsEntry{Operation: alteration.operation, Value: &alteration.value}
		wanted := map[string]sarama.IncrementalAlterConfigsEntry{"retention.ms": entry}
		Must(admin.IncrementalAlterConfig(sarama.TopicResource, call.Given.Topic, wanted, false))
		untilRetention(admin, call.Given.Topic, alteration.value)
		call.Report(configs(admin, sarama.TopicResource, call.Given.Topic, "retention.ms", "retention.bytes"))
	}
}

func alterConfigs(admin sarama.ClusterAdmin, call *Call) {
	value := "5000"
	wanted := map[string]*string{"retention.ms": &value}
	Must(admin.AlterConfig(sarama.TopicResource, call.Given.Topic, wanted, false))
	call.Report(Step{"retention.ms": untilRetention(admin, call.Given.Topic, value)})
}

// offset returns the ListOffsets result of partition 0 for a timestamp or a special timestamp.
func offset(admin sarama.ClusterAdmin, call *Call, timestamp int64) *sarama.OffsetResult {
	requested := map[string]map[int32]int64{call.Given.Topic: {0: timestamp}}
	found := Got(admin.ListOffsets(requested, nil))[call.Given.Topic][0]
	if code(found.Err) != 0 { // the library sets it even without an error
		panic(found.Err)
	}
	return found
}

// deleteRecords fetches the low watermark, which the library does not return.
func deleteRecords(admin sarama.ClusterAdmin, call *Call) {
	Must(admin.DeleteRecords(call.Given.Topic, map[int32]int64{0: call.Given.Count}))
	call.Report(Step{"low_watermark": offset(admin, call, sarama.OffsetOldest).Offset})
	call.Report(Step{"earliest": offset(admin, call, sarama.OffsetOldest).Offset})
}

func listOffsets(admin sarama.ClusterAdmin, call *Call) {
	call.Report(Step{
		"earliest":     offset(admin, call, sarama.OffsetOldest).Offset,
		"latest":       offset(admin, call, sarama.OffsetNewest).Offset,
		"by_timestamp": offset(admin, call, call.Given.Count).Offset,
	})
}

// live runs `during` while the group has a member with committed offset 3, and `after` when it has left.
func live(during verb, after verb) func(*Call) {
	return with(func(admin sarama.ClusterAdmin, call *Call) {
		inGroup(call, func(session sarama.ConsumerGroupSession, messages <-chan *sarama.ConsumerMessage) {
			next(messages)
			session.MarkOffset(call.Given.Topic, 0, 3, "")
			session.Commit()
			during(admin, call)
		})
		after(admin, call)
	})
}

func nothing(sarama.ClusterAdmin, *Call) {}

func listGroups(admin sarama.ClusterAdmin, call *Call) {
	_, listed := Got(admin.ListConsumerGroups())[call.Given.Group]
	call.Report(Step{"listed": listed})
}

func describeGroup(admin sarama.ClusterAdmin, call *Call) {
	group := Got(admin.DescribeConsumerGroups([]string{call.Given.Group}))[0]
	call.Report(Step{"state": group.State, "members": len(group.Members)})
}

func deleteLive(admin sarama.ClusterAdmin, call *Call) {
	call.Report(Step{"with a member": code(admin.DeleteConsumerGroup(call.Given.Group))})
}

func deleteEmpty(admin sarama.ClusterAdmin, call *Call) {
	call.Report(Step{"empty": code(admin.DeleteConsumerGroup(call.Given.Group))})
	call.Report(Step{"deleted": code(admin.DeleteConsumerGroup(call.Given.Group))})
}

// groupOffset returns the committed offset of partition 0.
func groupOffset(admin sarama.ClusterAdmin, call *Call) int64 {
	requested := map[string][]int32{call.Given.Topic: {0}}
	return Got(admin.ListConsumerGroupOffsets(call.Given.Group, requested)).GetBlock(call.Given.Topic, 0).Offset
}

func listGroupOffsets(admin sarama.ClusterAdmin, call *Call) {
	call.Report(Step{"offset": groupOffset(admin, call)})
}

func alterGroupOffsets(admin sarama.ClusterAdmin, call *Call) {
	wanted := map[string]map[int32]sarama.OffsetAndMetadata{call.Given.Topic: {0: {Offset: 7, LeaderEpoch: -1}}}
	Got(admin.AlterConsumerGroupOffsets(call.Given.Group, wanted, nil))
	listGroupOffsets(admin, call)
}

func deleteGroupOffsets(admin sarama.ClusterAdmin, call *Call) {
	call.Report(Step{"error": code(admin.DeleteConsumerGroupOffset(call.Given.Group, call.Given.Topic, 0))})
	left := 0
	if groupOffset(admin, call) >= 0 {
		left = 1
	}
	call.Report(Step{"left": left})
}

func cluster(admin sarama.ClusterAdmin, call *Call) {
	nodes, controllerID, err := admin.DescribeCluster()
	Must(err)
	controller := false
	for _, node := range nodes {
		controller = controller || node.ID() == controllerID
	}
	metadata := Got(Got(admin.Controller()).GetMetadata(sarama.NewMetadataRequest(sarama.MaxVersion, []string{})))
	call.Report(Step{"nodes": len(nodes), "controller": controller, "id": metadata.ClusterID != nil})
}

func clientQuotas(admin sarama.ClusterAdmin, call *Call) {
	entity := []sarama.QuotaEntityComponent{}
	filter := []sarama.QuotaFilterComponent{}
	for kind, name := range call.Given.Entity {
		of, match, exact := sarama.QuotaEntityType(kind), sarama.QuotaMatchDefault, ""
		if name != nil {
			match, exact = sarama.QuotaMatchExact, *name
		}
		entity = append(entity, sarama.QuotaEntityComponent{EntityType: of, MatchType: match, Name: exact})
		filter = append(filter, sarama.QuotaFilterComponent{EntityType: of, MatchType: match, Match: exact})
	}
	rate := func() any {
		for _, entry := range Got(admin.DescribeClientQuotas(filter, true)) {
			return entry.Values[call.Given.Key]
		}
		return nil
	}
	for _, wanted := range []any{1e6, nil} {
		op := sarama.ClientQuotasOp{Key: call.Given.Key, Value: 1e6, Remove: wanted == nil}
		Must(admin.AlterClientQuotas(entity, op, false))
		call.Report(Step{"rate": Until(wanted, rate)})
	}
}

func logDirs(admin sarama.ClusterAdmin, call *Call) {
	nodes, _, err := admin.DescribeCluster()
	Must(err)
	var ids []int32
	for _, node := range nodes {
		ids = append(ids, node.ID())
	}
	count := 0
	for _, directories := range Got(admin.DescribeLogDirs(ids)) {
		for _, directory := range directories {
			for _, topic := range directory.Topics {
				if topic.Topic == call.Given.Topic {
					count += len(topic.Partitions)
				}
			}
		}
	}
	call.Report(Step{"partitions": count})
}
