// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/sublet-gpu/sublet/internal/shaders/fuse"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/matrix"
	"github.com/sublet-gpu/sublet/wasm/internal/bridge"
	"github.com/sublet-gpu/sublet/wasm/internal/page"
)

// fakePage is a page without JavaScript. Its memory is slices.
type fakePage struct {
	mu      sync.Mutex
	objects map[uint32]any
	last    uint32
	pending map[uint32]chan error
	values  map[uint32]any
}

func (p *fakePage) Object(number uint32) any {
	p.mu.Lock()
	defer p.mu.Unlock()
	o := p.objects[number]
	delete(p.objects, number)
	switch o.(type) {
	case []byte, func() []byte:
		return fakeMemory{o}
	}
	return o
}

// fakeMemory is memory of the page's, which copies itself.
type fakeMemory struct{ memory any }

func (m fakeMemory) Load(at int, into []byte) int {
	if look, ok := m.memory.(func() []byte); ok {
		m.memory = look()
	}
	from, _ := m.memory.([]byte)
	return copy(into, from[min(at, len(from)):])
}

func (m fakeMemory) Store(at int, from []byte) int {
	into, _ := m.memory.([]byte)
	return copy(into[min(at, len(into)):], from)
}

func (p *fakePage) Text(number uint32) string {
	s, _ := p.Object(number).(string)
	return s
}

func (p *fakePage) Load(object any, at int, into []byte) int {
	m, _ := object.(fakeMemory)
	return m.Load(at, into)
}

func (p *fakePage) Store(object any, at int, from []byte) int {
	m, _ := object.(fakeMemory)
	return m.Store(at, from)
}

func (p *fakePage) Settle(ticket uint32, value any, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.values[ticket] = value
	if done := p.pending[ticket]; done != nil {
		done <- err
		delete(p.pending, ticket)
	}
}

func (p *fakePage) put(object any) uint32 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last++
	p.objects[p.last] = object
	return p.last
}

// expect returns a new ticket and what will be settled under it.
func (p *fakePage) expect() (ticket uint32, done <-chan error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last++
	c := make(chan error, 1)
	p.pending[p.last] = c
	return p.last, c
}

// rig is a bridge on the oracle.
type rig struct {
	t    testing.TB
	page *fakePage
	b    *bridge.Bridge
	dev  *gpu.Device
	over chan struct{}
}

// testMemory keeps hostile messages from taking the machine's memory.
const testMemory = 32 << 20

func newRig(t testing.TB) *rig {
	t.Helper()
	dev, err := gpu.Open(t.Context(), gpu.WithDriver("cpu"), gpu.WithMemory(testMemory))
	if err != nil {
		t.Fatal(err)
	}
	p := &fakePage{objects: map[uint32]any{}, pending: map[uint32]chan error{}, values: map[uint32]any{}}
	r := &rig{t: t, page: p, b: bridge.New(dev, p), dev: dev, over: make(chan struct{})}
	go func() {
		defer close(r.over)
		r.b.Run()
	}()
	t.Cleanup(func() {
		r.post(command(page.CmdEnd))
		select {
		case <-r.over:
		case <-time.After(time.Minute):
			t.Error("Run did not end")
		}
	})
	return r
}

func command(c page.Command, words ...uint32) []uint32 {
	return append([]uint32{uint32(len(words)+1)<<8 | uint32(c)}, words...)
}

func instruction(op bridge.Op, t matrix.DType, words ...uint32) []uint32 {
	return append([]uint32{uint32(len(words)+1)<<16 | uint32(t)<<8 | uint32(op)}, words...)
}

func join(parts ...[]uint32) (all []uint32) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

func (r *rig) post(commands ...[]uint32) { r.b.Post(join(commands...)) }

// ask posts a command whose first word is a ticket and returns what is settled.
func (r *rig) ask(c page.Command, words ...uint32) error {
	r.t.Helper()
	ticket, done := r.page.expect()
	r.post(command(c, append([]uint32{ticket}, words...)...))
	return r.await(done)
}

