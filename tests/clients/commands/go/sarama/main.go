// sarama without a driver of the audit: produces or consumes until it is ended.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/IBM/sarama"
)

func main() {
	bootstrap := flag.String("bootstrap", "", "brokers, separated by commas")
	topic := flag.String("topic", "audit", "topic")
	consume := flag.Bool("consume", false, "consume as a member of a group instead of producing")
	varied := flag.Bool("varied", false, "records of varied instead of equal size")
	pipelined := flag.Bool("pipelined", false, "send without waiting for the previous record")
	flag.Parse()
	brokers := strings.Split(*bootstrap, ",")
	config := sarama.NewConfig()
	config.Producer.Return.Successes = true
	config.Consumer.Return.Errors = true
	if *consume {
		run(consumeForever(brokers, *topic, config))
	} else if *pipelined {
		run(producePipelined(brokers, *topic, config, *varied))
	} else {
		run(produceInTurn(brokers, *topic, config, *varied))
	}
}

func run(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func produceInTurn(brokers []string, topic string, config *sarama.Config, varied bool) error {
	producer, err := sarama.NewSyncProducer(brokers, config)
	if err != nil {
		return err
	}
	for number := 0; ; number++ {
		if _, _, err := producer.SendMessage(message(topic, number, varied)); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func producePipelined(brokers []string, topic string, config *sarama.Config, varied bool) error {
	producer, err := sarama.NewAsyncProducer(brokers, config)
	if err != nil {
		return err
	}
	go func() {
		for err := range producer.Errors() {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	go func() {
		for range producer.Successes() {
		}
	}()
	for number := 0; ; number++ {
		producer.Input() <- message(topic, number, varied)
		time.Sleep(20 * time.Millisecond)
	}
}

func message(topic string, number int, varied bool) *sarama.ProducerMessage {
	value := fmt.Appendf(nil, "%08d", number)
	if varied {
		value = append(value, bytes.Repeat([]byte("x"), rand.IntN(200))...)
	}
	return &sarama.ProducerMessage{Topic: topic, Value: sarama.ByteEncoder(value)}
}

func consumeForever(brokers []string, topic string, config *sarama.Config) error {
	group, err := sarama.NewConsumerGroup(brokers, "audit", config)
	if err != nil {
		return err
	}
	go func() {
		for err := range group.Errors() {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	for {
		if err := group.Consume(context.Background(), []string{topic}, handler{}); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
}

type handler struct{}

func (handler) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (handler) Cleanup(sarama.ConsumerGroupSession) error { return nil }
func (handler) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		session.MarkMessage(message, "")
	}
	return nil
}
