// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm

package browser

import (
	"context"
	"strconv"
	"testing"

	"github.com/sublet-gpu/sublet/gpu/driver"
)

// BenchmarkSubmit records a list of small dispatches on cached binding sets and submits it. The time is that of the Go
// side and of the helper; the GPU's is left out.
func BenchmarkSubmit(b *testing.B) {
	for _, n := range []int{1, 20, 200} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			d := openDevice(b)
			newKernel(b, d, 1, &scale)
			const sets = 8
			for i := range uint32(sets) {
				newBuffer(b, d, driver.BufferID(1+i), 1024)
				submit(b, d, func(l *driver.CommandList) {
					l.Bind(driver.BindingsID(1+i), scale.Layout, []driver.Binding{{Buffer: driver.BufferID(1 + i), Size: 1024}})
				})
			}
			var l driver.CommandList
			run := func() {
				l.Reset()
				for i := range n {
					l.Dispatch(1, driver.BindingsID(1+i%sets), [3]uint32{1, 1, 1}, scaleParams(1, uint32(i&1)))
				}
				if err := d.Submit(&l); err != nil {
					b.Fatal(err)
				}
			}
			run()
			done := 0
			for b.Loop() {
				run()
				if done++; done%16 == 0 { // the queue must not fill up
					b.StopTimer()
					if err := d.Wait(context.Background()); err != nil {
						b.Fatal(err)
					}
					b.StartTimer()
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n)/1000, "us/dispatch")
		})
	}
}

// BenchmarkWrite and BenchmarkRead move Go memory to the GPU and back.
func BenchmarkWrite(b *testing.B) { benchmarkTransfer(b, false) }

func BenchmarkRead(b *testing.B) { benchmarkTransfer(b, true) }

func benchmarkTransfer(b *testing.B, read bool) {
	for _, size := range []int{16, 64 << 10, 4 << 20} {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			d := openDevice(b)
			newBuffer(b, d, 1, uint64(size))
			host := driver.HostBytes(make([]byte, size))
			b.SetBytes(int64(size))
			for b.Loop() {
				if read {
					err := d.Read(context.Background(), driver.Transfer{Buffer: 1, Host: host, Width: size, Count: 1})
					if err != nil {
						b.Fatal(err)
					}
					continue
				}
				submit(b, d, func(l *driver.CommandList) { l.Write(1, 0, host) })
			}
		})
	}
}
