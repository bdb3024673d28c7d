// franz-go without a driver of the audit: produces or consumes until it is ended.
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

	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	bootstrap := flag.String("bootstrap", "", "brokers, separated by commas")
	topic := flag.String("topic", "audit", "topic")
	consume := flag.Bool("consume", false, "consume as a member of a group instead of producing")
	varied := flag.Bool("varied", false, "records of varied instead of equal size")
	pipelined := flag.Bool("pipelined", false, "send without waiting for the previous record")
	flag.Parse()
	options := []kgo.Opt{kgo.SeedBrokers(strings.Split(*bootstrap, ",")...), kgo.ClientID("franz")}
	if *consume {
		options = append(options, kgo.ConsumerGroup("audit"), kgo.ConsumeTopics(*topic))
	} else {
		options = append(options, kgo.DisableIdempotentWrite(), kgo.DefaultProduceTopic(*topic))
		if *pipelined {
			options = append(options, kgo.MaxProduceRequestsInflightPerBroker(5))
		}
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for number := 0; ; number++ {
		if *consume {
			client.PollFetches(context.Background())
			continue
		}
		record := &kgo.Record{Value: payload(number, *varied)}
		if *pipelined {
			client.Produce(context.Background(), record, func(_ *kgo.Record, err error) { report(err) })
		} else {
			report(client.ProduceSync(context.Background(), record).FirstErr())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func payload(number int, varied bool) []byte {
	value := fmt.Appendf(nil, "%08d", number)
	if varied {
		value = append(value, bytes.Repeat([]byte("x"), rand.IntN(200))...)
	}
	return value
}

func report(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}
