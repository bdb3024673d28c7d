// Package driver has the code shared by the Go clients: it reads calls from standard input, one JSON object per line, and
// answers each with its steps, one per line.
package driver

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"
)

// Timeout is far longer than any call needs on a busy machine.
const Timeout = 30 * time.Second

// Row is one record; encoding/json encodes bytes in base64.
type Row struct {
	Key       []byte   `json:"key"`
	Value     []byte   `json:"value"`
	Headers   []Header `json:"headers"`
	Timestamp int64    `json:"timestamp"`
}

// Header is a pair in JSON.
type Header struct {
	Name  string
	Value []byte
}

func (h Header) MarshalJSON() ([]byte, error) { return json.Marshal([]any{h.Name, h.Value}) }

func (h *Header) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &[]any{&h.Name, &h.Value})
}

// Round is one transaction.
type Round struct {
	Rows []Row  `json:"rows"`
	End  string `json:"end"`
}

// Given has the arguments of a verb; each verb uses some of them.
type Given struct {
	Topic           string             `json:"topic"`
	Output          string             `json:"output"`
	Partitions      int32              `json:"partitions"`
	Group           string             `json:"group"`
	TransactionalID string             `json:"transactional_id"`
	Rows            []Row              `json:"rows"`
	Rounds          []Round            `json:"rounds"`
	Count           int64              `json:"count"`
	Size            int                `json:"size"`
	Acks            string             `json:"acks"`
	Compression     string             `json:"compression"`
	Idempotent      bool               `json:"idempotent"`
	Isolation       string             `json:"isolation"`
	Protocol        string             `json:"protocol"`
	Assignor        string             `json:"assignor"`
	Entity          map[string]*string `json:"entity"`
	Key             string             `json:"key"`
	Acknowledge     string             `json:"acknowledge"`
	Members         int                `json:"members"`
	Job             Job                `json:"job"`
}

// Step is one reported result of a verb.
type Step map[string]any

// Call is one call of a verb; its failures panic, by Must.
type Call struct {
	Bootstrap string `json:"bootstrap"`
	Verb      string `json:"verb"`
	Given     Given  `json:"given"`
}

// Brokers returns the addresses of the brokers.
func (c *Call) Brokers() []string { return strings.Split(c.Bootstrap, ",") }

// Report writes a step.
func (c *Call) Report(step Step) { write("step", step) }

// Must ends the call if err is not nil.
func Must(err error) {
	if err != nil {
		panic(err)
	}
}

// Got returns the value, or ends the call if err is not nil.
func Got[T any](value T, err error) T {
	Must(err)
	return value
}

// Until fetches until the result is the expected one and returns the last result. Brokers apply topic changes at
// different times.
func Until[T comparable](expected T, fetch func() T) T {
	deadline := time.Now().Add(Timeout / 3)
	result := fetch()
	for result != expected && time.Now().Before(deadline) {
		time.Sleep(50 * time.Millisecond)
		result = fetch()
	}
	return result
}

func write(name string, value any) {
	line := Got(json.Marshal(map[string]any{name: value}))
	fmt.Fprintf(os.Stdout, "%s\n", line)
}

// Serve prints the version of a module and answers calls until standard input ends.
func Serve(module string, verbs map[string]func(*Call)) {
	info, _ := debug.ReadBuildInfo()
	for _, dependency := range info.Deps {
		if dependency.Path == module {
			write("version", strings.TrimPrefix(dependency.Version, "v"))
		}
	}
	lines := bufio.NewReader(os.Stdin)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var call Call
		Must(json.Unmarshal(line, &call))
		if failure := run(verbs[call.Verb], &call); failure != "" {
			write("failure", failure)
		} else {
			write("end", true)
		}
	}
}

func run(verb func(*Call), call *Call) (failure string) {
	defer func() {
		if cause := recover(); cause != nil {
			failure = fmt.Sprintf("%v\n%s", cause, debug.Stack())
		}
	}()
	verb(call)
	return ""
}
