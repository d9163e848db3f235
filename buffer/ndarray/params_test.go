// SPDX-License-Identifier: Apache-2.0

package ndarray_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/params"
	"github.com/sublet-gpu/sublet/buffer/ndarray"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
)

// saved returns the data that a dictionary with one array holds, and checks that it loads again.
func saved(t *testing.T, dev *gpu.Device, a *ndarray.Array) []byte {
	t.Helper()
	var out bytes.Buffer
	check(t, ndarray.SaveParams(t.Context(), &out, ndarray.Params{{Name: "x", Array: a}}, params.Options{}))
	r, err := params.NewReader(bytes.NewReader(out.Bytes()), params.Options{})
	check(t, err)
	h, err := r.Next()
	check(t, err)
	data, err := io.ReadAll(r)
	check(t, err)
	if int(h.Size) != len(data) || len(data) != a.Size() {
		t.Errorf("%d bytes for %d", len(data), a.Size())
	}
	for _, where := range []ndarray.LoadOptions{{}, ndarray.ByPieces(), {OnHost: true}} {
		back, err := ndarray.LoadParams(t.Context(), dev, bytes.NewReader(out.Bytes()), where)
		check(t, err)
		b, err := back.Get("x")
		check(t, err)
		raw, err := b.Bytes(t.Context())
		check(t, err)
		if !bytes.Equal(raw, data) || !slices.Equal(b.Shape(), a.Shape()) || b.DType() != a.DType() {
			t.Errorf("%v %v read back as %v %v", a.DType(), a.Shape(), b.DType(), b.Shape())
		}
		check(t, back.Close())
	}
	return data
}

// TestStored are the rows of what is stored for special arrays.
func TestStored(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		must := must[*ndarray.Array](t)
		for name, a := range from(t, dev, []int8{1, 2, 3, 4, 5, 6}, 6) {
			if got := saved(t, dev, a); !bytes.Equal(got, []byte{1, 2, 3, 4, 5, 6}) {
				t.Errorf("%s: %v", name, got)
			}
			at := must(a.View(dtype.Int8, 1, 5))
			if got := saved(t, dev, at); !bytes.Equal(got, []byte{2, 3, 4, 5, 6}) {
				t.Errorf("%s, byte offset: %v", name, got)
			}
			grid := must(a.Reshape(2, 3))
			turned := must(grid.Transpose())
			if got := saved(t, dev, turned); !bytes.Equal(got, []byte{1, 4, 2, 5, 3, 6}) {
				t.Errorf("%s, strides, which the reference ignores: %v", name, got)
			}
			for _, x := range []*ndarray.Array{a, at, grid, turned} {
				check(t, x.Close())
			}
		}
		for name, a := range map[string]*ndarray.Array{
			"bool as uint1":     must(ndarray.FromBytes(dev, dtype.Bool1, []byte{1, 0, 1}, 3)),
			"bool of a newer":   must(ndarray.FromBytes(dev, dtype.Bool8, []byte{1, 0, 1}, 3)),
			"zero elements":     must(ndarray.Alloc(dev, i32, 3, 0)),
			"zero elements too": must(ndarray.Alloc(dev, i32, 0, 3)),
			"scalar":            must(ndarray.Alloc(dev, dtype.Float64)),
			"code 99":           must(ndarray.FromBytes(dev, dtype.Type{Code: 99, Bits: 8, Lanes: 1}, []byte{7}, 1)),
		} {
			want, err := a.Bytes(t.Context())
			check(t, err)
			if got := saved(t, dev, a); !bytes.Equal(got, want) {
				t.Errorf("%s: %v, want %v", name, got, want)
			}
			check(t, a.Close())
		}
		lanes := must(ndarray.Alloc(dev, dtype.Type{Code: dtype.Int8.Code, Bits: 8, Lanes: 4}, 2))
		var out bytes.Buffer
		if err := ndarray.SaveParams(t.Context(), &out, ndarray.Params{{Name: "x", Array: lanes}}, params.Options{}); err == nil || out.Len() != 0 {
			t.Errorf("lanes: %v after %d bytes", err, out.Len())
		}
		closed(t, dev, lanes)
	})
}

