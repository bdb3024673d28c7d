// Command franz is the driver of franz-go: a producer, a consumer, an admin client.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	. "sluice/audit/driver"
)

const (
	topic = "audit"
	group = "audit"
	// A Produce request may take this long at the broker; the client waits for it, and then for the overhead.
	produceTimeout = 100 * time.Millisecond
	leastMinAge    = 10 * time.Millisecond // that the client accepts
)

func main() {
	Run(func(ctx context.Context, job *Job) error {
		switch job.Workload.Type {
		case "produce":
			return produce(ctx, job)
		case "consume":
			return consume(ctx, job)
		default:
			return call(ctx, job)
		}
	})
}

func open(job *Job, more ...kgo.Opt) (*kgo.Client, error) {
	options := []kgo.Opt{kgo.SeedBrokers(job.Brokers()...), kgo.ClientID("audit-" + job.Role)}
	options = append(append(options, optionsOf(job.Settings)...), more...)
	client, err := kgo.NewClient(options...)
	if err != nil {
		return nil, Rejected{Err: err}
	}
	job.Event("ready", nil)
	return client, nil
}

var optionOf = map[string]func(any) kgo.Opt{
	"ConnIdleTimeout":       func(value any) kgo.Opt { return kgo.ConnIdleTimeout(Duration(value)) },
	"DialTimeout":           func(value any) kgo.Opt { return kgo.DialTimeout(Duration(value)) },
	"FetchMaxWait":          func(value any) kgo.Opt { return kgo.FetchMaxWait(Duration(value)) },
	"HeartbeatInterval":     func(value any) kgo.Opt { return kgo.HeartbeatInterval(Duration(value)) },
	"MetadataMaxAge":        func(value any) kgo.Opt { return kgo.MetadataMaxAge(Duration(value)) },
	"MetadataMinAge":        func(value any) kgo.Opt { return kgo.MetadataMinAge(max(Duration(value), leastMinAge)) },
	"ProducerLinger":        func(value any) kgo.Opt { return kgo.ProducerLinger(Duration(value)) },
	"RecordDeliveryTimeout": func(value any) kgo.Opt { return kgo.RecordDeliveryTimeout(Duration(value)) },
	"SessionTimeout":        func(value any) kgo.Opt { return kgo.SessionTimeout(Duration(value)) },
	"MaxProduceRequestsInflightPerBroker": func(value any) kgo.Opt {
		return kgo.MaxProduceRequestsInflightPerBroker(int(value.(float64)))
	},
	"RecordRetries": func(value any) kgo.Opt { return kgo.RecordRetries(int(value.(float64))) },
	"RequestTimeoutOverhead": func(value any) kgo.Opt {
		return kgo.RequestTimeoutOverhead(max(Duration(value)-produceTimeout, produceTimeout))
	},
}

// optionsOf returns the options for settings by their names; RetryBackoffFn has a base and a maximum.
func optionsOf(settings Settings) []kgo.Opt {
	options := []kgo.Opt{kgo.ProduceRequestTimeout(produceTimeout)}
	for name, value := range settings {
		if option, ok := optionOf[name]; ok {
			options = append(options, option(value))
		}
	}
	if base, ok := settings["RetryBackoffFn.base"]; ok {
		options = append(options, kgo.RetryBackoffFn(backoff(Duration(base), Duration(settings["RetryBackoffFn.max"]))))
	}
	if settings["IdempotentWrite"] == false {
		options = append(options, kgo.DisableIdempotentWrite())
	}
	switch settings["security.protocol"] {
	case "SSL":
		options = append(options, kgo.DialTLSConfig(&tls.Config{}))
	case "SASL_PLAINTEXT":
		user, password := settings["sasl.username"].(string), settings["sasl.password"].(string)
		options = append(options, kgo.SASL(plain.Auth{User: user, Pass: password}.AsMechanism()))
	}
	return options
}

// backoff is the default of RetryBackoffFn with other limits.
func backoff(base, most time.Duration) func(int) time.Duration {
	return func(fails int) time.Duration {
		if base >= most || fails > 30 {
			return most
		}
		wait := float64(base) * float64(int64(1)<<max(fails-1, 0)) * (0.8 + 0.4*rand.Float64())
		return min(time.Duration(wait), most)
	}
}

func produce(ctx context.Context, job *Job) error {
	client, err := open(job, kgo.DefaultProduceTopic(topic), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		return err
	}
	defer client.Close()
	job.Produce(ctx, func(partition int32, value []byte) (int64, error) {
		record := &kgo.Record{Partition: partition, Value: value}
		err := client.ProduceSync(ctx, record).FirstErr()
		return record.Offset, err
	})
	return nil
}

func consume(ctx context.Context, job *Job) error {
	start := kgo.NewOffset().AtStart()
	options := []kgo.Opt{kgo.ConsumeStartOffset(start), kgo.ConsumeResetOffset(start)}
	if job.Workload.InGroup {
		options = append(options, kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit())
	} else {
		options = append(options, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: start}}))
	}
	client, err := open(job, options...)
	if err != nil {
		return err
	}
	defer client.CloseAllowingRebalance()
	every, due := job.Workload.CommitEvery(), time.Now()
	var last *kgo.Record
	for ctx.Err() == nil {
		polling, cancel := context.WithCancel(ctx)
		if every > 0 {
			polling, cancel = context.WithTimeout(ctx, every)
		}
		fetches := client.PollFetches(polling)
		cancel()
		fetches.EachError(func(_ string, _ int32, err error) {
			if !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
				job.Event("call-failed", err)
			}
		})
		fetches.EachRecord(func(record *kgo.Record) {
			job.Received(record.Value, record.Partition, record.Offset)
			last = record
		})
		if every > 0 && last != nil && !time.Now().Before(due) {
			due = time.Now().Add(every)
			if err := client.CommitRecords(ctx, last); err != nil && ctx.Err() == nil {
				job.Event("call-failed", err)
			}
		}
	}
	return nil
}

func call(ctx context.Context, job *Job) error {
	client, err := open(job)
	if err != nil {
		return err
	}
	defer client.Close()
	for ctx.Err() == nil {
		request := kmsg.NewPtrDescribeGroupsRequest()
		request.Groups = []string{group}
		response, err := request.RequestWith(ctx, client)
		if err == nil && len(response.Groups) > 0 {
			err = kerr.ErrorForCode(response.Groups[0].ErrorCode)
		}
		if err != nil {
			job.Event("call-failed", err)
		}
		Sleep(ctx, job.Workload.Pause())
	}
	return nil
}
