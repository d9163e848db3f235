// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm

package main

import (
	"syscall/js"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/buffer/cruncher/balance"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/recent"
	"github.com/sublet-gpu/sublet/wasm/internal/page"
)

// What divides a cruncher's ranges, in the order of web/src/crunch-balancer.mjs.
const (
	usualBalancer = iota
	legacyBalancer
	rawBalancer
	ownBalancer // followed by two functions
)

// balancers reads what makes balancers of a kind. Each cruncher has its own.
func (s *server) balancers(r *page.Reader) func() balance.Balancer {
	switch r.Index(ownBalancer + 1) {
	case legacyBalancer:
		return balance.NewLegacy
	case rawBalancer:
		return balance.NewLegacyRaw
	case ownBalancer:
		split, observe := functionOf(r.Object()), functionOf(r.Object())
		return func() balance.Balancer { return &pageBalancer{Balancer: balance.New(), split: split, observe: observe} }
	}
	return balance.New
}

func functionOf(object any) js.Value {
	f, ok := object.(js.Value)
	if !ok || f.Type() != js.TypeFunction {
		page.Invalid("a callback that is no function")
	}
	return f
}

// pageBalancer has functions of the page's divide ranges. They are told what the usual balancer, which sees the same samples, would do, and may leave
// it to that. They throw nothing: that they failed is a text in place of the counts. They cannot ask the program anything, such as
// [balance.Request.Moves]: no export can be called before they return.
type pageBalancer struct {
	balance.Balancer
	split, observe js.Value
	counts         recent.Map[int, [][]int] // by id, the last ones at the end
}

// remembered is how many splits of an id Stats tells of, as those of package balance do.
const remembered = 10

// Split implements [balance.Balancer].
func (b *pageBalancer) Split(r balance.Request) ([]int, error) {
	usual, err := b.Balancer.Split(r)
	if err != nil || r.Global == 0 {
		return usual, err
	}
	switch answer := b.split.Invoke(r.ID, r.Global, r.Step, page.List(r.Alive), page.List(usual)); answer.Type() {
	case js.TypeString:
		return nil, fault.Fail("balancer", cruncher.ErrCallback, answer.String())
	case js.TypeObject:
		usual = ints(answer)
	}
	past := b.counts.Get(r.ID)
	if len(past) > 0 && len(past[0]) != len(usual) {
		past = nil
	}
	b.counts.Put(r.ID, append(past[max(len(past)+1-remembered, 0):len(past):len(past)], usual))
	return usual, nil
}

// Observe implements [balance.Balancer].
func (b *pageBalancer) Observe(id int, samples []balance.Sample) {
	b.Balancer.Observe(id, samples)
	counts, seconds := make([]any, len(samples)), make([]any, len(samples))
	for i, s := range samples {
		counts[i], seconds[i] = s.Count, s.Seconds
	}
	b.observe.Invoke(id, counts, seconds)
}

// Stats implements [balance.Balancer].
func (b *pageBalancer) Stats(id int) balance.Stats {
	st := b.Balancer.Stats(id)
	st.History = b.counts.Peek(id)
	if n := len(st.History); n > 0 {
		counts, all := st.History[n-1], 0
		for _, c := range counts {
			all += c
		}
		for i, c := range counts {
			st.Shares[i] = float64(c) / float64(max(all, 1))
		}
	}
	return st
}

// ints are the numbers of an array.
func ints(array js.Value) []int {
	list := make([]int, array.Length())
	for i := range list {
		list[i] = array.Index(i).Int()
	}
	return list
}