// TestNames: a name may be empty or have a NUL, the order is kept, a second one of a name is refused.
func TestNames(t *testing.T) {
	dev := open(t, "cpu")
	names := []string{"z", "", "a\x00b", "m\xff", "a"}
	var p ndarray.Params
	for i, name := range names {
		a, err := ndarray.FromSlice(dev, []int32{int32(i)})
		check(t, err)
		p = append(p, ndarray.Param{Name: name, Array: a})
		twice := append(p[:i+1:i+1], p[i])
		is(t, "twice", ndarray.SaveParams(t.Context(), io.Discard, twice, params.Options{}), file.ErrDuplicate)
	}
	var out, again bytes.Buffer
	check(t, ndarray.SaveParams(t.Context(), &out, p, params.Options{}))
	back, err := ndarray.LoadParams(t.Context(), dev, bytes.NewReader(out.Bytes()), ndarray.LoadOptions{})
	check(t, err)
	if !slices.Equal(namesOf(back), names) {
		t.Errorf("%q", namesOf(back))
	}
	for i, one := range back {
		got, err := back.Get(one.Name)
		check(t, err)
		if got != one.Array {
			t.Errorf("%q is two arrays", one.Name)
		}
		holds(t, one.Name, got, int32(i))
	}
	is(t, "unknown", second(back.Get("q")), ndarray.ErrName)
	check(t, ndarray.SaveParams(t.Context(), &again, back, params.Options{}))
	if !bytes.Equal(out.Bytes(), again.Bytes()) {
		t.Error("saved again the file differs")
	}
	if len(back) != 5 || back[2].Name != "a\x00b" || back[2].Array.Size() != 4 || back[2].Array.DType() != i32 {
		t.Errorf("%v", back)
	}
	check(t, back.Close())
	check(t, back.Close())
	check(t, p.Close())
	none := ndarray.Params{{}}
	is(t, "no array", ndarray.SaveParams(t.Context(), io.Discard, none, params.Options{}), buffer.ErrNil)
	check(t, none.Close())
	closed(t, dev)
}

// countdown has byte(-i) at i.
var countdown = func() []byte {
	b := make([]byte, 1<<16)
	for i := range b {
		b[i] = byte(-i)
	}
	return b
}()

// tensors is a file of tensors whose bytes are made as they are read.
type tensors struct {
	headers []file.Header
	read    func(b []byte) (int, error) // nil: counts up
	left    int64
}

func (r *tensors) Next() (file.Header, error) {
	if len(r.headers) == 0 {
		return file.Header{}, io.EOF
	}
	h := r.headers[0]
	r.headers, r.left = r.headers[1:], h.Size
	return h, nil
}

func (r *tensors) Read(b []byte) (int, error) {
	if r.read != nil {
		return r.read(b)
	}
	n := min(int64(len(b)), r.left)
	for done := int64(0); done < n; {
		done += int64(copy(b[done:n], countdown[-(r.left-done)&255:]))
	}
	if r.left -= n; n == 0 && len(b) > 0 {
		return 0, io.EOF
	}
	return int(n), nil
}

