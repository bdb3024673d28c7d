package main

import (
	"context"
	"strconv"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

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
	"max_timestamp":             with(maxTimestamp),
	"list_groups":               live(listGroups, nothing),
	"describe_group":            live(describeGroup, describeGroup),
	"delete_group":              live(deleteLive, deleteEmpty),
	"list_group_offsets":        live(listGroupOffsets, nothing),
	"alter_group_offsets":       live(nothing, alterGroupOffsets),
	"delete_group_offsets":      live(nothing, deleteGroupOffsets),
	"cluster":                   with(cluster),
	"client_quotas":             with(clientQuotas),
	"list_transactions":         whileOpen(listTransactions),
	"describe_transaction":      whileOpen(describeTransaction),
	"describe_producers":        whileOpen(describeProducers),
	"log_dirs":                  with(logDirs),
}

// verb adds an admin client and a context with a timeout.
type verb func(ctx context.Context, admin *kadm.Client, call *Call)

func with(run verb) func(*Call) {
	return func(call *Call) {
		admin := kadm.NewClient(client(call))
		defer admin.Close()
		ctx, cancel := within()
		defer cancel()
		run(ctx, admin, call)
	}
}

func partitions(ctx context.Context, admin *kadm.Client, topic string) int {
	return len(Got(admin.ListTopics(ctx, topic))[topic].Partitions)
}

func topics(ctx context.Context, admin *kadm.Client, call *Call) {
	create := func() int16 {
		_, err := admin.CreateTopic(ctx, call.Given.Partitions, 1, nil, call.Given.Topic)
		return code(err)
	}
	remove := func() int16 {
		_, err := admin.DeleteTopic(ctx, call.Given.Topic)
		return code(err)
	}
	listed := func() bool { return Got(admin.ListTopics(ctx)).Has(call.Given.Topic) }
	call.Report(Step{"created": create()})
	call.Report(Step{"created again": create()})
	call.Report(Step{"listed": Until(true, listed)})
	call.Report(Step{"partitions": partitions(ctx, admin, call.Given.Topic)})
	call.Report(Step{"deleted": remove()})
	call.Report(Step{"listed": Until(false, listed)})
	call.Report(Step{"deleted again": remove()})
}

func createPartitions(ctx context.Context, admin *kadm.Client, call *Call) {
	grow := func() int16 {
		return code(Got(admin.UpdatePartitions(ctx, int(call.Given.Partitions), call.Given.Topic)).Error())
	}
	call.Report(Step{"error": grow()})
	count := func() int { return partitions(ctx, admin, call.Given.Topic) }
	call.Report(Step{"partitions": Until(int(call.Given.Partitions), count)})
	call.Report(Step{"error": grow()})
}

// configs returns the values of the named configs.
func configs(resource kadm.ResourceConfig, names ...string) Step {
	Must(resource.Err)
	step := Step{}
	for _, config := range resource.Configs {
		for _, name := range names {
			if config.Key == name {
				step[name] = config.MaybeValue()
			}
		}
	}
	return step
}

func configsOfTopic(ctx context.Context, admin *kadm.Client, topic string, names ...string) Step {
	return configs(Got(Got(admin.DescribeTopicConfigs(ctx, topic)).On(topic, nil)), names...)
}

func topicConfigs(ctx context.Context, admin *kadm.Client, call *Call) {
	call.Report(configsOfTopic(ctx, admin, call.Given.Topic, "retention.ms", "cleanup.policy"))
}

func brokerConfigs(ctx context.Context, admin *kadm.Client, call *Call) {
	node := Got(admin.BrokerMetadata(ctx)).Brokers[0].NodeID
	found := Got(Got(admin.DescribeBrokerConfigs(ctx, node)).On(strconv.Itoa(int(node)), nil))
	call.Report(configs(found, "message.max.bytes"))
}

func untilRetention(ctx context.Context, admin *kadm.Client, topic string, wanted string) string {
	return Until(wanted, func() string {
		return configsOfTopic(ctx, admin, topic, "retention.ms")["retention.ms"].(string)
	})
}

func incrementalAlterConfigs(ctx context.Context, admin *kadm.Client, call *Call) {
	for _, alteration := range []struct {
		op    kadm.IncrementalOp
		value string
	}{{kadm.SetConfig, "5000"}, {kadm.DeleteConfig, "604800000"}} {
		wanted := []kadm.AlterConfig{{Op: alteration.op, Name: "retention.ms", Value: &alteration.value}}
		Must(Got(Got(admin.AlterTopicConfigs(ctx, wanted, call.Given.Topic)).On(call.Given.Topic, nil)).Err)
		untilRetention(ctx, admin, call.Given.Topic, alteration.value)
		call.Report(configsOfTopic(ctx, admin, call.Given.Topic, "retention.ms", "retention.bytes"))
	}
}

