// Command franz is the franz-go driver: producing, reading, transactions, groups.
package main

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	. "sluice/tests/clients/driver"
)

func main() {
	verbs := map[string]func(*Call){
		"produce":               produce,
		"read":                  read,
		"oversize":              oversize,
		"transactions":          transactions,
		"fence":                 fence,
		"transactional_offsets": transactionalOffsets,
		"rebalance":             func(call *Call) { Rebalance(call, joining(call)) },
		"static":                func(call *Call) { RestartStaticMember(call, joining(call)) },
		"resume":                resume,
		"share":                 share,
	}
	verbs["work"] = workOn
	for name, verb := range adminVerbs {
		verbs[name] = verb
	}
	Serve("github.com/twmb/franz-go", verbs)
}

func within() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), Timeout)
}

// connection has the address and the login.
func connection(call *Call) []kgo.Opt {
	options := []kgo.Opt{kgo.SeedBrokers(call.Brokers()...)}
	login := CurrentLogin()
	if login == nil {
		return options
	}
	mechanism := scram.Auth{User: login.User, Pass: login.Password}.AsSha512Mechanism()
	if login.Mechanism == "PLAIN" {
		mechanism = plain.Auth{User: login.User, Pass: login.Password}.AsMechanism()
	}
	return append(options, kgo.DialTLSConfig(login.TLS()), kgo.SASL(mechanism))
}

