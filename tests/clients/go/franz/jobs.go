package main

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	. "sluice/tests/clients/driver"
)

func duration(option func(time.Duration) kgo.Opt) func(any) kgo.Opt {
	return func(value any) kgo.Opt { return option(MS(value.(float64))) }
}

func producing(option func(time.Duration) kgo.ProducerOpt) func(any) kgo.Opt {
	return func(value any) kgo.Opt { return option(MS(value.(float64))) }
}

func grouping(option func(time.Duration) kgo.GroupOpt) func(any) kgo.Opt {
	return func(value any) kgo.Opt { return option(MS(value.(float64))) }
}

var balancers = map[string]kgo.GroupBalancer{
	"range":              kgo.RangeBalancer(),
	"roundrobin":         kgo.RoundRobinBalancer(),
	"sticky":             kgo.StickyBalancer(),
	"cooperative-sticky": kgo.CooperativeStickyBalancer(),
}

// optionOf has the options of the lint matrix; durations are in milliseconds.
var optionOf = map[string]func(any) kgo.Opt{
	"AutoCommitInterval":     grouping(kgo.AutoCommitInterval),
	"Balancers":              func(value any) kgo.Opt { return kgo.Balancers(balancers[value.(string)]) },
	"ConnIdleTimeout":        duration(kgo.ConnIdleTimeout),
	"DisableIdempotentWrite": func(any) kgo.Opt { return kgo.DisableIdempotentWrite() },
	"FetchIsolationLevel": func(value any) kgo.Opt {
		if value == "read_committed" {
			return kgo.FetchIsolationLevel(kgo.ReadCommitted())
		}
		return kgo.FetchIsolationLevel(kgo.ReadUncommitted())
	},
	"FetchMaxBytes":          func(value any) kgo.Opt { return kgo.FetchMaxBytes(int32(value.(float64))) },
	"FetchMaxPartitionBytes": func(value any) kgo.Opt { return kgo.FetchMaxPartitionBytes(int32(value.(float64))) },
	"FetchMaxWait":           func(value any) kgo.Opt { return kgo.FetchMaxWait(MS(value.(float64))) },
	"FetchMinBytes":          func(value any) kgo.Opt { return kgo.FetchMinBytes(int32(value.(float64))) },
	"HeartbeatInterval":      grouping(kgo.HeartbeatInterval),
	"MaxProduceRequestsInflightPerBroker": func(value any) kgo.Opt {
		return kgo.MaxProduceRequestsInflightPerBroker(int(value.(float64)))
	},
	"MetadataMaxAge":        duration(kgo.MetadataMaxAge),
	"MetadataMinAge":        duration(kgo.MetadataMinAge),
	"ProduceRequestTimeout": producing(kgo.ProduceRequestTimeout),
	"ProducerBatchCompression": func(value any) kgo.Opt {
		return kgo.ProducerBatchCompression(codecs[value.(string)])
	},
	"ProducerBatchMaxBytes":  func(value any) kgo.Opt { return kgo.ProducerBatchMaxBytes(int32(value.(float64))) },
	"ProducerLinger":         producing(kgo.ProducerLinger),
	"RebalanceTimeout":       grouping(kgo.RebalanceTimeout),
	"RecordDeliveryTimeout":  producing(kgo.RecordDeliveryTimeout),
	"RecordRetries":          func(value any) kgo.Opt { return kgo.RecordRetries(int(value.(float64))) },
	"RequestRetries":         func(value any) kgo.Opt { return kgo.RequestRetries(int(value.(float64))) },
	"RequestTimeoutOverhead": duration(kgo.RequestTimeoutOverhead),
	"RequiredAcks": func(value any) kgo.Opt {
		return kgo.RequiredAcks(acks[value.(string)])
	},
	"RetryBackoffFn": func(value any) kgo.Opt {
		return kgo.RetryBackoffFn(func(int) time.Duration { return MS(value.(float64)) })
	},
	"SessionTimeout":      grouping(kgo.SessionTimeout),
	"TransactionTimeout":  producing(kgo.TransactionTimeout),
	"UnknownTopicRetries": func(value any) kgo.Opt { return kgo.UnknownTopicRetries(int(value.(float64))) },
}

func opened(call *Call, settings map[string]any, options ...kgo.Opt) *kgo.Client {
	options = append(options, connection(call)...)
	options = append(options, kgo.AllowAutoTopicCreation())
	if call.Given.Job.ClientID != "" {
		options = append(options, kgo.ClientID(call.Given.Job.ClientID))
	}
	for name, value := range settings {
		options = append(options, optionOf[name](value))
	}
	return Got(kgo.NewClient(options...))
}

func workOn(call *Call) {
	switch call.Given.Job.Role {
	case "produce":
		produceBursts(call)
	case "consume":
		call.Given.Job.Lifetimes(func(until time.Time) { consumeUntil(call, until) })
	default:
		copyRecords(call)
	}
}