// TestLoad loads sizes around those of pieces and words.
func TestLoad(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		var headers []file.Header
		for i, n := range []int64{0, 1, 3, 4, 5, 1<<20 - 1, 1 << 20, 1<<20 + 1, 3<<20 + 2, 33 << 20, 7} {
			headers = append(headers, file.Header{Name: string(rune('a' + i)), Type: dtype.Uint8, Shape: []int64{n}, Size: n})
		}
		for _, c := range []struct {
			where ndarray.LoadOptions
			want  buffer.Location
		}{{ndarray.LoadOptions{}, buffer.Device}, {ndarray.ByPieces(), buffer.Device}, {ndarray.LoadOptions{OnHost: true}, buffer.Host}} {
			p, err := ndarray.Load(t.Context(), dev, &tensors{headers: headers}, c.where)
			check(t, err)
			for _, h := range headers {
				a, err := p.Get(h.Name)
				check(t, err)
				got, err := a.Bytes(t.Context())
				check(t, err)
				want := make([]byte, h.Size)
				for i := range want[:min(len(want), 256)] {
					want[i] = byte(h.Size - int64(i))
				}
				for i := 256; i < len(want); i *= 2 {
					copy(want[i:], want[:i])
				}
				if !bytes.Equal(got, want) {
					t.Errorf("%d bytes are not those of the file", h.Size)
				}
				buf, err := a.Buffer()
				check(t, err)
				if buf.Location() != c.want && h.Size > 0 {
					t.Errorf("%d bytes are on the %v", h.Size, buf.Location())
				}
				check(t, buf.Close())
			}
			check(t, p.Close())
		}
		closed(t, dev)
	})
}

// sink takes what is written and keeps a checksum.
type sink struct {
	n   int64
	sum uint32
}

func (s *sink) Write(b []byte) (int, error) {
	s.sum = crc32.Update(s.sum, crc32.IEEETable, b)
	s.n += int64(len(b))
	return len(b), nil
}

func (s *sink) Close() error { return nil }

// live returns the bytes of Go memory that are in use.
func live() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// meter loads from a dictionary and looks at each read how much Go memory is in use beside the tensors' own.
type meter struct {
	*params.Reader
	heap          func() int64
	base          int64
	inGo          bool  // the tensors are put into Go memory
	done, current int64 // bytes of tensors
	most, least   int64
}

const besideMax = 64 << 20

func (m *meter) Next() (file.Header, error) {
	h, err := m.Reader.Next()
	m.done, m.current = m.done+m.current, h.Size
	return h, err
}

func (m *meter) Read(b []byte) (int, error) {
	beside := m.heap() - m.base
	if m.inGo {
		beside -= m.done
		if beside > besideMax { // memory for the current tensor has been taken, all of it
			beside -= m.current
		}
	}
	m.most, m.least = max(m.most, beside), min(m.least, beside)
	return m.Reader.Read(b)
}

// heap returns the bytes of Go memory in use, with those that the collector has not come to yet.
func heap() int64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}

// stream writes a dictionary as it is read, and puts the sum of its tensors' data into want before its end.
func stream(t *testing.T, headers []file.Header, want *sink) io.Reader {
	r, w := io.Pipe()
	t.Cleanup(func() { check(t, r.Close()) })
	block := make([]byte, 1<<20)
	check(t, second((&source{left: 1 << 20}).Read(block)))
	go func() {
		p, err := params.NewWriter(w, headers, params.Options{})
		for i := range headers {
			for left := headers[i].Size; left > 0 && err == nil; {
				part := block[:min(left, int64(len(block)))]
				binary.LittleEndian.PutUint64(block, uint64(want.n)) // no block is like another
				_, _ = want.Write(part)
				_, err = p.Write(part)
				left -= int64(len(part))
			}
		}
		if err == nil {
			err = p.Close()
		}
		_ = w.CloseWithError(err) // without one the end
	}()
	return r
}

