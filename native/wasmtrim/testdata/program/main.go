// SPDX-License-Identifier: Apache-2.0

// Command program does what the runtime needs tables of functions for: it collects garbage, grows stacks, recovers.
package main

import (
	"fmt"
	"os"
	"runtime"
	"sort"
	"strings"
	"sync"
)

type node struct {
	left, right *node
	text        string
}

func tree(depth int) *node {
	if depth == 0 {
		return &node{text: strings.Repeat("x", 10)}
	}
	return &node{left: tree(depth - 1), right: tree(depth - 1)}
}

func (n *node) count() int {
	if n == nil {
		return 0
	}
	return 1 + n.left.count() + n.right.count()
}

func deep(n int, s []int) int {
	var local [16]int
	local[n%16] = n
	if n == 0 {
		return len(s)
	}
	return deep(n-1, append(s, local[n%16])) + 1
}

type value struct{ n int }

//go:noinline
func (v value) get() int { return v.n }

type getter interface{ get() int }

// failing runs f and returns what it panics with.
func failing(f func()) (text string) {
	defer func() { text = fmt.Sprint(recover()) }()
	f()
	return ""
}

func failures() []string {
	getters := map[int]getter{0: (*value)(nil), 1: value{1}}
	var m map[string]int
	zero := len(m)
	return []string{
		failing(func() { panic("mine") }),
		failing(func() { m["x"] = 1 }),
		failing(func() { _ = 1 / zero }),
		failing(func() { _ = []int{1, 2}[zero+2] }),
		failing(func() { _ = getters[zero].get() }), // the runtime names the method
		failing(func() { defer func() { panic("again") }(); panic("first") }),
	}
}

func main() {
	if len(os.Args) > 1 {
		panic("the end")
	}
	n := tree(14)
	for range 5 {
		runtime.GC()
	}
	var wg sync.WaitGroup
	sums := make([]int, 8)
	for i := range sums {
		wg.Go(func() {
			sums[i] = deep(20000+i, nil)
			runtime.Gosched()
			sums[i] += tree(8).count()
		})
	}
	wg.Wait()
	sort.Ints(sums)
	fmt.Println(n.count(), sums, strings.Join(failures(), "; "))
}