func client(call *Call, options ...kgo.Opt) *kgo.Client {
	options = append(options, connection(call)...)
	options = append(options, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	return Got(kgo.NewClient(options...))
}

// records assigns the rows to the partitions in turn.
func records(topic string, rows []Row, partitions int32) []*kgo.Record {
	var found []*kgo.Record
	for number, row := range rows {
		record := &kgo.Record{
			Topic:     topic,
			Partition: int32(number) % partitions,
			Key:       row.Key,
			Value:     row.Value,
			Timestamp: time.UnixMilli(row.Timestamp),
		}
		for _, header := range row.Headers {
			record.Headers = append(record.Headers, kgo.RecordHeader{Key: header.Name, Value: header.Value})
		}
		found = append(found, record)
	}
	return found
}

var acks = map[string]kgo.Acks{"0": kgo.NoAck(), "1": kgo.LeaderAck(), "all": kgo.AllISRAcks()}

var codecs = map[string]kgo.CompressionCodec{
	"none":   kgo.NoCompression(),
	"gzip":   kgo.GzipCompression(),
	"snappy": kgo.SnappyCompression(),
	"lz4":    kgo.Lz4Compression(),
	"zstd":   kgo.ZstdCompression(),
}

func produce(call *Call) {
	options := []kgo.Opt{
		kgo.RequiredAcks(acks[call.Given.Acks]),
		kgo.ProducerBatchCompression(codecs[call.Given.Compression]),
		kgo.AllowAutoTopicCreation(),
	}
	if !call.Given.Idempotent {
		options = append(options, kgo.DisableIdempotentWrite())
	}
	producer := client(call, options...)
	defer producer.Close()
	ctx, cancel := within()
	defer cancel()
	Must(producer.ProduceSync(ctx, records(call.Given.Topic, call.Given.Rows, call.Given.Partitions)...).FirstErr())
	call.Report(Step{"sent": len(call.Given.Rows)})
}

// poll returns the next `count` records.
func poll(consumer interface {
	PollRecords(context.Context, int) kgo.Fetches
}, count int64) []*kgo.Record {
	ctx, cancel := within()
	defer cancel()
	var found []*kgo.Record
	for int64(len(found)) < count {
		fetches := consumer.PollRecords(ctx, int(count)-len(found))
		Must(fetches.Err())
		found = append(found, fetches.Records()...)
	}
	return found
}

func read(call *Call) {
	isolation := kgo.ReadUncommitted()
	if call.Given.Isolation == "read_committed" {
		isolation = kgo.ReadCommitted()
	}
	consumer := client(call, kgo.FetchIsolationLevel(isolation), kgo.ConsumePartitions(
		map[string]map[int32]kgo.Offset{call.Given.Topic: {0: kgo.NewOffset().AtStart()}}))
	defer consumer.Close()
	rows := []Row{}
	for _, record := range poll(consumer, call.Given.Count) {
		row := Row{Key: record.Key, Value: record.Value, Headers: []Header{}, Timestamp: record.Timestamp.UnixMilli()}
		for _, header := range record.Headers {
			row.Headers = append(row.Headers, Header{Name: header.Key, Value: header.Value})
		}
		rows = append(rows, row)
	}
	call.Report(Step{"rows": rows})
}

// code returns the broker's error code; 0 for nil.
func code(err error) int16 {
	var known *kerr.Error
	if errors.As(err, &known) {
		return known.Code
	}
	Must(err)
	return 0
}

func oversize(call *Call) {
	producer := client(call, kgo.ProducerBatchCompression(kgo.NoCompression()))
	defer producer.Close()
	ctx, cancel := within()
	defer cancel()
	err := producer.ProduceSync(ctx, &kgo.Record{Topic: call.Given.Topic, Value: make([]byte, call.Given.Size)}).FirstErr()
	call.Report(Step{"error": code(err)})
}

func transactional(call *Call) *kgo.Client {
	return client(call, kgo.TransactionalID(call.Given.TransactionalID))
}

func transactions(call *Call) {
	producer := transactional(call)
	defer producer.Close()
	ctx, cancel := within()
	defer cancel()
	for _, round := range call.Given.Rounds {
		Must(producer.BeginTransaction())
		Must(producer.ProduceSync(ctx, records(call.Given.Topic, round.Rows, 1)...).FirstErr())
		Must(producer.EndTransaction(ctx, kgo.TransactionEndTry(round.End == "commit")))
		call.Report(Step{"end": round.End})
	}
}

func fence(call *Call) {
	first, second := transactional(call), transactional(call)
	defer first.Close()
	defer second.Close()
	ctx, cancel := within()
	defer cancel()
	Must(first.BeginTransaction())
	Must(first.ProduceSync(ctx, &kgo.Record{Topic: call.Given.Topic, Value: []byte("first")}).FirstErr())
	// Its first send gets a producer id from the transaction coordinator, which fences the first producer.
	Must(second.BeginTransaction())
	Must(second.ProduceSync(ctx, &kgo.Record{Topic: call.Given.Topic, Value: []byte("second")}).FirstErr())
	err := first.EndTransaction(ctx, kgo.TryCommit)
	Must(second.EndTransaction(ctx, kgo.TryAbort))
	call.Report(Step{"fenced": errors.Is(err, kerr.ProducerFenced) || errors.Is(err, kerr.InvalidProducerEpoch)})
}

// transactionalOffsets uses the library's group transact session.
func transactionalOffsets(call *Call) {
	options := append(groupOptions(call, ""), connection(call)...)
	options = append(options,
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.TransactionalID(call.Given.TransactionalID),
		kgo.RequireStableFetchOffsets())
	session := Got(kgo.NewGroupTransactSession(options...))
	defer session.Close()
	ctx, cancel := within()
	defer cancel()
	for _, end := range []string{"commit", "abort"} {
		Must(session.Begin())
		for _, record := range poll(session, 3) {
			Must(session.ProduceSync(ctx, &kgo.Record{Topic: call.Given.Output, Value: record.Value}).FirstErr())
		}
		Got(session.End(ctx, kgo.TransactionEndTry(end == "commit")))
		call.Report(Step{"after_" + end: groupOffset(call)})
	}
}

// groupOptions: a member of the classic protocol notices a rebalance early.
func groupOptions(call *Call, instanceID string) []kgo.Opt {
	options := []kgo.Opt{
		kgo.ConsumerGroup(call.Given.Group),
		kgo.ConsumeTopics(call.Given.Topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
	}
	if instanceID != "" {
		options = append(options, kgo.InstanceID(instanceID))
	}
	if call.Given.Protocol == "consumer" {
		return append(options, kgo.ServerSideBalancer(), kgo.Balancers(kgo.StickyBalancer()))
	}
	balancer := kgo.RangeBalancer()
	if call.Given.Assignor == "cooperative-sticky" {
		balancer = kgo.CooperativeStickyBalancer()
	}
	return append(options, kgo.Balancers(balancer), kgo.HeartbeatInterval(100*time.Millisecond))
}

type member struct {
	*kgo.Client
	holding Holding
}

func (m *member) Holding() *Holding { return &m.holding }

func joining(call *Call) func(string) Member {
	return func(instanceID string) Member {
		joined := &member{}
		gained := func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
			joined.holding.Gain(partitions[call.Given.Topic])
		}
		lost := func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
			joined.holding.Lose(partitions[call.Given.Topic])
		}
		joined.Client = client(call, append(groupOptions(call, instanceID),
			kgo.OnPartitionsAssigned(gained), kgo.OnPartitionsRevoked(lost), kgo.OnPartitionsLost(lost))...)
		return joined
	}
}

func resume(call *Call) {
	for _, name := range []string{"first", "resumed"} {
		consumer := client(call, groupOptions(call, "")...)
		values := []string{}
		found := poll(consumer, 5)
		for _, record := range found {
			values = append(values, string(record.Value))
		}
		ctx, cancel := within()
		Must(consumer.CommitRecords(ctx, found...))
		cancel()
		consumer.Close()
		call.Report(Step{name: values})
	}
}
