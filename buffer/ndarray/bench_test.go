// SPDX-License-Identifier: Apache-2.0

package ndarray_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/ndarray"
	"github.com/sublet-gpu/sublet/gpu"
)

// BenchmarkLoad loads a dictionary of 256 MiB from a file, and in turn reads the file into Go memory that it takes for it;
// of-copy is how the throughputs compare.
func BenchmarkLoad(b *testing.B) {
	path := filepath.Join(b.TempDir(), "x.params")
	const arrays, size = 64, 4 << 20
	{
		dev := open(b, "cpu")
		var p ndarray.Params
		for i := range arrays {
			a, err := ndarray.Alloc(dev, dtype.Float32, size/4)
			check(b, err)
			check(b, a.Fill(b.Context(), float64(i)))
			check(b, p.Add(fmt.Sprint("layer", i), a))
			check(b, a.Close())
		}
		f, err := os.Create(path)
		check(b, err)
		check(b, ndarray.SaveParams(b.Context(), f, &p))
		check(b, f.Close())
		check(b, p.Close())
	}
	for _, driver := range gpu.Drivers() {
		for where, opts := range map[string][]ndarray.LoadOption{"device": nil, "host": {ndarray.OnHost()}} {
			b.Run(driver+"/"+where, func(b *testing.B) {
				dev := open(b, driver)
				f, err := os.Open(path)
				check(b, err)
				defer f.Close()
				var loaded, copied time.Duration
				b.SetBytes(arrays * size)
				for b.Loop() {
					start := time.Now()
					p, err := ndarray.LoadParams(b.Context(), dev, f, opts...)
					check(b, err)
					check(b, dev.Sync(b.Context()))
					loaded += time.Since(start)
					b.StopTimer()
					check(b, p.Close())
					copied += plain(b, f)
					check(b, second(f.Seek(0, io.SeekStart)))
					b.StartTimer()
				}
				b.ReportMetric(copied.Seconds()/loaded.Seconds(), "of-copy")
			})
		}
	}
}

// plain reads the file into memory, array by array, and returns how long that took.
func plain(b *testing.B, f *os.File) time.Duration {
	b.Helper()
	check(b, second(f.Seek(0, io.SeekStart)))
	start := time.Now()
	var kept [64][]byte
	for i := range kept {
		kept[i] = make([]byte, 4<<20)
		if _, err := io.ReadFull(f, kept[i]); err != nil {
			b.Fatal(err)
		}
	}
	took := time.Since(start)
	runtime.KeepAlive(&kept)
	return took
}
