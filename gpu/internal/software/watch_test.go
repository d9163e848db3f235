// SPDX-License-Identifier: Apache-2.0

package software

import (
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/gpu/driver"
)

// watchingEngine notes what it is told.
type watchingEngine struct {
	testEngine
	told *[]string
}

func (e watchingEngine) Reads(mem []byte) { *e.told = append(*e.told, "read "+string(mem)) }

func (e watchingEngine) Writes(mem []byte) { *e.told = append(*e.told, "write "+string(mem)) }

func (e watchingEngine) Moves() { *e.told = append(*e.told, "move") }

// pageMemory is memory that is not Go's.
type pageMemory string

func (m pageMemory) Load(at int, into []byte) int { return copy(into, m[at:]) }

func (pageMemory) Store(int, []byte) int { return 0 }

// TestWatched has an engine told of all that is no dispatch: of one row that is read, and of memory that is filled from the page's, what it is,
// of the rest that it is something else.
func TestWatched(t *testing.T) {
	var told []string
	d := New(Config{Info: testInfo, Engine: watchingEngine{told: &told}, GoMemory: true})
	check(t, d.NewBuffer(1, 64, false))
	check(t, d.NewBuffer(2, 64, false))
	check(t, d.NewKernel(t.Context(), 1, &driver.Kernel{Source: "-", Entry: "-", Reference: func([3]uint32, []byte, [][]byte) {}}))
	into := make([]byte, 64)
	paged := func(at, size int) driver.Host {
		return driver.Host{Foreign: pageMemory("abcdefghijkl"), Offset: at, Size: size}
	}
	for what, c := range map[string]struct {
		do   func(list *driver.CommandList)
		read driver.Transfer
		want string
	}{
		"a write":                     {do: func(l *driver.CommandList) { l.Write(1, 0, driver.HostBytes([]byte("abcd"))) }, want: "move"},
		"a write from the page":       {do: func(l *driver.CommandList) { l.Write(1, 32, paged(0, 8)) }, want: "write abcdefgh"},
		"a write of a part of a word": {do: func(l *driver.CommandList) { l.Write(1, 32, paged(0, 5)) }, want: "write abcde\x00\x00\x00"},
		"a write from further on":     {do: func(l *driver.CommandList) { l.Write(1, 32, paged(4, 4)) }, want: "move"},
		"writes from the page": {do: func(l *driver.CommandList) {
			l.Write(1, 32, paged(0, 4))
			l.Write(1, 32, paged(0, 8))
		}, want: "move move"},
		"two writes": {do: func(l *driver.CommandList) {
			l.Write(1, 0, driver.HostBytes([]byte("abcd")))
			l.Write(2, 0, driver.HostBytes([]byte("efgh")))
		}, want: "move move"},
		"a copy":        {do: func(l *driver.CommandList) { l.Copy(2, 4, 1, 4, 4) }, want: "move"},
		"zeros":         {do: func(l *driver.CommandList) { l.Clear(2, 4, 4) }, want: "move"},
		"a dispatch":    {do: func(l *driver.CommandList) { l.Bind(1, 0, nil); l.Dispatch(1, 1, [3]uint32{1, 1, 1}, nil) }},
		"a row":         {read: driver.Transfer{Buffer: 1, Offset: 8, Width: 4, Pitch: 4, Count: 1}, want: "read \x00\x00\x00\x00"},
		"rows":          {read: driver.Transfer{Buffer: 1, Width: 4, Pitch: 8, Count: 2}, want: "move"},
		"a row further": {read: driver.Transfer{Buffer: 1, Offset: 8, Width: 4, Pitch: 4, Count: 1, HostOffset: 8}, want: "move"},
	} {
		told = nil
		if c.do != nil {
			var list driver.CommandList
			c.do(&list)
			check(t, d.Submit(&list))
		} else {
			c.read.Host = driver.HostBytes(into)
			check(t, d.Read(t.Context(), c.read))
		}
		check(t, d.Wait(t.Context()))
		if got := strings.Join(told, " "); got != c.want {
			t.Errorf("%s: told %q, want %q", what, got, c.want)
		}
	}
	check(t, d.Close())
}
