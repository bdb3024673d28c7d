package driver

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// Member is a consumer in a group that runs the protocol in the background.
type Member interface {
	Holding() *Holding
	Close()
}

// Holding has the partitions of a member, as its client reports them.
type Holding struct {
	mutex       sync.Mutex
	partitions  map[int32]bool
	revocations int
}

// Gain adds partitions.
func (h *Holding) Gain(partitions []int32) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.partitions == nil {
		h.partitions = map[int32]bool{}
	}
	for _, partition := range partitions {
		h.partitions[partition] = true
	}
}

// Lose removes partitions.
func (h *Holding) Lose(partitions []int32) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if len(partitions) > 0 {
		h.revocations++
	}
	for _, partition := range partitions {
		delete(h.partitions, partition)
	}
}

func (h *Holding) now() ([]int32, int) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return slices.Sorted(maps.Keys(h.partitions)), h.revocations
}

// settle waits until every partition is assigned once and every member has some, for a while; it returns the counts.
func settle(partitions int32, members ...Member) []int {
	deadline := time.Now().Add(Timeout)
	var heldSince time.Time
	for heldSince.IsZero() || time.Since(heldSince) < 300*time.Millisecond {
		if time.Now().After(deadline) {
			panic(fmt.Sprintf("partitions are not all assigned: %v", holdings(members)))
		}
		time.Sleep(20 * time.Millisecond)
		if !sharedOut(partitions, members) {
			heldSince = time.Time{}
		} else if heldSince.IsZero() {
			heldSince = time.Now()
		}
	}
	var sizes []int
	for _, held := range holdings(members) {
		sizes = append(sizes, len(held))
	}
	slices.Sort(sizes)
	return sizes
}

func holdings(members []Member) [][]int32 {
	var found [][]int32
	for _, member := range members {
		held, _ := member.Holding().now()
		found = append(found, held)
	}
	return found
}

func sharedOut(partitions int32, members []Member) bool {
	var all []int32
	for _, held := range holdings(members) {
		if len(held) == 0 {
			return false
		}
		all = append(all, held...)
	}
	slices.Sort(all)
	return len(all) == int(partitions) && len(slices.Compact(all)) == int(partitions)
}

// Rebalance starts one member, and lets a second one join and leave.
func Rebalance(call *Call, join func(instanceID string) Member) {
	first := join("")
	defer first.Close()
	call.Report(Step{"members": 1, "partitions": settle(call.Given.Partitions, first)})
	second := join("")
	call.Report(Step{"members": 2, "partitions": settle(call.Given.Partitions, first, second)})
	second.Close()
	call.Report(Step{"members": 1, "partitions": settle(call.Given.Partitions, first)})
}

// RestartStaticMember restarts one of two members with instance ids.
func RestartStaticMember(call *Call, join func(instanceID string) Member) {
	stays, restarted := join("stays"), join("restarted")
	defer stays.Close()
	shares := settle(call.Given.Partitions, stays, restarted)
	before, _ := restarted.Holding().now()
	_, revocations := stays.Holding().now()
	restarted.Close()
	restarted = join("restarted")
	defer restarted.Close()
	settle(call.Given.Partitions, stays, restarted)
	after, _ := restarted.Holding().now()
	_, later := stays.Holding().now()
	call.Report(Step{
		"partitions":               shares,
		"kept":                     slices.Equal(before, after),
		"revocations_of_the_other": later - revocations,
	})
}