// TestLoadMemory loads a dictionary of 1 GiB, of tensors large and small, and saves it again. In a page it has a quarter, since
// the oracle's memory is that of the program there, which has 4 GiB in all.
func TestLoadMemory(t *testing.T) {
	whole := int64(1 << 30)
	if runtime.GOARCH == "wasm" || !devtest.Long() {
		whole /= 4
	}
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		sizes := []int64{whole / 2, 5, whole/32 + 1, 1 << 10, whole / 4, 0, 4<<20 + 3, whole / 16, 1 << 20}
		total := int64(0)
		for _, n := range sizes {
			total += n
		}
		sizes = append(sizes, whole-total)
		inGo := dev.Info().Driver == "cpu" || dev.Info().Driver == "simd" && runtime.GOOS == "js" // buffers are
		for _, c := range []struct {
			name  string
			sizes []int64
			opt   ndarray.LoadOptions
			inGo  bool
			heap  func() int64
		}{
			{"device", sizes, ndarray.LoadOptions{}, inGo, heap},
			{"host", sizes, ndarray.LoadOptions{OnHost: true}, true, heap},
			{"pieces", []int64{96 << 20}, ndarray.ByPieces(), inGo, live}, // these drivers copy what they are given
		} {
			var want, got sink
			debug.FreeOSMemory() // what came before should not count
			m := &meter{heap: c.heap, base: live(), inGo: c.inGo}
			var err error
			m.Reader, err = params.NewReader(stream(t, headers(c.sizes), &want), params.Options{})
			check(t, err)
			p, err := ndarray.Load(t.Context(), dev, m, c.opt)
			check(t, err)
			if m.most > besideMax || m.least < -besideMax/8 {
				t.Errorf("%s: loading took from %d to %d bytes of Go memory beside the tensors", c.name, m.least, m.most)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			check(t, ndarray.Save(t.Context(), p, to(&got)))
			runtime.ReadMemStats(&after)
			if used := after.TotalAlloc - before.TotalAlloc; used > 8<<20 {
				t.Errorf("%s: saving %d bytes took %d", c.name, got.n, used)
			}
			if got != want || len(p) != len(c.sizes) {
				t.Errorf("%s: loaded and saved %d tensors, %+v, want %d, %+v", c.name, len(p), got, len(c.sizes), want)
			}
			check(t, p.Close())
		}
		closed(t, dev)
	})
}