func alterConfigs(ctx context.Context, admin *kadm.Client, call *Call) {
	value := "5000"
	wanted := []kadm.AlterConfig{{Name: "retention.ms", Value: &value}}
	Must(Got(Got(admin.AlterTopicConfigsState(ctx, wanted, call.Given.Topic)).On(call.Given.Topic, nil)).Err)
	call.Report(Step{"retention.ms": untilRetention(ctx, admin, call.Given.Topic, value)})
}

// offset returns the ListOffsets result of partition 0.
func offset(found kadm.ListedOffsets, call *Call) kadm.ListedOffset {
	listed, _ := found.Lookup(call.Given.Topic, 0)
	Must(listed.Err)
	return listed
}

func deleteRecords(ctx context.Context, admin *kadm.Client, call *Call) {
	wanted := kadm.Offsets{}
	wanted.AddOffset(call.Given.Topic, 0, call.Given.Count, -1)
	deleted, _ := Got(admin.DeleteRecords(ctx, wanted)).Lookup(call.Given.Topic, 0)
	Must(deleted.Err)
	call.Report(Step{"low_watermark": deleted.LowWatermark})
	call.Report(Step{"earliest": offset(Got(admin.ListStartOffsets(ctx, call.Given.Topic)), call).Offset})
}

func listOffsets(ctx context.Context, admin *kadm.Client, call *Call) {
	topic := call.Given.Topic
	call.Report(Step{
		"earliest":     offset(Got(admin.ListStartOffsets(ctx, topic)), call).Offset,
		"latest":       offset(Got(admin.ListEndOffsets(ctx, topic)), call).Offset,
		"by_timestamp": offset(Got(admin.ListOffsetsAfterMilli(ctx, call.Given.Count, topic)), call).Offset,
	})
}

func maxTimestamp(ctx context.Context, admin *kadm.Client, call *Call) {
	found := offset(Got(admin.ListMaxTimestampOffsets(ctx, call.Given.Topic)), call)
	call.Report(Step{"offset": found.Offset, "timestamp": found.Timestamp})
}

// live runs `during` while the group has a member with committed offset 3, and `after` when it has left.
func live(during verb, after verb) func(*Call) {
	return with(func(ctx context.Context, admin *kadm.Client, call *Call) {
		consumer := client(call, groupOptions(call, "")...)
		poll(consumer, 1)
		committed := map[string]map[int32]kgo.EpochOffset{call.Given.Topic: {0: {Epoch: -1, Offset: 3}}}
		consumer.CommitOffsetsSync(ctx, committed, nil)
		during(ctx, admin, call)
		consumer.Close()
		after(ctx, admin, call)
	})
}

func nothing(context.Context, *kadm.Client, *Call) {}

func listGroups(ctx context.Context, admin *kadm.Client, call *Call) {
	_, listed := Got(admin.ListGroups(ctx))[call.Given.Group]
	call.Report(Step{"listed": listed})
}

func describeGroup(ctx context.Context, admin *kadm.Client, call *Call) {
	if call.Given.Protocol == "consumer" {
		group := Got(admin.DescribeConsumerGroups(ctx, call.Given.Group))[call.Given.Group]
		Must(group.Err)
		call.Report(Step{"state": group.State, "members": len(group.Members)})
		return
	}
	group := Got(admin.DescribeGroups(ctx, call.Given.Group))[call.Given.Group]
	Must(group.Err)
	call.Report(Step{"state": group.State, "members": len(group.Members)})
}

func deleteGroup(ctx context.Context, admin *kadm.Client, call *Call) int16 {
	_, err := admin.DeleteGroup(ctx, call.Given.Group)
	return code(err)
}

func deleteLive(ctx context.Context, admin *kadm.Client, call *Call) {
	call.Report(Step{"with a member": deleteGroup(ctx, admin, call)})
}

func deleteEmpty(ctx context.Context, admin *kadm.Client, call *Call) {
	call.Report(Step{"empty": deleteGroup(ctx, admin, call)})
	call.Report(Step{"deleted": deleteGroup(ctx, admin, call)})
}

func listGroupOffsets(ctx context.Context, admin *kadm.Client, call *Call) {
	committed, _ := Got(admin.FetchOffsets(ctx, call.Given.Group)).Lookup(call.Given.Topic, 0)
	Must(committed.Err)
	call.Report(Step{"offset": committed.At})
}

