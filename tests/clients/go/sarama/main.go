// Command sarama is the sarama driver: producing, reading, transactions.
package main

import (
	"errors"
	"time"

	"github.com/IBM/sarama"

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
	}
	verbs["work"] = workOn
	for name, verb := range adminVerbs {
		verbs[name] = verb
	}
	Serve("github.com/IBM/sarama", verbs)
}

func settings() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	config.Producer.Return.Successes = true
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Producer.RequiredAcks = sarama.WaitForAll
	if login := CurrentLogin(); login != nil {
		config.Net.TLS.Enable = true
		config.Net.TLS.Config = login.TLS()
		config.Net.SASL.Enable = true
		config.Net.SASL.Mechanism = sarama.SASLMechanism(login.Mechanism)
		config.Net.SASL.User, config.Net.SASL.Password = login.User, login.Password
		config.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &scramClient{} }
	}
	return config
}

func producer(call *Call, config *sarama.Config) sarama.SyncProducer {
	return Got(sarama.NewSyncProducer(call.Brokers(), config))
}

// encoder encodes nil as null and no bytes as an empty value.
func encoder(data []byte) sarama.Encoder {
	if data == nil {
		return nil
	}
	return sarama.ByteEncoder(data)
}

// messages assigns the rows to the partitions in turn.
func messages(topic string, rows []Row, partitions int32) []*sarama.ProducerMessage {
	var found []*sarama.ProducerMessage
	for number, row := range rows {
		message := &sarama.ProducerMessage{
			Topic:     topic,
			Partition: int32(number) % partitions,
			Key:       encoder(row.Key),
			Value:     encoder(row.Value),
			Timestamp: time.UnixMilli(row.Timestamp),
		}
		for _, header := range row.Headers {
			message.Headers = append(message.Headers, sarama.RecordHeader{Key: []byte(header.Name), Value: header.Value})
		}
		found = append(found, message)
	}
	return found
}

var acks = map[string]sarama.RequiredAcks{"0": sarama.NoResponse, "1": sarama.WaitForLocal, "all": sarama.WaitForAll}

var codecs = map[string]sarama.CompressionCodec{
	"none":   sarama.CompressionNone,
	"gzip":   sarama.CompressionGZIP,
	"snappy": sarama.CompressionSnappy,
	"lz4":    sarama.CompressionLZ4,
	"zstd":   sarama.CompressionZSTD,
}

func idempotent(config *sarama.Config) *sarama.Config {
	config.Producer.Idempotent = true
	config.Net.MaxOpenRequests = 1
	return config
}

func produce(call *Call) {
	config := settings()
	config.Producer.RequiredAcks = acks[call.Given.Acks]
	config.Producer.Compression = codecs[call.Given.Compression]
	if call.Given.Idempotent {
		config = idempotent(config)
	}
	open := producer(call, config)
	defer open.Close()
	Must(open.SendMessages(messages(call.Given.Topic, call.Given.Rows, call.Given.Partitions)))
	call.Report(Step{"sent": len(call.Given.Rows)})
}

func read(call *Call) {
	config := settings()
	if call.Given.Isolation == "read_committed" {
		config.Consumer.IsolationLevel = sarama.ReadCommitted
	}
	consumer := Got(sarama.NewConsumer(call.Brokers(), config))
	defer consumer.Close()
	partition := Got(consumer.ConsumePartition(call.Given.Topic, 0, sarama.OffsetOldest))
	defer partition.Close()
	rows := []Row{}
	for int64(len(rows)) < call.Given.Count {
		message := next(partition.Messages())
		row := Row{
			Key: message.Key, Value: message.Value, Headers: []Header{}, Timestamp: message.Timestamp.UnixMilli(),
		}
		for _, header := range message.Headers {
			row.Headers = append(row.Headers, Header{Name: string(header.Key), Value: header.Value})
		}
		rows = append(rows, row)
	}
	call.Report(Step{"rows": rows})
}

// next returns the next message within the timeout.
func next(messages <-chan *sarama.ConsumerMessage) *sarama.ConsumerMessage {
	select {
	case message, open := <-messages:
		if !open {
			panic("no more messages")
		}
		return message
	case <-time.After(Timeout):
		panic("no message")
	}
}

// code returns the broker's error code; 0 for nil.
func code(err error) int16 {
	var known sarama.KError
	if errors.As(err, &known) {
		return int16(known)
	}
	Must(err)
	return 0
}

func oversize(call *Call) {
	open := producer(call, settings())
	defer open.Close()
	value := sarama.ByteEncoder(make([]byte, call.Given.Size))
	_, _, err := open.SendMessage(&sarama.ProducerMessage{Topic: call.Given.Topic, Value: value})
	call.Report(Step{"error": code(err)})
}

func transactional(call *Call) sarama.SyncProducer {
	config := idempotent(settings())
	config.Producer.Transaction.ID = call.Given.TransactionalID
	return producer(call, config)
}

func end(open sarama.SyncProducer, how string) error {
	if how == "commit" {
		return open.CommitTxn()
	}
	return open.AbortTxn()
}

func transactions(call *Call) {
	open := transactional(call)
	defer open.Close()
	for _, round := range call.Given.Rounds {
		Must(open.BeginTxn())
		Must(open.SendMessages(messages(call.Given.Topic, round.Rows, 1)))
		Must(end(open, round.End))
		call.Report(Step{"end": round.End})
	}
}

func fence(call *Call) {
	first := transactional(call)
	defer first.Close()
	Must(first.BeginTxn())
	Must(first.SendMessages(messages(call.Given.Topic, []Row{{Value: []byte("first")}}, 1)))
	second := transactional(call)
	defer second.Close()
	failure := code(first.CommitTxn())
	call.Report(Step{
		"fenced": failure == int16(sarama.ErrProducerFenced) || failure == int16(sarama.ErrInvalidProducerEpoch),
	})
}

func transactionalOffsets(call *Call) {
	open := transactional(call)
	defer open.Close()
	inGroup(call, func(_ sarama.ConsumerGroupSession, messages <-chan *sarama.ConsumerMessage) {
		for _, how := range []string{"commit", "abort"} {
			Must(open.BeginTxn())
			for range 3 {
				message := next(messages)
				value := sarama.ByteEncoder(message.Value)
				_, _, err := open.SendMessage(&sarama.ProducerMessage{Topic: call.Given.Output, Value: value})
				Must(err)
				Must(open.AddMessageToTxn(message, call.Given.Group, nil))
			}
			Must(end(open, how))
			with(func(admin sarama.ClusterAdmin, call *Call) {
				committed := Until(3, func() int64 { return groupOffset(admin, call) })
				call.Report(Step{"after_" + how: committed})
			})(call)
		}
	})
}
