// SPDX-License-Identifier: Apache-2.0

package ctest

import (
	"context"
	"testing"
	"time"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/gpu/gputest"
)

// Benchmark measures what calls of the driver cost.
func Benchmark(b *testing.B, bench Bench) {
	b.Run("Submit", func(b *testing.B) { benchmarkSubmit(b, &bench) })
	b.Run("Read", func(b *testing.B) { benchmarkRead(b, &bench) })
	b.Run("Write", func(b *testing.B) { benchmarkWrite(b, &bench) })
	b.Run("Map", func(b *testing.B) { benchmarkMap(b, &bench) })
}

// benchmarkSubmit measures what a dispatch costs the caller of Submit: lists of 200 dispatches of a tiny kernel with sets
// that exist, each submitted when the one before is done.
func benchmarkSubmit(b *testing.B, bench *Bench) {
	const dispatches, n = 200, 64
	for name, blocks := range map[string]func(i int) []byte{
		"same parameters":  func(int) []byte { return gputest.PutU32(nil, n, 1) },
		"other parameters": func(i int) []byte { return gputest.PutU32(nil, n, uint32(i)) },
	} {
		b.Run(name, func(b *testing.B) {
			d := bench.open(b)
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

// benchmarkRead measures a readback of 16 bytes and of a megabyte.
func benchmarkRead(b *testing.B, bench *Bench) {
	for name, size := range map[string]int{"16": 16, "1Mi": 1 << 20} {
		b.Run(name, func(b *testing.B) {
			d := bench.open(b)
			must(b, d.NewBuffer(1, 1<<20, false))
			t := driver.Transfer{Buffer: 1, Host: driver.HostBytes(make([]byte, size)), Width: size, Count: 1}
			b.SetBytes(int64(size))
			for b.Loop() {
				must(b, d.Read(context.Background(), t))
			}
		})
	}
}

// benchmarkWrite measures uploads of a megabyte.
func benchmarkWrite(b *testing.B, bench *Bench) {
	const size = 1 << 20
	d := bench.open(b)
	must(b, d.NewBuffer(1, size, false))
	var l driver.CommandList
	l.Write(1, 0, driver.HostBytes(make([]byte, size)))
	b.SetBytes(size)
	for b.Loop() {
		must(b, d.Submit(&l))
	}
	must(b, d.Wait(context.Background()))
}

// benchmarkMap measures mapping and unmapping.
func benchmarkMap(b *testing.B, bench *Bench) {
	d := bench.open(b)
	must(b, d.NewBuffer(1, 1<<20, true))
	for b.Loop() {
		_, err := d.Map(context.Background(), 1, 0, 1<<20)
		must(b, err)
		must(b, d.Unmap(1))
	}
}