// groupOffset returns the committed offset of partition 0.
func groupOffset(call *Call) (offset int64) {
	with(func(ctx context.Context, admin *kadm.Client, call *Call) {
		committed, _ := Got(admin.FetchOffsets(ctx, call.Given.Group)).Lookup(call.Given.Topic, 0)
		Must(committed.Err)
		offset = committed.At
	})(call)
	return offset
}

func alterGroupOffsets(ctx context.Context, admin *kadm.Client, call *Call) {
	wanted := kadm.Offsets{}
	wanted.AddOffset(call.Given.Topic, 0, 7, -1)
	Must(admin.CommitAllOffsets(ctx, call.Given.Group, wanted))
	listGroupOffsets(ctx, admin, call)
}

func deleteGroupOffsets(ctx context.Context, admin *kadm.Client, call *Call) {
	wanted := kadm.TopicsSet{}
	wanted.Add(call.Given.Topic, 0)
	deleted := Got(admin.DeleteOffsets(ctx, call.Given.Group, wanted))
	call.Report(Step{"error": code(deleted[call.Given.Topic][0])})
	call.Report(Step{"left": len(Got(admin.FetchOffsets(ctx, call.Given.Group)))})
}

func cluster(ctx context.Context, admin *kadm.Client, call *Call) {
	found := Got(admin.BrokerMetadata(ctx))
	controller := false
	for _, node := range found.Brokers.NodeIDs() {
		controller = controller || node == found.Controller
	}
	call.Report(Step{"nodes": len(found.Brokers), "controller": controller, "id": found.Cluster != ""})
}

func clientQuotas(ctx context.Context, admin *kadm.Client, call *Call) {
	entity := kadm.ClientQuotaEntity{}
	filter := []kadm.DescribeClientQuotaComponent{}
	for kind, name := range call.Given.Entity {
		match := kadm.QuotasMatchType(0) // this name
		if name == nil {
			match = 1 // the default entity
		}
		entity = append(entity, kadm.ClientQuotaEntityComponent{Type: kind, Name: name})
		filter = append(filter, kadm.DescribeClientQuotaComponent{Type: kind, MatchName: name, MatchType: match})
	}
	rate := func() any {
		for _, described := range Got(admin.DescribeClientQuotas(ctx, true, filter)) {
			for _, value := range described.Values {
				if value.Key == call.Given.Key {
					return value.Value
				}
			}
		}
		return nil
	}
	for _, wanted := range []any{1e6, nil} {
		op := kadm.AlterClientQuotaOp{Key: call.Given.Key, Value: 1e6, Remove: wanted == nil}
		entry := kadm.AlterClientQuotaEntry{Entity: entity, Ops: []kadm.AlterClientQuotaOp{op}}
		for _, altered := range Got(admin.AlterClientQuotas(ctx, []kadm.AlterClientQuotaEntry{entry})) {
			Must(altered.Err)
		}
		call.Report(Step{"rate": Until(wanted, rate)})
	}
}

// whileOpen makes a call while a transaction is open.
func whileOpen(run verb) func(*Call) {
	return with(func(ctx context.Context, admin *kadm.Client, call *Call) {
		producer := transactional(call)
		defer producer.Close()
		Must(producer.BeginTransaction())
		Must(producer.ProduceSync(ctx, &kgo.Record{Topic: call.Given.Topic, Value: []byte("v")}).FirstErr())
		run(ctx, admin, call)
		Must(producer.EndTransaction(ctx, kgo.TryAbort))
	})
}

func listTransactions(ctx context.Context, admin *kadm.Client, call *Call) {
	call.Report(Step{"state": Got(admin.ListTransactions(ctx, nil, nil))[call.Given.TransactionalID].State})
}

func describeTransaction(ctx context.Context, admin *kadm.Client, call *Call) {
	found := Got(admin.DescribeTransactions(ctx, call.Given.TransactionalID))[call.Given.TransactionalID]
	Must(found.Err)
	call.Report(Step{"state": found.State, "partitions": len(found.Topics.IntoList()[0].Partitions)})
}

func describeProducers(ctx context.Context, admin *kadm.Client, call *Call) {
	wanted := kadm.TopicsSet{}
	wanted.Add(call.Given.Topic, 0)
	found := Got(admin.DescribeProducers(ctx, wanted))[call.Given.Topic].Partitions[0]
	Must(found.Err)
	call.Report(Step{"producers": len(found.ActiveProducers)})
}

func logDirs(ctx context.Context, admin *kadm.Client, call *Call) {
	wanted := kadm.TopicsSet{}
	wanted.Add(call.Given.Topic, 0)
	count := 0
	for _, directories := range Got(admin.DescribeAllLogDirs(ctx, wanted)) {
		for _, directory := range directories {
			count += len(directory.Topics[call.Given.Topic])
		}
	}
	call.Report(Step{"partitions": count})
}
