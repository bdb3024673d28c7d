package driver

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// Member is a consumer in a group that does its part of the protocol by itself.
type Member interface {
	Holding() *Holding
	Close()
}

// Holding is what a member has, as its client tells it.
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

// Lose takes partitions away.
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

// settle waits until each partition is with one member and no member without, for a while; how many each has.
func settle(partitions int32, members ...Member) []int {
	deadline := time.Now().Add(Timeout)
	var heldSince time.Time
	for heldSince.IsZero() || time.Since(heldSince) < 300*time.Millisecond {
		if time.Now().After(deadline) {
			panic(fmt.Sprintf("not shared out: %v", holdings(members)))
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

// Rebalance has one member, a second one joins, and leaves.
func Rebalance(call *Call, join func(instanceID string) Member) {
	first := join("")
	defer first.Close()
	call.Tell(Step{"members": 1, "partitions": settle(call.Given.Partitions, first)})
	second := join("")
	call.Tell(Step{"members": 2, "partitions": settle(call.Given.Partitions, first, second)})
	second.Close()
	call.Tell(Step{"members": 1, "partitions": settle(call.Given.Partitions, first)})
}

// RestartStaticMember has two members with instance ids, of which one is restarted.
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
	call.Tell(Step{
		"partitions":               shares,
		"kept":                     slices.Equal(before, after),
		"revocations_of_the_other": later - revocations,
	})
}
