// Command sarama is the driver of sarama: a producer, a consumer, an admin client.
package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/IBM/sarama"

	. "sluice/audit/driver"
)

const (
	topic        = "audit"
	group        = "audit"
	restartAfter = 100 * time.Millisecond // after a failed call
)

func main() {
	Run(func(ctx context.Context, job *Job) error {
		config, err := configOf(job)
		if err != nil {
			return Rejected{Err: err}
		}
		switch {
		case job.Workload.Type == "produce":
			return produce(ctx, job, config)
		case job.Workload.InGroup:
			return consumeInGroup(ctx, job, config)
		case job.Workload.Type == "consume":
			return consume(ctx, job, config)
		default:
			return call(ctx, job, config)
		}
	})
}

// configOf sets fields by their paths, such as Producer.Retry.Backoff; durations are in milliseconds.
func configOf(job *Job) (*sarama.Config, error) {
	config := sarama.NewConfig()
	config.ClientID = "audit-" + job.Role
	config.Producer.Return.Successes = true
	config.Consumer.Return.Errors = true
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	for name, value := range job.Settings {
		switch name {
		case "security.protocol":
			config.Net.SASL.Enable = value == "SASL_PLAINTEXT"
			config.Net.TLS.Enable = value == "SSL"
		case "Producer.RequiredAcks":
			config.Producer.RequiredAcks = sarama.WaitForAll
		default:
			if err := set(reflect.ValueOf(config).Elem(), name, value); err != nil {
				return nil, err
			}
		}
	}
	return config, config.Validate()
}

func set(config reflect.Value, path string, value any) error {
	field := config
	for _, name := range strings.Split(path, ".") {
		if field = field.FieldByName(name); !field.IsValid() {
			return fmt.Errorf("%s: no such field", path)
		}
	}
	if field.Type() == reflect.TypeFor[time.Duration]() {
		value = Duration(value)
	}
	field.Set(reflect.ValueOf(value).Convert(field.Type()))
	return nil
}

func produce(ctx context.Context, job *Job, config *sarama.Config) error {
	client, err := sarama.NewClient(job.Brokers(), config)
	if err != nil {
		return err
	}
	defer client.Close() // unlike producer.Close, it does not wait for unsent records
	producer, err := sarama.NewSyncProducerFromClient(client)
	if err != nil {
		return err
	}
	job.Event("ready", nil)
	job.Produce(ctx, func(partition int32, value []byte) (int64, error) {
		type outcome struct {
			offset int64
			err    error
		}
		ended := make(chan outcome, 1)
		go func() {
			message := &sarama.ProducerMessage{Topic: topic, Partition: partition, Value: sarama.ByteEncoder(value)}
			_, offset, err := producer.SendMessage(message)
			ended <- outcome{offset, err}
		}()
		select {
		case found := <-ended:
			return found.offset, found.err
		case <-ctx.Done():
			return -1, ctx.Err()
		}
	})
	return nil
}

func consume(ctx context.Context, job *Job, config *sarama.Config) error {
	consumer, err := sarama.NewConsumer(job.Brokers(), config)
	if err != nil {
		return err
	}
	defer consumer.Close()
	reader, err := consumer.ConsumePartition(topic, 0, sarama.OffsetOldest)
	if err != nil {
		return err
	}
	job.Event("ready", nil)
	for {
		select {
		case <-ctx.Done():
			return nil
		case message := <-reader.Messages():
			job.Received(message.Value, message.Partition, message.Offset)
		case err := <-reader.Errors():
			job.Event("call-failed", err)
		}
	}
}

func consumeInGroup(ctx context.Context, job *Job, config *sarama.Config) error {
	members, err := sarama.NewConsumerGroup(job.Brokers(), group, config)
	if err != nil {
		return err
	}
	defer members.Close()
	job.Event("ready", nil)
	go func() {
		for err := range members.Errors() {
			job.Event("call-failed", err)
		}
	}()
	for ctx.Err() == nil {
		if err := members.Consume(ctx, []string{topic}, handler{job}); err != nil && !errors.Is(err, context.Canceled) {
			job.Event("call-failed", err)
			Sleep(ctx, restartAfter)
		}
	}
	return nil
}

type handler struct{ job *Job }

func (handler) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (handler) Cleanup(sarama.ConsumerGroupSession) error { return nil }
func (h handler) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	every := h.job.Workload.CommitEvery()
	commits := make(<-chan time.Time)
	if every > 0 {
		commits = time.Tick(every)
	}
	var last *sarama.ConsumerMessage
	for {
		select {
		case <-session.Context().Done():
			return nil
		case message, ok := <-claim.Messages():
			if !ok {
				return nil
			}
			h.job.Received(message.Value, message.Partition, message.Offset)
			last = message
		case <-commits:
			if last != nil {
				// A committed position is not committed again, so it moves back and forth.
				session.ResetOffset(topic, last.Partition, last.Offset, "")
				session.MarkMessage(last, "")
				session.Commit()
				h.job.Event("gave-up", nil) // a failed commit is neither retried nor reported
			}
		}
	}
}

func call(ctx context.Context, job *Job, config *sarama.Config) error {
	admin, err := sarama.NewClusterAdmin(job.Brokers(), config)
	if err != nil {
		return err
	}
	defer admin.Close()
	job.Event("ready", nil)
	for ctx.Err() == nil {
		groups, err := admin.DescribeConsumerGroups([]string{group})
		if err == nil && len(groups) > 0 && groups[0].Err != sarama.ErrNoError {
			err = groups[0].Err
		}
		if err != nil {
			job.Event("call-failed", err)
		}
		Sleep(ctx, job.Workload.Pause())
	}
	return nil
}
