// SPDX-License-Identifier: Apache-2.0

package ndarray_test

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/params"
	"github.com/sublet-gpu/sublet/buffer/ndarray"
	"github.com/sublet-gpu/sublet/gpu"
)

var dictionary = flag.Int("dictionary", 256, "MiB of what BenchmarkLoad and BenchmarkSave load and save")

// dictionaries are the sizes of tensors that make up such a dictionary.
func dictionaries() map[string][]int64 {
	total := int64(*dictionary) << 20
	large := []int64{total * 3 / 4, total / 4}
	return map[string][]int64{"large": large, "small": slices.Repeat([]int64{total / 64}, 64)}
}

func headers(sizes []int64) []file.Header {
	list := make([]file.Header, len(sizes))
	for i, n := range sizes {
		list[i] = file.Header{Name: fmt.Sprint("layer", i), Type: dtype.Uint8, Shape: []int64{n}, Size: n}
	}
	return list
}

// clock takes the fastest of several times, each from a state in which no memory is at hand.
type clock struct {
	start   time.Time
	fastest time.Duration
}

func (c *clock) begin() {
	debug.FreeOSMemory()
	c.start = time.Now()
}

func (c *clock) end() {
	if took := time.Since(c.start); c.fastest == 0 || took < c.fastest {
		c.fastest = took
	}
}

// BenchmarkLoad loads dictionaries from a file that is in the system's cache, and in turn reads the file into Go memory that it
// takes for it; of-copy is how the throughputs compare, the fastest of each.
//
//	go test ./buffer/ndarray -run xxx -bench Load -benchtime 10x
//	go test ./buffer/ndarray -run xxx -bench Load -benchtime 5x -dictionary 1024
func BenchmarkLoad(b *testing.B) {
	for name, sizes := range dictionaries() {
		path := filepath.Join(b.TempDir(), name)
		f, err := os.Create(path)
		check(b, err)
		defer f.Close()
		w, err := params.NewWriter(f, headers(sizes), params.Options{})
		check(b, err)
		check(b, second(io.Copy(w, &source{left: int64(*dictionary) << 20})))
		check(b, w.Close())
		for _, driver := range gpu.Drivers() {
			for where, opts := range map[string]ndarray.LoadOptions{"device": {}, "host": {OnHost: true}} {
				b.Run(name+"/"+driver+"/"+where, func(b *testing.B) {
					dev := open(b, driver)
					var loaded, copied clock
					b.SetBytes(int64(*dictionary) << 20)
					for b.Loop() {
						b.StopTimer()
						copied.begin()
						plain(b, f, sizes)
						copied.end()
						check(b, second(f.Seek(0, io.SeekStart)))
						b.StartTimer()
						loaded.begin()
						p, err := ndarray.LoadParams(b.Context(), dev, f, opts)
						check(b, err)
						check(b, dev.Sync(b.Context()))
						loaded.end()
						b.StopTimer()
						check(b, p.Close())
						check(b, dev.Sync(b.Context()))
						b.StartTimer()
					}
					b.ReportMetric(copied.fastest.Seconds()/loaded.fastest.Seconds(), "of-copy")
				})
			}
		}
	}
}

// source is left bytes that count up.
type source struct{ left int64 }

func (s *source) Read(b []byte) (int, error) {
	if s.left == 0 {
		return 0, io.EOF
	}
	n := int(min(int64(len(b)), s.left))
	for done := 0; done < n; {
		done += copy(b[done:n], countdown[-(s.left-int64(done))&255:])
	}
	s.left -= int64(n)
	return n, nil
}

// plain reads a file into memory, tensor by tensor.
func plain(b *testing.B, f *os.File, sizes []int64) {
	b.Helper()
	check(b, second(f.Seek(0, io.SeekStart)))
	var kept [][]byte
	for _, n := range sizes {
		mem := make([]byte, n)
		check(b, second(io.ReadFull(f, mem)))
		kept = append(kept, mem)
	}
	runtime.KeepAlive(kept)
}

// BenchmarkSave writes dictionaries over a file, and in turn the bytes of as large ones from memory; of-copy is how the
// throughputs compare, the fastest of each.
//
//	go test ./buffer/ndarray -run xxx -bench Save -benchtime 10x
func BenchmarkSave(b *testing.B) {
	for name, sizes := range dictionaries() {
		f, err := os.Create(filepath.Join(b.TempDir(), name))
		check(b, err)
		defer f.Close()
		var bytes [][]byte
		for _, n := range sizes {
			bytes = append(bytes, make([]byte, n))
			check(b, second(io.ReadFull(&source{left: n}, bytes[len(bytes)-1])))
		}
		for _, driver := range gpu.Drivers() {
			for where, opts := range map[string]ndarray.LoadOptions{"device": ndarray.ByPieces(), "mapped": {}, "host": {OnHost: true}} {
				b.Run(name+"/"+driver+"/"+where, func(b *testing.B) {
					dev := open(b, driver)
					p, err := ndarray.Load(b.Context(), dev, &tensors{headers: headers(sizes)}, opts)
					check(b, err)
					defer p.Close()
					var saved, copied clock
					b.SetBytes(int64(*dictionary) << 20)
					for b.Loop() {
						b.StopTimer()
						check(b, second(f.Seek(0, io.SeekStart)))
						copied.begin()
						for _, mem := range bytes {
							check(b, second(f.Write(mem)))
						}
						copied.end()
						check(b, second(f.Seek(0, io.SeekStart)))
						b.StartTimer()
						saved.begin()
						check(b, ndarray.SaveParams(b.Context(), f, p, params.Options{}))
						saved.end()
					}
					b.ReportMetric(copied.fastest.Seconds()/saved.fastest.Seconds(), "of-copy")
				})
			}
		}
	}
}
