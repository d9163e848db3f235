// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/file/params"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/wasm/internal/page"
)

const (
	strictly = 1
	lastWins = 2
	scanning = 4

	none32 = math.MaxUint32
)

// transfer is the page's side of a load or save under a handle.
type transfer struct {
	r      *rig
	handle uint32
	ticket uint32
	done   <-chan error
}

func (r *rig) transfer(c page.Command, handle uint32, words ...uint32) *transfer {
	ticket, done := r.page.expect()
	r.post(command(c, append([]uint32{ticket, handle}, words...)...))
	return &transfer{r, handle, ticket, done}
}

func (r *rig) loads(handle, flags uint32, limit, size int64) *transfer {
	return r.transfer(page.CmdLoad, handle, flags, uint32(limit), uint32(limit>>32), uint32(size), uint32(size>>32))
}

func (r *rig) value(ticket uint32) any {
	r.page.mu.Lock()
	defer r.page.mu.Unlock()
	return r.page.values[ticket]
}

// pass passes memory and returns what is reported when it was used.
func (x *transfer) pass(mem []byte) (int, error) {
	x.r.t.Helper()
	ticket, done := x.r.page.expect()
	x.r.post(command(page.CmdPass, ticket, x.handle, x.r.page.put(mem), uint32(len(mem))))
	err := x.r.await(done)
	n, _ := x.r.value(ticket).(float64)
	return int(n), err
}

// feed passes a file in pieces of that size, from wherever the next is wanted if there is a choice, and returns how many
// bytes were passed.
func (x *transfer) feed(data []byte, piece int, choice bool) (passed int, err error) {
	x.r.t.Helper()
	for at := 0; ; {
		select {
		case err := <-x.done:
			return passed, err
		default:
		}
		part := data[min(at, len(data)):min(at+piece, len(data))]
		next, err := x.pass(part)
		if err != nil {
			x.r.t.Fatal(err)
		}
		passed += len(part)
		if at += len(part); choice {
			at = next
		}
	}
}

// drain takes a file in pieces of that size.
func (x *transfer) drain(piece int) ([]byte, error) {
	x.r.t.Helper()
	var all []byte
	for {
		mem := make([]byte, piece)
		n, err := x.pass(mem)
		if n == 0 || err != nil { // the save has ended, or did not begin
			return all, x.r.await(x.done)
		}
		all = append(all, mem[:n]...)
	}
}

func (r *rig) readArray(handle uint32, size int) ([]byte, error) {
	r.t.Helper()
	mem := make([]byte, size)
	return mem, r.ask(page.CmdArrayRead, handle, r.page.put(mem), uint32(size))
}

func (r *rig) live() int64 {
	r.t.Helper()
	if err := r.ask(page.CmdWait); err != nil {
		r.t.Fatal(err)
	}
	return int64(r.dev.Stats().LiveBytes)
}

func description(headers ...file.Header) []byte {
	var b []byte
	for _, h := range headers {
		b = append(binary.LittleEndian.AppendUint32(b, uint32(len(h.Name))), h.Name...)
		b = append(b, h.Type.Code, h.Type.Bits, byte(h.Type.Lanes), byte(h.Type.Lanes>>8), byte(len(h.Shape)))
		for _, d := range h.Shape {
			b = binary.LittleEndian.AppendUint64(b, uint64(d))
		}
	}
	return b
}

