package main

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/IBM/sarama"

	. "sluice/tests/clients/driver"
)

var strategies = map[string]func() sarama.BalanceStrategy{
	"range":              sarama.NewBalanceStrategyRange,
	"roundrobin":         sarama.NewBalanceStrategyRoundRobin,
	"sticky":             sarama.NewBalanceStrategySticky,
	"cooperative-sticky": sarama.NewBalanceStrategyCooperativeSticky,
}

// configOf sets fields by their paths, such as Producer.Retry.Backoff; durations are in milliseconds.
func configOf(job *Job, settings map[string]any) *sarama.Config {
	config := sarama.NewConfig()
	config.Producer.Return.Successes = true // required by a SyncProducer
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Group.InstanceId = job.InstanceID
	if job.ClientID != "" {
		config.ClientID = job.ClientID
	}
	if job.Role != "produce" {
		config.Consumer.Offsets.AutoCommit.Enable = job.Commit == "auto" && job.Role == "consume"
	}
	for name, value := range settings {
		switch name {
		case "Version":
			config.Version = Got(sarama.ParseKafkaVersion(value.(string)))
		case "Consumer.Group.Rebalance.GroupStrategies":
			config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{strategies[value.(string)]()}
		case "Producer.Compression":
			config.Producer.Compression = codecs[value.(string)]
		default:
			set(config, name, value)
		}
	}
	return config
}

func set(config *sarama.Config, name string, value any) {
	field := reflect.ValueOf(config).Elem()
	for _, part := range strings.Split(name, ".") {
		field = field.FieldByName(part)
	}
	number, isNumber := value.(float64)
	switch {
	case !field.IsValid():
		panic(fmt.Sprintf("%s: no such setting", name))
	case field.Type() == reflect.TypeFor[time.Duration]():
		field.SetInt(int64(MS(number)))
	case isNumber && field.CanInt():
		field.SetInt(int64(number))
	default:
		field.Set(reflect.ValueOf(value).Convert(field.Type()))
	}
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

func burstOf(job *Job, burst int) []*sarama.ProducerMessage {
	var found []*sarama.ProducerMessage
	for number := burst * job.Records; number < (burst+1)*job.Records; number++ {
		message := &sarama.ProducerMessage{
			Topic:     job.Topics[number%len(job.Topics)],
			Value:     sarama.ByteEncoder(job.ValueOf(number)),
			Timestamp: job.Timestamp(),
		}
		if key := job.KeyOf(number); key != nil {
			message.Key = sarama.ByteEncoder(key)
		}
		found = append(found, message)
	}
	return found
}

func produceBursts(call *Call) {
	job := &call.Given.Job
	for from := 0; from < job.Bursts; from += job.Share() {
		config := configOf(job, job.Settings)
		if !job.Wait {
			sendWithoutWaiting(call, config, from)
			continue
		}
		if job.TransactionalID != "" {
			config = idempotent(config)
			config.Producer.RequiredAcks = sarama.WaitForAll
			config.Producer.Transaction.ID = job.TransactionalID
		}
		open := producer(call, config)
		for burst := from; burst < from+job.Share(); burst++ {
			produceBurst(open, job, burst)
			time.Sleep(MS(job.EveryMS))
		}
		Must(open.Close())
	}
}

func sendWithoutWaiting(call *Call, config *sarama.Config, from int) {
	job := &call.Given.Job
	config.Producer.Return.Successes = false
	config.Producer.Return.Errors = false
	open := Got(sarama.NewAsyncProducer(call.Brokers(), config))
	for burst := from; burst < from+job.Share(); burst++ {
		for _, message := range burstOf(job, burst) {
			open.Input() <- message
		}
		time.Sleep(MS(job.EveryMS))
	}
	Must(open.Close())
}

func produceBurst(open sarama.SyncProducer, job *Job, burst int) {
	if job.TransactionalID != "" {
		Must(open.BeginTxn())
	}
	messages := burstOf(job, burst)
	if job.WaitEach {
		for _, message := range messages {
			_, _, err := open.SendMessage(message)
			Must(err)
		}
	} else {
		Must(open.SendMessages(messages))
	}
	if job.TransactionalID == "" {
		return
	}
	time.Sleep(MS(job.HoldMS))
	if job.Abort {
		Must(open.AbortTxn())
	} else {
		Must(open.CommitTxn())
	}
}

// reader passes the messages of all claims to one handler, which works as a poll loop would.
type reader struct {
	lock   sync.Mutex
	job    *Job
	polled func(session sarama.ConsumerGroupSession, messages []*sarama.ConsumerMessage)
}

func (r *reader) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (r *reader) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (r *reader) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message, open := <-claim.Messages():
			if !open {
				return nil
			}
			messages := []*sarama.ConsumerMessage{message}
			for len(messages) < r.job.Most && len(claim.Messages()) > 0 {
				messages = append(messages, <-claim.Messages())
			}
			r.lock.Lock()
			r.polled(session, messages)
			r.lock.Unlock()
			r.job.Rest(len(messages))
		case <-session.Context().Done():
			return nil
		}
	}
}

