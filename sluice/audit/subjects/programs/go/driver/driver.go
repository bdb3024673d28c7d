// Package driver has the shared code of the Go clients' drivers: their job, and callbacks as JSON lines.
package driver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

const restartAfter = 500 * time.Millisecond // after a client that could not start

// Workload is one of those in sluice/audit/probes/probe.py.
type Workload struct {
	Type          string `json:"type"`
	Partitions    int32  `json:"partitions"`
	Pending       int    `json:"pending"`
	PauseMs       int    `json:"pause_ms"`
	LifetimeMs    int    `json:"lifetime_ms"`
	InGroup       bool   `json:"in_group"`
	CommitEveryMs int    `json:"commit_every_ms"`
	Padding       int    `json:"padding"` // up to this many zeros before a record's number
}

// Pause is the time between two records or calls.
func (w Workload) Pause() time.Duration { return milliseconds(w.PauseMs) }

// CommitEvery is the interval of commits; 0: never.
func (w Workload) CommitEvery() time.Duration { return milliseconds(w.CommitEveryMs) }

func milliseconds(number int) time.Duration { return time.Duration(number) * time.Millisecond }

// Settings are those of the client, by its own names.
type Settings map[string]any

// Duration converts a number of milliseconds.
func Duration(value any) time.Duration {
	return time.Duration(value.(float64) * float64(time.Millisecond))
}

// Job is what a driver runs until it is ended.
type Job struct {
	Bootstrap string   `json:"bootstrap"`
	Role      string   `json:"role"`
	Workload  Workload `json:"workload"`
	Settings  Settings `json:"settings"`
	*Reporter `json:"-"`
}

// Brokers are the bootstrap addresses.
func (j *Job) Brokers() []string { return strings.Split(j.Bootstrap, ",") }

// Rejected is an error of a client that does not accept its settings.
type Rejected struct{ Err error }

func (r Rejected) Error() string { return r.Err.Error() }

// Run creates clients one after the other, each for a lifetime, from the job on standard input or in the argument.
func Run(work func(context.Context, *Job) error) {
	job := &Job{Reporter: &Reporter{encoder: json.NewEncoder(os.Stdout)}}
	var input io.Reader = os.Stdin
	if len(os.Args) > 1 {
		input = strings.NewReader(os.Args[1])
	}
	if err := json.NewDecoder(input).Decode(job); err != nil {
		fmt.Fprintln(os.Stderr, "job:", err)
		os.Exit(1)
	}
	for {
		ctx, cancel := context.WithCancel(context.Background())
		if job.Workload.LifetimeMs > 0 {
			ctx, cancel = context.WithTimeout(ctx, milliseconds(job.Workload.LifetimeMs))
		}
		job.Event("started", nil)
		err := work(ctx, job)
		cancel()
		if rejected, ok := err.(Rejected); ok {
			job.Event("rejected", rejected.Err)
			select {}
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			job.Event("call-failed", err)
			time.Sleep(restartAfter)
		}
		job.Event("closed", nil)
	}
}

// Produce sends records to each partition independently until the context ends.
func (j *Job) Produce(ctx context.Context, send func(partition int32, value []byte) (offset int64, err error)) {
	var senders sync.WaitGroup
	for partition := range j.Workload.Partitions {
		for range j.Workload.Pending {
			senders.Go(func() {
				for ctx.Err() == nil {
					number := j.sent(partition)
					offset, err := send(partition, j.value(number))
					if ctx.Err() == nil {
						j.outcome(number, partition, offset, err)
					}
					Sleep(ctx, j.Workload.Pause())
				}
			})
		}
	}
	senders.Wait()
}

func (j *Job) value(number int) []byte {
	zeros := 0
	if j.Workload.Padding > 0 {
		zeros = rand.IntN(j.Workload.Padding)
	}
	return append(make([]byte, 0, zeros+8), strings.Repeat("0", zeros)+strconv.Itoa(number)...)
}

// Sleep returns early if the context ends.
func Sleep(ctx context.Context, duration time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(duration):
	}
}

// Reporter writes callbacks.
type Reporter struct {
	mutex   sync.Mutex
	encoder *json.Encoder
	numbers int
}

type callback struct {
	AtNs      int64  `json:"at_ns"`
	Event     string `json:"event"`
	Record    int    `json:"record"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
	Error     string `json:"error"`
	Text      string `json:"text"`
}

// Event reports an event, with an error unless it is nil.
func (r *Reporter) Event(event string, err error) { r.report(event, -1, -1, -1, err) }

// Received reports a record that was read.
func (r *Reporter) Received(value []byte, partition int32, offset int64) {
	number, err := strconv.Atoi(string(value))
	if err != nil {
		number = -1
	}
	r.report("received", number, partition, offset, nil)
}

func (r *Reporter) sent(partition int32) int {
	r.mutex.Lock()
	number := r.numbers
	r.numbers++
	r.mutex.Unlock()
	r.report("sent", number, partition, -1, nil)
	return number
}

func (r *Reporter) outcome(number int, partition int32, offset int64, err error) {
	if err != nil {
		r.report("failed", number, partition, -1, err)
	} else {
		r.report("delivered", number, partition, offset, nil)
	}
}

func (r *Reporter) report(event string, record int, partition int32, offset int64, err error) {
	one := callback{time.Now().UnixNano(), event, record, partition, offset, "", ""}
	if err != nil {
		one.Error, one.Text = fmt.Sprintf("%T", err), strings.SplitN(err.Error(), "\n", 2)[0]
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.encoder.Encode(one)
}