// dictionary is a file with a few types, one of them of a size that is no number of words, and a tensor without data.
func dictionary(t *testing.T) ([]byte, []file.Header, [][]byte) {
	t.Helper()
	headers := []file.Header{
		{Name: "weights", Type: dtype.Float32, Shape: []int64{2, 3}},
		{Name: "odd\xff", Type: dtype.Int8, Shape: []int64{5}},
		{Name: "none", Type: dtype.BFloat16, Shape: []int64{0, 7}},
		{Name: "scalar", Type: dtype.Int64},
	}
	data := [][]byte{bytesOf(1, 2, 3, 4, 5, 6), {1, 2, 3, 4, 255}, {}, {1, 0, 0, 0, 0, 0, 0, 128}}
	var b bytes.Buffer
	w, err := params.NewWriter(&b, headers, params.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(bytes.Join(data, nil)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), headers, data
}

func TestLoadParams(t *testing.T) {
	whole, headers, data := dictionary(t)
	for _, piece := range []int{1, 7, 64, 1 << 20} {
		for _, size := range []int64{-1, int64(len(whole))} {
			r := newRig(t)
			before := r.live()
			x := r.loads(1, 0, -1, size)
			if _, err := x.feed(whole, piece, size >= 0); err != nil {
				t.Fatal(err)
			}
			list, _ := r.value(x.ticket).([]byte)
			for _, h := range headers {
				want := description(h)
				if !bytes.HasPrefix(list, want) {
					t.Fatalf("description %x, want %x", list, want)
				}
				list = list[len(want)+16:]
			}
			if err := r.ask(page.CmdTake, 1, 2, 3, 4, 5); err != nil {
				t.Fatal(err)
			}
			r.post(command(page.CmdClose, 0, 1))
			for i, want := range data {
				if got, err := r.readArray(uint32(i+2), len(want)); err != nil || !bytes.Equal(got, want) {
					t.Errorf("array %d is %x, %v", i, got, err)
				}
			}
			r.post(command(page.CmdArrayMatrix, 9, 2, 0, 2, 3), command(page.CmdClose, 0, 2))
			r.wantRead([]float32{1, 2, 3, 4, 5, 6}, leaf(9))
			for h := uint32(1); h < 10; h++ {
				r.post(command(page.CmdClose, 0, h))
			}
			if live := r.live(); live != before {
				t.Errorf("%d bytes are left of %d", live, before)
			}
		}
	}
}

// TestLoadLastWins passes over the data that do not count.
func TestLoadLastWins(t *testing.T) {
	headers := []file.Header{{Name: "a", Type: dtype.Uint8, Shape: []int64{100000}}, {Name: "a", Type: dtype.Uint8, Shape: []int64{4}}}
	var b bytes.Buffer
	w, err := params.NewWriter(&b, []file.Header{{Name: "a", Type: dtype.Uint8, Shape: []int64{100000}}, {Name: "b", Type: dtype.Uint8, Shape: []int64{4}}}, params.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Write(append(make([]byte, 100000), 1, 2, 3, 4))
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	whole := b.Bytes()
	whole[41] = headers[1].Name[0] // 24, 8 and 1 for the first name, 8 for the length of the other
	r := newRig(t)
	_, err = r.loads(1, 0, -1, int64(len(whole))).feed(whole, 1000, true)
	wantError(t, err, file.ErrDuplicate)
	passed, err := r.loads(2, lastWins, -1, int64(len(whole))).feed(whole, 1000, true)
	if err != nil || passed > 10000 {
		t.Errorf("%d bytes passed, %v", passed, err)
	}
	if err := r.ask(page.CmdTake, 2, 3); err != nil {
		t.Fatal(err)
	}
	if got, err := r.readArray(3, 4); err != nil || !bytes.Equal(got, []byte{1, 2, 3, 4}) {
		t.Errorf("array %x, %v", got, err)
	}
	passed, err = r.loads(4, lastWins|scanning, -1, int64(len(whole))).feed(whole, 1000, true)
	if err != nil || passed > 10000 {
		t.Errorf("a scan passed %d bytes, %v", passed, err)
	}
}

// TestLoadBroken leaves nothing behind, whatever is wrong with the file.
func TestLoadBroken(t *testing.T) {
	whole, _, _ := dictionary(t)
	r := newRig(t)
	before := r.live()
	handle := uint32(1)
	fails := func(data []byte, flags uint32, limit, size int64) error {
		t.Helper()
		handle++
		_, err := r.loads(handle, flags, limit, size).feed(data, 16, size >= 0)
		if e, ok := errors.AsType[*file.Error](err); !ok || e.Offset < 0 || e.Offset > int64(len(data)) {
			t.Errorf("error %v", err)
		}
		wantError(t, r.ask(page.CmdTake, handle, 999), gpu.ErrInvalid)
		if live := r.live(); live != before {
			t.Errorf("%d bytes are left after %v", live-before, err)
		}
		return err
	}
	for n := range whole {
		wantError(t, fails(whole[:n], 0, -1, -1), file.ErrTruncated)
		wantError(t, fails(whole[:n], 0, -1, int64(n)), file.ErrTruncated)
	}
	wantError(t, fails(append([]byte{9}, whole...), 0, -1, -1), file.ErrFormat)
	wantError(t, fails(append(bytes.Clone(whole), 1), strictly, -1, -1), file.ErrFormat)
	wantError(t, fails(whole, 0, 28, -1), file.ErrTooLarge)
	huge, err := params.NewReader(bytes.NewReader(whole), params.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h, err := huge.Next()
	if err != nil {
		t.Fatal(err)
	}
	large := bytes.Clone(whole) // more than the device has
	binary.LittleEndian.PutUint64(large[h.Offset-24:], 1<<40)
	binary.LittleEndian.PutUint64(large[h.Offset-8:], 12<<40)
	if err := fails(large, 0, -1, -1); !errors.Is(err, gpu.ErrLimit) && !errors.Is(err, gpu.ErrNoMemory) {
		t.Errorf("error %v", err)
	}
}

// TestLoadGivenUp closes the handle at every stage.
func TestLoadGivenUp(t *testing.T) {
	whole, _, _ := dictionary(t)
	r := newRig(t)
	before := r.live()
	for n := range len(whole) + 1 {
		x := r.loads(uint32(n), 0, -1, -1)
		if n > 0 {
			if _, err := x.pass(whole[:n]); err != nil {
				t.Fatal(err)
			}
		}
		r.post(command(page.CmdClose, 0, uint32(n)))
		if err := r.await(x.done); n < len(whole) {
			wantError(t, err, gpu.ErrClosed)
		}
		if live := r.live(); live != before {
			t.Fatalf("%d bytes are left", live-before)
		}
	}
}

// TestLoadGivenUpTooLate closes the handle while the last piece is read: the load succeeds, and nobody gets it.
func TestLoadGivenUpTooLate(t *testing.T) {
	whole, _, _ := dictionary(t)
	r := newRig(t)
	before := r.live()
	x := r.loads(1, 0, -1, -1)
	closed := false
	ticket, _ := r.page.expect()
	object := r.page.put(func() []byte {
		if !closed {
			closed = true
			r.post(command(page.CmdClose, 0, 1))
			r.live() // by now it is
		}
		return whole
	})
	r.post(command(page.CmdPass, ticket, 1, object, uint32(len(whole))))
	if err := r.await(x.done); err != nil || !closed {
		t.Errorf("closed %v, error %v", closed, err)
	}
	if live := r.live(); live != before {
		t.Errorf("%d bytes are left", live-before)
	}
}

// TestSaveOffset saves a matrix that does not begin with its memory.
func TestSaveOffset(t *testing.T) {
	r := newRig(t)
	mem := bytesOf(1, 2, 3, 4)
	r.post(command(page.CmdNew, 1, 0, 2, 2, 3, 2), command(page.CmdData, 1, r.page.put(mem), 16))
	text := description(file.Header{Name: "a", Type: dtype.Float32, Shape: []int64{2, 2}})
	got, err := r.transfer(page.CmdSave, 2, 0, r.page.put(text), uint32(len(text)), 1, 0, 16).drain(50)
	if err != nil || !bytes.HasSuffix(got, mem) {
		t.Errorf("saved %x, %v", got, err)
	}
}

func TestFilesEndWithTheDevice(t *testing.T) {
	r := newRig(t)
	x, y := r.loads(1, 0, -1, -1), r.transfer(page.CmdSave, 2, 0, r.page.put([]byte{}), 0)
	r.post(command(page.CmdEnd))
	wantError(t, r.await(x.done), gpu.ErrClosed)
	wantError(t, r.await(y.done), gpu.ErrClosed)
	<-r.over
}

func TestSaveParams(t *testing.T) {
	for _, name := range []string{"dlr_2in1out_v1.params", "dlr_4in2out_v2.params"} {
		whole, err := os.ReadFile(filepath.Join("..", "..", "..", "buffer", "file", "params", "testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		var headers []file.Header
		reader, err := params.NewReader(bytes.NewReader(whole), params.Options{})
		for err == nil {
			var h file.Header
			if h, err = reader.Next(); err == nil {
				headers = append(headers, h)
			}
		}
		if !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		for _, piece := range []int{1, 33, 1 << 16} {
			r := newRig(t)
			x := r.loads(1, 0, -1, -1)
			if _, err := x.feed(whole, piece, false); err != nil {
				t.Fatal(err)
			}
			// The first one is saved as a matrix, the second from memory of the page's, the others as they are.
			words := []uint32{1}
			for i := range headers {
				words = append(words, uint32(i+2))
			}
			if err := r.ask(page.CmdTake, words...); err != nil {
				t.Fatal(err)
			}
			mem, err := r.readArray(3, int(headers[1].Size))
			if err != nil {
				t.Fatal(err)
			}
			r.post(command(page.CmdArrayMatrix, 99, 2, 0, 1, uint32(headers[0].Size/4)))
			text := description(headers...)
			words = []uint32{0, r.page.put(text), uint32(len(text)), 99, 0, uint32(headers[0].Size), 0, r.page.put(mem), uint32(len(mem))}
			for i, h := range headers[2:] {
				words = append(words, uint32(i+4), 0, uint32(h.Size))
			}
			y := r.transfer(page.CmdSave, 100, words...)
			for h := range uint32(100) { // the save has shares
				r.post(command(page.CmdClose, 0, h))
			}
			got, err := y.drain(piece)
			if err != nil || !bytes.Equal(got, whole) {
				t.Errorf("%s: saved %x, %v", name, got, err)
			}
			if live := r.live(); live != 0 {
				t.Errorf("%d bytes are left", live)
			}
		}
	}
}

// TestSaveBroken refuses what cannot be saved, under the save's own ticket.
func TestSaveBroken(t *testing.T) {
	f32, mem := file.Header{Name: "a", Type: dtype.Float32, Shape: []int64{2}}, bytesOf(1, 2)
	lanes := file.Header{Name: "a", Type: dtype.Type{Code: dtype.Float32.Code, Bits: 32, Lanes: 2}, Shape: []int64{1}}
	for name, c := range map[string]struct {
		headers []file.Header
		words   []uint32 // for each handle, bytes of memory of the page's, bytes
		want    error
	}{
		"twice":        {[]file.Header{f32, f32}, []uint32{0, 8, 8, 0, 8, 8}, file.ErrDuplicate},
		"lanes":        {[]file.Header{lanes}, []uint32{0, 8, 8}, file.ErrType},
		"dimensions":   {[]file.Header{{Name: "a", Type: dtype.Int8, Shape: make([]int64, 33)}}, []uint32{0, 8, 8}, file.ErrFormat},
		"size":         {[]file.Header{f32}, []uint32{0, 8, 12}, fault.ErrInvalid},
		"no bytes":     {[]file.Header{f32}, []uint32{0, 8, 0}, file.ErrTruncated},
		"detached":     {[]file.Header{f32}, []uint32{0, 4, 8}, buffer.ErrShort},
		"no handle":    {[]file.Header{f32}, []uint32{77, 0, 8}, gpu.ErrInvalid},
		"sparse":       {[]file.Header{f32}, []uint32{3, 0, 8}, gpu.ErrInvalid},
		"a matrix":     {[]file.Header{f32}, []uint32{1, 0, 8}, nil},
		"beyond it":    {[]file.Header{{Name: "a", Type: dtype.Float32, Shape: []int64{9}}}, []uint32{1, 0, 36}, gpu.ErrInvalid},
		"failed":       {[]file.Header{f32}, []uint32{4, 0, 8}, gpu.ErrInvalid},
		"no text":      {[]file.Header{f32}, []uint32{0, 8, 8, 0, 8, 8}, gpu.ErrInvalid},
		"another save": {nil, nil, gpu.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.newMatrix(1, 1, 2, 1, 2)
			p := sparseParts[csc]
			r.sparse(3, csc, p.values, p.indices, p.pointers)
			r.post(command(page.CmdEval, append([]uint32{4}, leaf(77)...)...))
			text := description(c.headers...)
			words := []uint32{0, r.page.put(text), uint32(len(text))}
			for i := 0; i < len(c.words); i += 3 {
				object := uint32(0)
				if c.words[i] == 0 {
					object = r.page.put(mem[:c.words[i+1]])
				}
				words = append(words, c.words[i], object, c.words[i+2])
			}
			handle := uint32(9)
			if name == "another save" {
				handle = 1
			}
			x := r.transfer(page.CmdSave, handle, words...)
			_, err := x.drain(1 << 10)
			if c.want == nil && err != nil || c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("error %v, want %v", err, c.want)
			}
			r.wantRead([]float32{1, 2}, leaf(1))
			if len(r.page.objects) > 0 {
				t.Errorf("%d objects were not taken", len(r.page.objects))
			}
		})
	}
}

// TestFileMessages sends messages that JavaScript would not.
func TestFileMessages(t *testing.T) {
	whole, _, _ := dictionary(t)
	r := newRig(t)
	r.newMatrix(1, 1, 2, 1, 2)
	for name, err := range map[string]error{
		"load into a matrix": r.await(r.loads(1, 0, -1, -1).done),
		"flags":              r.await(r.loads(5, 8, -1, -1).done),
		"pass to none":       r.ask(page.CmdPass, 7, r.page.put(whole), 4),
		"pass to a matrix":   r.ask(page.CmdPass, 1, r.page.put(whole), 4),
		"take from a matrix": r.ask(page.CmdTake, 1, 2),
		"array that is none": r.ask(page.CmdArrayRead, 1, r.page.put(whole), 8),
		"save flags":         r.ask(page.CmdSave, 5, 8, r.page.put(whole), 8),
		"save of half":       r.ask(page.CmdSave, 5, 0, r.page.put([]byte{}), 0, 1, 0),
		"save of much":       r.ask(page.CmdSave, 5, 0, r.page.put([]byte{}), none32),
	} {
		if code := fault.Code(err); code != "ErrInvalid" && code != "ErrLimit" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTypesInStep compares what JavaScript and Go call the element types.
func TestTypesInStep(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "web", "src", "tensor.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	list := func(name string) []string {
		_, after, _ := strings.Cut(string(text), "const "+name+" = Object.freeze([")
		inside, _, _ := strings.Cut(after, "]")
		return strings.FieldsFunc(inside, func(r rune) bool { return strings.ContainsRune("', \n", r) })
	}
	names, fixed := list("CODES"), list("FIXED")
	if len(names) != len(fixed) || !strings.HasPrefix(dtype.Type{Code: uint8(len(names))}.String(), "code") {
		t.Fatalf("JavaScript has %d names and %d sizes", len(names), len(fixed))
	}
	for i, name := range names {
		bits, err := strconv.Atoi(fixed[i])
		if err != nil {
			t.Fatal(err)
		}
		if bits == 0 {
			bits, name = 24, name+"24"
		}
		if got := (dtype.Type{Code: uint8(i), Bits: uint8(bits), Lanes: 1}).String(); got != name {
			t.Errorf("code %d is %q in Go, %q in JavaScript", i, got, name)
		}
	}
}
