// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js

package cogent

import (
	"context"
	"testing"
	"time"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/gpu/gputest"
)

// BenchmarkSubmit measures what a dispatch costs the caller of Submit: lists of 200 dispatches of a tiny kernel with sets
// that exist, each submitted when the one before is done.
func BenchmarkSubmit(b *testing.B) {
	const dispatches, n = 200, 64
	for name, blocks := range map[string]func(i int) []byte{
		"same parameters":  func(int) []byte { return gputest.PutU32(nil, n, 1) },
		"other parameters": func(i int) []byte { return gputest.PutU32(nil, n, uint32(i)) },
	} {
		b.Run(name, func(b *testing.B) {
			d := openDevice(b)
			prepareAxpy(b, d, 1, n)
			var l driver.CommandList
			for i := range dispatches {
				l.Dispatch(1, 1, groups(n), blocks(i))
			}
			var all, best time.Duration
			for b.Loop() {
				begin := time.Now()
				must(b, d.Submit(&l))
				took := time.Since(begin)
				all += took
				if best == 0 || took < best {
					best = took
				}
				must(b, d.Wait(context.Background()))
			}
			b.ReportMetric(float64(all.Nanoseconds())/float64(b.N)/dispatches, "ns/dispatch")
			b.ReportMetric(float64(best.Nanoseconds())/dispatches, "best-ns/dispatch") // without the neighbours
		})
	}
}

// BenchmarkRead measures a readback of 16 bytes and of a megabyte.
func BenchmarkRead(b *testing.B) {
	for name, size := range map[string]int{"16": 16, "1Mi": 1 << 20} {
		b.Run(name, func(b *testing.B) {
			d := openDevice(b)
			must(b, d.NewBuffer(1, 1<<20, false))
			t := driver.Transfer{Buffer: 1, Host: driver.HostBytes(make([]byte, size)), Width: size, Count: 1}
			b.SetBytes(int64(size))
			for b.Loop() {
				must(b, d.Read(context.Background(), t))
			}
		})
	}
}

// BenchmarkWrite measures uploads of a megabyte.
func BenchmarkWrite(b *testing.B) {
	const size = 1 << 20
	d := openDevice(b)
	must(b, d.NewBuffer(1, size, false))
	var l driver.CommandList
	l.Write(1, 0, driver.HostBytes(make([]byte, size)))
	b.SetBytes(size)
	for b.Loop() {
		must(b, d.Submit(&l))
	}
	must(b, d.Wait(context.Background()))
}

// BenchmarkMap measures mapping and unmapping.
func BenchmarkMap(b *testing.B) {
	d := openDevice(b)
	must(b, d.NewBuffer(1, 1<<20, true))
	for b.Loop() {
		_, err := d.Map(context.Background(), 1, 0, 1<<20)
		must(b, err)
		must(b, d.Unmap(1))
	}
}
