package driver

import (
	"fmt"
	"strings"
	"time"
)

// Job is a job of the lint matrix (tools/lint/job.py).
type Job struct {
	Role            string         `json:"role"`
	Settings        map[string]any `json:"settings"`
	ClientID        string         `json:"client_id"`
	Topics          []string       `json:"topics"`
	Bursts          int            `json:"bursts"`
	Records         int            `json:"records"`
	Size            int            `json:"size"`
	EveryMS         float64        `json:"every_ms"`
	Keys            int            `json:"keys"`
	HotPercent      int            `json:"hot_percent"`
	Wait            bool           `json:"wait"`
	WaitEach        bool           `json:"wait_each"`
	NewClient       bool           `json:"new_client"`
	SkewMS          int            `json:"skew_ms"`
	TransactionalID string         `json:"transactional_id"`
	HoldMS          float64        `json:"hold_ms"`
	Abort           bool           `json:"abort"`
	Output          string         `json:"output"`
	OutputSettings  map[string]any `json:"output_settings"`
	Group           string         `json:"group"`
	InstanceID      string         `json:"instance_id"`
	ForMS           float64        `json:"for_ms"`
	PollMS          float64        `json:"poll_ms"`
	ProcessMS       float64        `json:"process_ms"`
	RestMS          float64        `json:"rest_ms"`
	Most            int            `json:"most"`
	Commit          string         `json:"commit"`
	RejoinMS        float64        `json:"rejoin_ms"`
	Leave           bool           `json:"leave"`
}

// OffsetsApart has, for each kind of commit, the distances from the offset that was read.
var OffsetsApart = map[string][]int64{"record": {0}, "poll": {0}, "ahead": {10}, "back": {0, -10}}

// MS returns a duration of milliseconds.
func MS(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

// KeyOf returns the key of a record.
func (j *Job) KeyOf(number int) []byte {
	if j.Keys == 0 {
		return nil
	}
	key := number % j.Keys
	if number*37%100 < j.HotPercent {
		key = 0
	}
	return []byte(fmt.Sprintf("key-%d", key))
}

// ValueOf returns the value of a record.
func (j *Job) ValueOf(number int) []byte {
	text := fmt.Sprintf("record %d, ", number)
	return []byte(strings.Repeat(text, j.Size/len(text)+1))[:j.Size]
}

// Timestamp returns the timestamp of a record; the zero time if the client sets it.
func (j *Job) Timestamp() time.Time {
	if j.SkewMS == 0 {
		return time.Time{}
	}
	return time.Now().Add(MS(float64(j.SkewMS)))
}

// Rest sleeps after a poll.
func (j *Job) Rest(records int) {
	rest := MS(j.RestMS)
	if records > 0 {
		rest += MS(j.ProcessMS)
	}
	time.Sleep(rest)
}

// Lifetimes runs a consumer until the job ends, again and again if it rejoins.
func (j *Job) Lifetimes(once func(until time.Time)) {
	ends := time.Now().Add(MS(j.ForMS))
	for time.Now().Before(ends) {
		until := ends
		if rejoin := time.Now().Add(MS(j.RejoinMS)); j.RejoinMS > 0 && rejoin.Before(ends) {
			until = rejoin
		}
		once(until)
	}
}

// Share returns the bursts of each producer.
func (j *Job) Share() int {
	if j.NewClient {
		return 1
	}
	return j.Bursts
}
