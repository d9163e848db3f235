// SPDX-License-Identifier: Apache-2.0

package simd

import (
	"context"
	"encoding/binary"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/gpu/internal/software"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// engine runs the kernels of one device.
type engine struct {
	config
	*machine
	control []byte   // the arguments that all calls of a dispatch share
	scratch [][]byte // by worker

	mu       sync.Mutex
	programs map[*program]bool // that are not closed
}

// Offsets in an engine's control block, in bytes. The block begins with the arguments of the function "run", see package
// internal/shaders/compile.
const (
	argGroups  = 0
	argParams  = 12
	argStop    = 16
	argTurns   = 20
	argStorage = 32
	atStop     = 512
	atParams   = 1024

	controlBytes = atParams + driver.MaxParams
)

func newEngine(c config) (*engine, error) {
	m, err := newMachine()
	if err != nil {
		return nil, err
	}
	e := &engine{config: c, machine: m, scratch: make([][]byte, max(1, c.threads)), programs: map[*program]bool{}}
	if e.control, err = m.allocate(controlBytes); err != nil {
		m.close(false, nil)
		return nil, err
	}
	e.put(argStop, m.address(e.control)+atStop)
	return e, nil
}

func (e *engine) put(at int, v uint32) { binary.LittleEndian.PutUint32(e.control[at:], v) }

// Allocate implements [software.Engine], as do Free, Compile, Stop and Close.
func (e *engine) Allocate(size uint64) ([]byte, error) { return e.allocate(size) }

// Free fills the memory with zeros.
func (e *engine) Free(mem []byte) {
	changed()
	e.recycle(mem)
}

// Compile returns a program with the code of a kernel, which is compiled unless it was compiled before.
func (e *engine) Compile(ctx context.Context, k *driver.Kernel) (software.Program, error) {
	if k.Native != nil && !goMemory {
		return native(k.Native), nil
	}
	c, err := codes.of(ctx, k, &e.config)
	if err != nil {
		return nil, err
	}
	p := &program{engine: e, code: c, params: k.Layout.HasParams(), bounded: k.Bounded, instances: make([]*instance, len(e.scratch))}
	if p.storage, err = c.match(k); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.programs != nil {
		e.programs[p] = true
	}
	changed()
	return p, nil
}

func (e *engine) stop() *uint32 { return (*uint32)(unsafe.Pointer(&e.control[atStop])) }

func (e *engine) stopped() bool { return atomic.LoadUint32(e.stop()) != 0 }

// Stop ends what runs.
func (e *engine) Stop() { atomic.StoreUint32(e.stop(), 1) }

// Close releases the memory.
func (e *engine) Close(lent bool, keep [][]byte) {
	e.mu.Lock()
	programs := e.programs
	e.programs = nil
	e.mu.Unlock()
	for p := range programs {
		p.release()
	}
	e.close(lent, keep)
}

// workspace returns the scratch memory of a worker, of at least so many bytes.
func (e *engine) workspace(worker, size int) ([]byte, error) {
	s := &e.scratch[worker]
	if len(*s) < size || *s == nil {
		changed()
		if *s != nil {
			e.recycle(*s)
			*s = nil
		}
		mem, err := e.allocate(uint64(max(size, leastScratch)))
		if err != nil {
			return nil, err
		}
		*s = mem
	}
	return *s, nil
}

// leastScratch is enough for most kernels.
const leastScratch = 16 << 10

// native is a kernel that is written in Go.
type native func(groups [3]uint32, params []byte, storage [][]byte)

func (n native) Run(d *software.Dispatch) error {
	n(d.Groups, d.Params, d.Storage)
	return nil
}

func (native) Close() {}

// program is a kernel on a device. One dispatch runs at a time.
type program struct {
	*engine
	code      *code
	params    bool
	bounded   bool  // its loops are bounded, so that one dispatch does not take much longer than another
	storage   []int // for each storage binding of the module its number in the layout
	instances []*instance
	paces     paces
	running   launch // the dispatch that runs
}

// Close implements [software.Program].
func (p *program) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.programs[p] {
		delete(p.programs, p)
		p.release()
	}
}

// release closes the instances.
func (p *program) release() {
	for i, in := range p.instances {
		if in != nil {
			in.close()
			p.instances[i] = nil
		}
	}
}

// most is how many workgroups a dispatch may have, as modules count them with 32 bits.
const most = 1 << 31

// Takes implements [software.Timed]. It returns 0 for kernels whose loops are not bounded, as these may suddenly take long.
func (p *program) Takes(d *software.Dispatch) time.Duration {
	if !p.bounded {
		return 0
	}
	total := uint64(d.Groups[0]) * uint64(d.Groups[1]) * uint64(d.Groups[2])
	return time.Duration(p.paces.of(d.Storage, total).get() * float64(total))
}

// Run implements [software.Program].
func (p *program) Run(d *software.Dispatch) error {
	total := uint64(d.Groups[0]) * uint64(d.Groups[1]) // each is below 1<<16
	if total *= uint64(d.Groups[2]); total > most {
		return fault.Fail("simd: Dispatch", fault.ErrLimit, fault.Text(total, " workgroups, the most are ", uint64(most)))
	}
	for i, n := range p.storage {
		if least := p.code.Bindings[i].Least; len(d.Storage[n]) < least {
			return fault.Fail("simd: Dispatch", fault.ErrInvalid, fault.Text(len(d.Storage[n]), " bytes for binding ", p.code.Bindings[i].Number,
				", which needs ", least))
		}
	}
	p.arguments(d)
	err := p.launch(uint32(total), p.paces.of(d.Storage, total), d.Pause)
	runtime.KeepAlive(d)
	return err
}

// arguments fills the control block.
func (p *program) arguments(d *software.Dispatch) {
	for i, g := range d.Groups {
		p.put(argGroups+4*i, g)
	}
	p.put(argTurns, p.turns)
	p.put(argParams, 0)
	if p.params {
		p.put(argParams, p.address(p.control)+atParams)
		n := copy(p.control[atParams:], d.Params)
		clear(p.control[atParams+n:])
	}
	for i, n := range p.storage {
		at := argStorage + 8*i
		p.put(at, p.address(d.Storage[n]))
		p.put(at+4, uint32(len(d.Storage[n])))
	}
}

// worker returns the instance and the address of the scratch memory with which worker w runs the program. It makes them at first.
func (p *program) worker(w int) (in *instance, scratch uint32, err error) {
	space, err := p.workspace(w, p.code.Scratch)
	if err == nil && p.instances[w] == nil {
		p.instances[w], err = p.instantiate(p.code.text)
	}
	if err != nil {
		return nil, 0, err
	}
	return p.instances[w], p.address(space), nil
}