func sendBurst(ctx context.Context, producer *kgo.Client, job *Job, burst int) {
	var records []*kgo.Record
	for number := burst * job.Records; number < (burst+1)*job.Records; number++ {
		record := &kgo.Record{
			Topic:     job.Topics[number%len(job.Topics)],
			Key:       job.KeyOf(number),
			Value:     job.ValueOf(number),
			Timestamp: job.Timestamp(),
		}
		if job.WaitEach {
			Must(producer.ProduceSync(ctx, record).FirstErr())
		} else {
			records = append(records, record)
		}
	}
	if job.Wait {
		Must(producer.ProduceSync(ctx, records...).FirstErr())
		return
	}
	for _, record := range records {
		producer.Produce(ctx, record, nil)
	}
}

func produceBursts(call *Call) {
	ctx, job := context.Background(), &call.Given.Job
	options := []kgo.Opt{}
	if job.TransactionalID != "" {
		options = append(options, kgo.TransactionalID(job.TransactionalID))
	}
	end := kgo.TryCommit
	if job.Abort {
		end = kgo.TryAbort
	}
	for from := 0; from < job.Bursts; from += job.Share() {
		producer := opened(call, job.Settings, options...)
		for burst := from; burst < from+job.Share(); burst++ {
			if job.TransactionalID != "" {
				Must(producer.BeginTransaction())
			}
			sendBurst(ctx, producer, job, burst)
			if job.TransactionalID != "" {
				time.Sleep(MS(job.HoldMS))
				Must(producer.EndTransaction(ctx, end))
			}
			time.Sleep(MS(job.EveryMS))
		}
		Must(producer.Flush(ctx))
		producer.Close()
	}
}

func consuming(job *Job) []kgo.Opt {
	options := []kgo.Opt{kgo.ConsumeTopics(job.Topics...)}
	if job.Group == "" {
		return options
	}
	options = append(options, kgo.ConsumerGroup(job.Group))
	if job.Commit != "auto" || job.Role == "copy" {
		options = append(options, kgo.DisableAutoCommit())
	}
	if job.InstanceID != "" {
		options = append(options, kgo.InstanceID(job.InstanceID))
	}
	return options
}

func consumeUntil(call *Call, until time.Time) {
	job := &call.Given.Job
	consumer := opened(call, job.Settings, consuming(job)...)
	if job.Leave {
		defer consumer.Close()
	}
	for time.Now().Before(until) {
		ctx, cancel := context.WithTimeout(context.Background(), MS(job.PollMS))
		records := consumer.PollRecords(ctx, job.Most).Records()
		cancel()
		commitPolled(consumer, job, records)
		job.Rest(len(records))
		if job.NewClient {
			break
		}
	}
}

func commitPolled(consumer *kgo.Client, job *Job, records []*kgo.Record) {
	if job.Group == "" {
		return
	}
	for _, apart := range OffsetsApart[job.Commit] {
		last := map[string]map[int32]kgo.EpochOffset{}
		for number, record := range records {
			if last[record.Topic] == nil {
				last[record.Topic] = map[int32]kgo.EpochOffset{}
			}
			last[record.Topic][record.Partition] = kgo.EpochOffset{Epoch: -1, Offset: max(0, record.Offset+1+apart)}
			if job.Commit == "record" || number == len(records)-1 {
				consumer.CommitOffsetsSync(context.Background(), last, nil)
				last = map[string]map[int32]kgo.EpochOffset{}
			}
		}
	}
}

func copyRecords(call *Call) {
	job := &call.Given.Job
	options := append(consuming(job), kgo.TransactionalID(job.TransactionalID), kgo.RequireStableFetchOffsets())
	for name, value := range job.OutputSettings {
		options = append(options, optionOf[name](value))
	}
	options = append(options, connection(call)...)
	options = append(options, kgo.AllowAutoTopicCreation())
	if job.ClientID != "" {
		options = append(options, kgo.ClientID(job.ClientID))
	}
	for name, value := range job.Settings {
		options = append(options, optionOf[name](value))
	}
	session := Got(kgo.NewGroupTransactSession(options...))
	defer session.Close()
	ends := time.Now().Add(MS(job.ForMS))
	for time.Now().Before(ends) {
		ctx, cancel := context.WithTimeout(context.Background(), MS(job.PollMS))
		read := session.PollRecords(ctx, job.Most).Records()
		cancel()
		if len(read) > 0 {
			Must(session.Begin())
			for _, record := range read {
				session.Produce(context.Background(), &kgo.Record{Topic: job.Output, Value: record.Value}, nil)
			}
			time.Sleep(MS(job.HoldMS))
			Got(session.End(context.Background(), kgo.TryCommit))
		}
		job.Rest(len(read))
	}
}