func consumeUntil(call *Call, until time.Time) {
	job := &call.Given.Job
	config := configOf(job, job.Settings)
	if job.Group == "" {
		consumePartitions(call, config, until)
		return
	}
	joinUntil(call, config, until, func(session sarama.ConsumerGroupSession, messages []*sarama.ConsumerMessage) {
		if job.Commit == "auto" {
			for _, message := range messages {
				session.MarkMessage(message, "")
			}
		}
		for _, apart := range OffsetsApart[job.Commit] {
			for number, message := range messages {
				offset := max(0, message.Offset+1+apart)
				session.MarkOffset(message.Topic, message.Partition, offset, "")
				session.ResetOffset(message.Topic, message.Partition, offset, "")
				if job.Commit == "record" || number == len(messages)-1 {
					session.Commit()
				}
			}
		}
	})
}

func joinUntil(
	call *Call, config *sarama.Config, until time.Time,
	polled func(sarama.ConsumerGroupSession, []*sarama.ConsumerMessage),
) {
	job := &call.Given.Job
	group := Got(sarama.NewConsumerGroup(call.Brokers(), job.Group, config))
	ctx, cancel := context.WithDeadline(context.Background(), until)
	defer cancel()
	for ctx.Err() == nil {
		if err := group.Consume(ctx, job.Topics, &reader{job: job, polled: polled}); err != nil && ctx.Err() == nil {
			time.Sleep(100 * time.Millisecond)
		}
	}
	if job.Leave {
		Must(group.Close())
	}
}

func consumePartitions(call *Call, config *sarama.Config, until time.Time) {
	consumer := Got(sarama.NewConsumer(call.Brokers(), config))
	defer consumer.Close()
	for _, topic := range call.Given.Job.Topics {
		for _, partition := range Got(consumer.Partitions(topic)) {
			claim := Got(consumer.ConsumePartition(topic, partition, sarama.OffsetOldest))
			defer claim.Close()
			go func() {
				for range claim.Messages() {
					call.Given.Job.Rest(1)
				}
			}()
		}
	}
	time.Sleep(time.Until(until))
}

func copyRecords(call *Call) {
	job := &call.Given.Job
	producing := configOf(job, job.OutputSettings)
	producing = idempotent(producing)
	producing.Producer.RequiredAcks = sarama.WaitForAll
	producing.Producer.Transaction.ID = job.TransactionalID
	open := producer(call, producing)
	defer open.Close()
	until := time.Now().Add(MS(job.ForMS))
	config := configOf(job, job.Settings)
	joinUntil(call, config, until, func(session sarama.ConsumerGroupSession, messages []*sarama.ConsumerMessage) {
		Must(open.BeginTxn())
		var copies []*sarama.ProducerMessage
		for _, message := range messages {
			copies = append(copies, &sarama.ProducerMessage{Topic: job.Output, Value: sarama.ByteEncoder(message.Value)})
		}
		Must(open.SendMessages(copies))
		last := messages[len(messages)-1]
		offsets := map[string][]*sarama.PartitionOffsetMetadata{
			last.Topic: {{Partition: last.Partition, Offset: last.Offset + 1, LeaderEpoch: -1}},
		}
		Must(open.AddOffsetsToTxn(offsets, job.Group))
		time.Sleep(MS(job.HoldMS))
		Must(open.CommitTxn())
	})
}
