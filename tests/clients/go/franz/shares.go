package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	. "sluice/tests/clients/driver"
)

var acknowledgements = map[string]kgo.AckStatus{
	"accept":         kgo.AckAccept,
	"release":        kgo.AckRelease,
	"release-always": kgo.AckRelease,
	"reject":         kgo.AckReject,
}

// shareQuiet follows the last expected delivery, so that a further one would be noticed.
const shareQuiet = 500 * time.Millisecond

// share polls until `count` records were delivered, and then for a while; it reports the deliveries of each value.
func share(call *Call) {
	var members []*kgo.Client
	for range call.Given.Members {
		member := client(call, kgo.ShareGroup(call.Given.Group), kgo.ConsumeTopics(call.Given.Topic))
		defer member.Close()
		members = append(members, member)
	}
	deliveries, total := map[string]int{}, int64(0)
	deadline := time.Now().Add(Timeout)
	for quiet := time.Duration(0); quiet < shareQuiet; {
		if time.Now().After(deadline) {
			panic(fmt.Sprintf("expected %d deliveries, got %v", call.Given.Count, deliveries))
		}
		started := time.Now()
		for _, member := range members {
			total += pollOnce(call, member, deliveries)
		}
		if total >= call.Given.Count {
			quiet += time.Since(started)
		}
	}
	call.Report(Step{"deliveries": deliveries})
}

// pollOnce counts and acknowledges the records of one poll.
func pollOnce(call *Call, member *kgo.Client, deliveries map[string]int) int64 {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	fetches := member.PollFetches(ctx)
	if err := fetches.Err(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		panic(err)
	}
	records := fetches.Records()
	for _, record := range records {
		value := string(record.Value)
		deliveries[value]++
		status := kgo.AckAccept
		if deliveries[value] == 1 || call.Given.Acknowledge == "release-always" {
			status = acknowledgements[call.Given.Acknowledge]
		}
		record.Ack(status)
	}
	flushing, stop := within()
	defer stop()
	Must(member.FlushAcks(flushing))
	return int64(len(records))
}
