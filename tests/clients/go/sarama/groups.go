package main

import (
	"context"
	"fmt"
	"time"

	"github.com/IBM/sarama"

	. "sluice/tests/clients/driver"
)

// work processes the messages of a partition that a member has claimed.
type work func(session sarama.ConsumerGroupSession, messages <-chan *sarama.ConsumerMessage)

// member is a consumer in the group. It has a partition while its claim lasts.
type member struct {
	group   sarama.ConsumerGroup
	cancel  context.CancelFunc
	holding Holding
	claimed work
}

func (m *member) Holding() *Holding { return &m.holding }

func (m *member) Close() {
	m.cancel()
	Must(m.group.Close())
}

func (m *member) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (m *member) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (m *member) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	partition := []int32{claim.Partition()}
	m.holding.Gain(partition)
	m.claimed(session, claim.Messages())
	for range claim.Messages() {
	}
	m.holding.Lose(partition)
	return nil
}

// join starts a member, which notices a rebalance early.
func join(call *Call, instanceID string, claimed work) *member {
	config := settings()
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.Group.Heartbeat.Interval = 100 * time.Millisecond
	config.Consumer.Group.InstanceId = instanceID
	strategy := sarama.NewBalanceStrategyRange()
	if call.Given.Assignor == "cooperative-sticky" {
		strategy = sarama.NewBalanceStrategyCooperativeSticky()
	}
	config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{strategy}
	ctx, cancel := context.WithCancel(context.Background())
	joined := &member{
		group:   Got(sarama.NewConsumerGroup(call.Brokers(), call.Given.Group, config)),
		cancel:  cancel,
		claimed: claimed,
	}
	go func() {
		for ctx.Err() == nil {
			_ = joined.group.Consume(ctx, []string{call.Given.Topic}, joined)
		}
	}()
	return joined
}

func joining(call *Call) func(string) Member {
	return func(instanceID string) Member {
		return join(call, instanceID, func(sarama.ConsumerGroupSession, <-chan *sarama.ConsumerMessage) {})
	}
}

// inGroup runs some work once as the only member; its failure ends the call.
func inGroup(call *Call, once work) {
	outcome := make(chan any, 1)
	done := false
	joined := join(call, "", func(session sarama.ConsumerGroupSession, messages <-chan *sarama.ConsumerMessage) {
		if done {
			return
		}
		done = true
		defer func() { outcome <- recover() }()
		once(session, messages)
	})
	defer joined.Close()
	select {
	case failure := <-outcome:
		if failure != nil {
			panic(fmt.Sprint(failure))
		}
	case <-time.After(2 * Timeout):
		panic("no partition was claimed")
	}
}

func resume(call *Call) {
	for _, name := range []string{"first", "resumed"} {
		values := []string{}
		inGroup(call, func(session sarama.ConsumerGroupSession, messages <-chan *sarama.ConsumerMessage) {
			for range 5 {
				message := next(messages)
				values = append(values, string(message.Value))
				session.MarkMessage(message, "")
			}
			session.Commit()
		})
		call.Report(Step{name: values})
	}
}