// TestLoadHostile loads what claims too much, ends early, lies or stalls: a typed error, and nothing left.
func TestLoadHostile(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		one := file.Header{Name: "a", Type: dtype.Uint8, Shape: []int64{100}, Size: 100}
		with := func(change func(h *file.Header)) []file.Header {
			h := one
			h.Name = "b"
			change(&h)
			return []file.Header{one, h}
		}
		broken := errors.New("broken")
		after := func(n int, last func(b []byte) (int, error)) func(b []byte) (int, error) {
			return func(b []byte) (int, error) {
				if n == 0 {
					return last(b)
				}
				m := min(n, len(b))
				n -= m
				return m, nil
			}
		}
		for _, c := range []struct {
			what    string
			headers []file.Header
			then    func(b []byte) (int, error) // what becomes of reading byte 150
			limit   int64
			want    error
		}{
			{"a name twice", []file.Header{one, one}, nil, 0, file.ErrDuplicate},
			{"a size that is not the shape's", with(func(h *file.Header) { h.Size = 99 }), nil, 0, file.ErrFormat},
			{"a negative size", with(func(h *file.Header) { h.Size = -100 }), nil, 0, file.ErrFormat},
			{"a negative dimension", with(func(h *file.Header) { h.Shape = []int64{-100} }), nil, 0, buffer.ErrSize},
			{"a shape that overflows", with(func(h *file.Header) { h.Shape = []int64{1 << 62, 8} }), nil, 0, buffer.ErrSize},
			{"a huge claim", with(func(h *file.Header) { h.Shape, h.Size = []int64{1 << 50}, 1<<50 }), nil, 0, gpu.ErrLimit},
			{"a type", with(func(h *file.Header) { h.Type.Bits = 12 }), nil, 0, ndarray.ErrType},
			{"too many dimensions", with(func(h *file.Header) { h.Shape = make([]int64, 33) }), nil, 0, buffer.ErrShape},
			{"the limit", with(func(*file.Header) {}), nil, 199, file.ErrTooLarge},
			{"an early end", with(func(*file.Header) {}), func([]byte) (int, error) { return 0, io.EOF }, 0, file.ErrTruncated},
			{"a broken reader", with(func(*file.Header) {}), func([]byte) (int, error) { return 0, broken }, 0, broken},
			{"a stall", with(func(*file.Header) {}), func([]byte) (int, error) { return 0, nil }, 0, io.ErrNoProgress},
			{"an impossible count", with(func(*file.Header) {}), func(b []byte) (int, error) { return len(b) + 1, nil }, 0, gpu.ErrInvalid},
			{"a negative count", with(func(*file.Header) {}), func(b []byte) (int, error) { return -1, nil }, 0, gpu.ErrInvalid},
		} {
			for _, where := range []ndarray.LoadOptions{{}, ndarray.ByPieces(), {OnHost: true}} {
				where.Limit = c.limit
				var read func([]byte) (int, error)
				if c.then != nil {
					read = after(150, c.then)
				}
				p, err := ndarray.Load(t.Context(), dev, &tensors{headers: slices.Clone(c.headers), read: read}, where)
				is(t, c.what, err, c.want)
				if p != nil {
					t.Errorf("%s: a list beside the error", c.what)
				}
			}
		}
		is(t, "no reader", second(ndarray.Load(t.Context(), dev, nil, ndarray.LoadOptions{})), gpu.ErrInvalid)
		is(t, "no device", second(ndarray.Load(t.Context(), nil, &tensors{}, ndarray.LoadOptions{})), gpu.ErrInvalid)
		nobody := &tensors{headers: []file.Header{one}}
		is(t, "no context", second(ndarray.Load(context.Context(nil), dev, nobody, ndarray.LoadOptions{})), gpu.ErrInvalid)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		is(t, "cancelled", second(ndarray.Load(ctx, dev, &tensors{headers: []file.Header{one}}, ndarray.LoadOptions{})), context.Canceled)
		is(t, "no dictionary", second(ndarray.LoadParams(t.Context(), dev, bytes.NewReader([]byte("hello, world")), ndarray.LoadOptions{})), file.ErrFormat)
		closed(t, dev)
	})
}

type badWriter struct {
	n   int
	err error
}

func (w badWriter) Write([]byte) (int, error) { return w.n, w.err }
func (w badWriter) Close() error              { return nil }

func TestSaveMistakes(t *testing.T) {
	dev := open(t, "cpu")
	a, err := ndarray.FromSlice(dev, count(6), 2, 3)
	check(t, err)
	turned, err := a.Transpose()
	check(t, err)
	for _, x := range []*ndarray.Array{a, turned} {
		p := ndarray.Params{{Name: "x", Array: x}}
		full := errors.New("full")
		is(t, "a failing writer", ndarray.Save(t.Context(), p, to(badWriter{0, full})), full)
		is(t, "a short write", ndarray.Save(t.Context(), p, to(badWriter{3, nil})), io.ErrShortWrite)
		is(t, "no writer", ndarray.Save(t.Context(), p, nil), buffer.ErrNil)
		is(t, "no writer made", ndarray.Save(t.Context(), p, to(nil)), buffer.ErrNil)
	}
	check(t, ndarray.SaveParams(t.Context(), io.Discard, nil, params.Options{}))
	closed(t, dev, a, turned)
	is(t, "a closed array", ndarray.SaveParams(t.Context(), io.Discard, ndarray.Params{{Name: "x", Array: a}}, params.Options{}), gpu.ErrClosed)
}

// to saves to a writer whatever the headers are.
func to(w file.Writer) func([]file.Header) (file.Writer, error) {
	return func([]file.Header) (file.Writer, error) { return w, nil }
}

// namesOf returns the names in order.
func namesOf(p ndarray.Params) []string {
	var names []string
	for _, one := range p {
		names = append(names, one.Name)
	}
	return names
}