func (r *rig) await(done <-chan error) error {
	r.t.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(time.Minute):
		r.t.Fatal("nothing was settled")
		return nil
	}
}

// read reads an expression of 32-bit elements.
func (r *rig) read(n int, expr ...[]uint32) ([]float32, error) {
	r.t.Helper()
	mem := make([]byte, 4*n)
	err := r.ask(page.CmdRead, append([]uint32{r.page.put(mem), uint32(len(mem))}, join(expr...)...)...)
	return floats(mem), err
}

func (r *rig) wantRead(want []float32, expr ...[]uint32) {
	r.t.Helper()
	got, err := r.read(len(want), expr...)
	if err != nil {
		r.t.Fatal(err)
	}
	for i := range want {
		if got[i] != want[i] {
			r.t.Fatalf("read %v, want %v", got, want)
		}
	}
}

func wantError(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	}
}

func bytesOf(v ...float32) []byte {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

func floats(b []byte) []float32 {
	v := make([]float32, len(b)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return v
}

// newMatrix makes a matrix of float32 elements with a copy of them.
func (r *rig) newMatrix(handle, rows, cols uint32, v ...float32) {
	mem := bytesOf(v...)
	r.post(command(page.CmdNew, handle, 0, rows, cols, 0, cols), command(page.CmdData, handle, r.page.put(mem), uint32(len(mem))))
}

const f32 = matrix.Float32

func leaf(handle uint32) []uint32 { return instruction(bridge.OpLeaf, f32, handle) }

func number(v float32) []uint32 { return instruction(bridge.OpScalar, f32, math.Float32bits(v)) }

func TestEvaluate(t *testing.T) {
	r := newRig(t)
	r.newMatrix(1, 2, 3, 1, 2, 3, 4, 5, 6)
	r.wantRead([]float32{1, 2, 3, 4, 5, 6}, leaf(1))
	// A new matrix, made and used in one message.
	r.post(
		command(page.CmdEval, join([]uint32{2}, leaf(1), instruction(bridge.OpTranspose, f32, 0))...),
		command(page.CmdEval, join([]uint32{3}, leaf(1), leaf(2), instruction(bridge.OpMatMul, f32, 0, 1))...),
	)
	r.wantRead([]float32{14, 32, 32, 77}, leaf(3))
	r.wantRead([]float32{2, 4, 6, 8, 10, 12}, leaf(1), instruction(bridge.OpBinary, f32, 0, 0))
	r.wantRead([]float32{5, 6}, leaf(1), instruction(bridge.OpSlice, f32, 0, 1, 2, 1, 3))
	r.wantRead([]float32{21}, leaf(1), instruction(bridge.OpReduce, f32, 0, uint32(fuse.ReduceSum), uint32(fuse.AxisAll), 0))
	r.wantRead([]float32{5, 7, 9}, leaf(1), instruction(bridge.OpReduce, f32, 0, uint32(fuse.ReduceSum), uint32(fuse.AxisCols), 0))
	r.wantRead([]float32{1, 4, 2, 5, 3, 6}, leaf(2), instruction(bridge.OpReshape, f32, 0, 1, 6))
	// A part of what is yet to be computed.
	r.wantRead([]float32{15}, leaf(1), number(10), instruction(bridge.OpBinary, f32, 0, 1), instruction(bridge.OpSlice, f32, 2, 1, 2, 1, 2))
}

// TestEvaluateAgain evaluates into a matrix that the page has closed, whose handle and memory the result has then. What cannot be computed
// leaves nothing of it.
func TestEvaluateAgain(t *testing.T) {
	r := newRig(t)
	r.newMatrix(1, 2, 2, 1, 2, 3, 4)
	r.post(command(page.CmdEval, join([]uint32{2}, leaf(1), instruction(bridge.OpBinary, f32, 0, 0))...))
	r.wantRead([]float32{2, 4, 6, 8}, leaf(2))
	buffers := r.dev.Stats().Buffers
	for range 3 {
		r.post(command(page.CmdEval, join([]uint32{2}, leaf(1), instruction(bridge.OpMatMul, f32, 0, 0))...))
		r.wantRead([]float32{7, 10, 15, 22}, leaf(2))
	}
	if got := r.dev.Stats().Buffers; got != buffers {
		t.Errorf("%d buffers, there were %d", got, buffers)
	}
	r.post(command(page.CmdEval, join([]uint32{2}, leaf(99))...))
	_, err := r.read(4, leaf(2))
	wantError(t, err, fault.ErrInvalid)
	r.wantRead([]float32{1, 2, 3, 4}, leaf(1))
	if got := r.dev.Stats().Buffers; got != buffers-1 {
		t.Errorf("%d buffers after an error, want %d", got, buffers-1)
	}
	r.post(command(page.CmdEval, join([]uint32{2}, leaf(1), instruction(bridge.OpTranspose, f32, 0))...))
	r.wantRead([]float32{1, 3, 2, 4}, leaf(2))
}

func TestAssign(t *testing.T) {
	r := newRig(t)
	r.newMatrix(1, 2, 2, 1, 2, 3, 4)
	r.post(command(page.CmdAssign, join([]uint32{1}, leaf(1), instruction(bridge.OpSlice, f32, 0, 1, 2, 0, 2),
		leaf(1), instruction(bridge.OpSlice, f32, 2, 0, 1, 0, 2), number(10), instruction(bridge.OpBinary, f32, 3, 4))...))
	r.wantRead([]float32{1, 2, 11, 12}, leaf(1))
	r.post(command(page.CmdAssign, join([]uint32{0}, leaf(1), instruction(bridge.OpFill, f32, math.Float32bits(7), 2, 2))...))
	r.wantRead([]float32{7, 7, 7, 7}, leaf(1))
}

func TestWrap(t *testing.T) {
	r := newRig(t)
	mem := bytesOf(1, 2, 9, 3, 4, 9)
	r.post(command(page.CmdFrom, 1, uint32(buffer.DontOwnBuffer), uint32(f32), 2, 2, 0, 3, r.page.put(mem), uint32(len(mem))))
	r.wantRead([]float32{1, 2, 3, 4}, leaf(1))
	r.post(command(page.CmdAssign, join([]uint32{0}, leaf(1), leaf(1), number(1), instruction(bridge.OpBinary, f32, 1, 2))...))
	if err := r.ask(page.CmdSync, 1); err != nil {
		t.Fatal(err)
	}
	for i, want := range []float32{2, 3, 9, 4, 5, 9} {
		if got := floats(mem)[i]; got != want {
			t.Errorf("element %d is %v after sync, want %v", i, got, want)
		}
	}
	copy(mem, bytesOf(100))
	r.post(command(page.CmdTouch, 1))
	r.wantRead([]float32{100, 3, 4, 5}, leaf(1))
	ticket, released := r.page.expect()
	r.post(command(page.CmdClose, ticket, 1))
	if err := r.await(released); err != nil {
		t.Fatal(err)
	}
}

// TestErrorsStayWithTheResult follows an error of a computation that nobody waits for.
func TestErrorsStayWithTheResult(t *testing.T) {
	r := newRig(t)
	r.newMatrix(1, 2, 3, 1, 2, 3, 4, 5, 6)
	product := join(leaf(1), leaf(1), instruction(bridge.OpMatMul, f32, 0, 1))
	r.post(command(page.CmdEval, join([]uint32{2}, product)...))
	r.post(command(page.CmdEval, join([]uint32{3}, leaf(2), instruction(bridge.OpUnary, f32, 0))...))
	_, err := r.read(6, leaf(3))
	wantError(t, err, buffer.ErrShape)
	_, err = r.read(6, leaf(2))
	wantError(t, err, buffer.ErrShape)
	if err := r.ask(page.CmdWait); err != nil {
		t.Errorf("an error that was told is reported again: %v", err)
	}
	r.post(command(page.CmdEval, join([]uint32{4}, product)...))
	wantError(t, r.ask(page.CmdWait), buffer.ErrShape)
	if err := r.ask(page.CmdWait); err != nil {
		t.Errorf("reported twice: %v", err)
	}
	_, err = r.read(6, leaf(4))
	wantError(t, err, buffer.ErrShape)
}

// TestFailedAssignment: the old elements are not taken for the new ones until somebody knows.
func TestFailedAssignment(t *testing.T) {
	r := newRig(t)
	r.newMatrix(1, 1, 2, 1, 2)
	r.newMatrix(2, 2, 1, 3, 4)
	r.post(command(page.CmdAssign, join([]uint32{0}, leaf(1), leaf(1), leaf(1), instruction(bridge.OpMatMul, f32, 1, 2))...))
	_, err := r.read(2, leaf(2), leaf(1), instruction(bridge.OpMatMul, f32, 0, 1))
	wantError(t, err, buffer.ErrShape)
	r.wantRead([]float32{1, 2}, leaf(1))
	// A later assignment that works makes up for it.
	r.post(command(page.CmdAssign, join([]uint32{0}, leaf(1), leaf(1), leaf(1), instruction(bridge.OpMatMul, f32, 1, 2))...),
		command(page.CmdAssign, join([]uint32{0}, leaf(1), instruction(bridge.OpFill, f32, math.Float32bits(5), 1, 2))...))
	r.wantRead([]float32{5, 5}, leaf(1))
	wantError(t, r.ask(page.CmdWait), buffer.ErrShape)
}

func TestDeepExpression(t *testing.T) {
	r := newRig(t)
	r.newMatrix(1, 1, 2, 1, 2)
	expr := join(leaf(1), number(1))
	for i := range uint32(20000) {
		last := i + 1
		if i == 0 {
			last = 0
		}
		expr = append(expr, instruction(bridge.OpBinary, f32, last, 1)...)
	}
	r.wantRead([]float32{20001, 20002}, expr)
}

func TestElementTypes(t *testing.T) {
	r := newRig(t)
	r.newMatrix(1, 1, 3, -1.5, 2.5, 3)
	for _, c := range []struct {
		to   matrix.DType
		want []uint32
	}{
		{matrix.Int32, []uint32{math.MaxUint32, 2, 3}},
		{matrix.Uint32, []uint32{0, 2, 3}},
		{matrix.Float16, []uint32{0xbe00 | 0x4100<<16, 0x4200}},
	} {
		mem := make([]byte, 4*len(c.want))
		size := uint32(3 * c.to.Size())
		expr := join(leaf(1), instruction(bridge.OpCast, c.to, 0))
		if err := r.ask(page.CmdRead, append([]uint32{r.page.put(mem), size}, expr...)...); err != nil {
			t.Errorf("%v: %v", c.to, err)
			continue
		}
		for i, want := range c.want {
			if got := binary.LittleEndian.Uint32(mem[4*i:]); got != want {
				t.Errorf("%v: word %d is %#x, want %#x", c.to, i, got, want)
			}
		}
	}
	_, err := r.read(3, leaf(1), instruction(bridge.OpCast, matrix.Int32, 0), instruction(bridge.OpBinary, f32, 0, 1))
	wantError(t, err, gpu.ErrInvalid)
}

func TestMemoryIsGivenBack(t *testing.T) {
	r := newRig(t)
	r.newMatrix(1, 8, 8, make([]float32, 64)...)
	if err := r.ask(page.CmdWait); err != nil { // until the matrix is there
		t.Fatal(err)
	}
	before := r.dev.Stats().LiveBytes
	for range 1000 {
		r.post(command(page.CmdEval, join([]uint32{2}, leaf(1), leaf(1), instruction(bridge.OpBinary, f32, 0, 1))...),
			command(page.CmdClose, 0, 2))
	}
	if err := r.ask(page.CmdWait); err != nil {
		t.Fatal(err)
	}
	if after := r.dev.Stats().LiveBytes; after != before {
		t.Errorf("%d live bytes, %d before", after, before)
	}
}

// slowPage keeps the goroutine that executes busy until it is told.
type slowPage struct {
	*fakePage
	begin, end chan struct{}
}

func (p *slowPage) Text(number uint32) string {
	close(p.begin)
	<-p.end
	return p.fakePage.Text(number)
}

func TestPostDoesNotWait(t *testing.T) {
	dev, err := gpu.Open(context.Background(), gpu.WithDriver("cpu"))
	if err != nil {
		t.Fatal(err)
	}
	p := &slowPage{&fakePage{objects: map[uint32]any{}, pending: map[uint32]chan error{}, values: map[uint32]any{}}, make(chan struct{}), make(chan struct{})}
	b := bridge.New(dev, p)
	over := make(chan struct{})
	go func() {
		defer close(over)
		b.Run()
	}()
	b.Post(command(page.CmdFunc, 1, p.put("fn f(x: f32) -> f32 { return x; }")))
	<-p.begin
	ticket, done := p.expect()
	if n := b.Post(command(page.CmdWait, ticket)); n < 1 {
		t.Errorf("%d messages unfinished while one is being executed", n)
	}
	select {
	case err := <-done:
		t.Error(err, "- a later message overtook an earlier one")
	default:
	}
	close(p.end)
	if err := <-done; err != nil {
		t.Error(err)
	}
	b.Post(command(page.CmdEnd))
	<-over
	wantError(t, dev.Flush(), fault.ErrClosed)
}

// TestReopen loses the device and brings it back: what the page has comes back by itself, what only the device had says so.
func TestReopen(t *testing.T) {
	r := newRig(t)
	r.newMatrix(1, 1, 2, 1, 2)
	memory := bytesOf(3, 4)
	r.post(command(page.CmdFrom, 2, uint32(buffer.DontOwnBuffer), uint32(matrix.Float32), 1, 2, 0, 2, r.page.put(memory), 8))
	if err := errors.Join(r.ask(page.CmdReopen, 0), r.ask(page.CmdWait)); err != nil { // it is not lost
		t.Error(err)
	}
	k, err := r.dev.Kernel(t.Context(), gpu.KernelDesc{
		Source: "@compute @workgroup_size(1) fn main() {}", Reference: func([3]uint32, []byte, [][]byte) { panic("lost") },
	})
	if err == nil {
		err = k.Dispatch([3]uint32{1, 1, 1}, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	wantError(t, r.dev.Sync(t.Context()), gpu.ErrDeviceLost)
	both := [][]uint32{instruction(bridge.OpLeaf, matrix.Float32, 2), instruction(bridge.OpUnary, matrix.Float32, 0)}
	_, err = r.read(2, both...)
	wantError(t, err, gpu.ErrDeviceLost)
	wantError(t, r.ask(page.CmdReopen, r.page.put("no device")), gpu.ErrUnsupported)
	wantError(t, r.ask(page.CmdReopen, 12345), gpu.ErrInvalid) // no such object
	_, err = r.read(2, both...)
	wantError(t, err, gpu.ErrDeviceLost)
	if err := r.ask(page.CmdReopen, 0); err != nil {
		t.Fatal(err)
	}
	r.wantRead([]float32{-3, -4}, both...)
	_, err = r.read(2, instruction(bridge.OpLeaf, matrix.Float32, 1))
	wantError(t, err, gpu.ErrDeviceLost)
}
