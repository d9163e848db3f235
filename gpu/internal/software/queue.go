// SPDX-License-Identifier: Apache-2.0

package software

import (
	"cmp"
	"context"
	"encoding/binary"
	"runtime"
	"slices"
	"time"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// queue runs works one after another, each on a goroutine that waits for the one before.
type queue struct {
	op      string        // of errors
	pause   func()        // is the device's
	last    chan struct{} // done of the last work
	spare   []command     // the memory of a work's, which is done
	staged  uint64        // bytes of host data that wait in works
	most    uint64        // how many there may be before Submit waits
	running chan struct{} // full while a command runs
	frees   chan struct{} // done of the last work that gives memory back, nil if there is none

	// slice is how long works may keep the thread, 0 where they have one of their own. They have kept it since begun. turn is closed once
	// the page has had a turn since then, and pauses counts how often works have waited for that.
	slice  time.Duration
	begun  time.Time
	turn   <-chan struct{}
	pauses int
	burst  int // the most commands that run without unlocking the queue in between, see joins; 0 turns that off, and brief works
	brief  brief
	next   func() <-chan struct{} // nextTurn, which tests replace
}

// work is what one call has the device do.
type work struct {
	commands []command
	staged   uint64        // bytes of host data
	begun    bool          // the first command; guarded by the device's lock, as is err
	err      error         // why not all commands ran, or must not
	done     chan struct{} // closed when no more commands will run
	kind     kind
	number   uint64 // of a list
	inline   bool   // the call that submits it runs it, see performBrief
}

// kind tells what a refusal does to a work.
type kind uint8

const (
	ofList kind = iota // a refusal of one before drops it
	ofCall             // gets the refusal
	ofFree             // goes on
)

// command is one command with its operands: a function, or the dispatch of a kernel.
type command struct {
	do    func()
	bytes uint64 // that do moves
	kernel
	launch Dispatch
}

func (c *command) run() error {
	if c.do == nil {
		return c.program.Run(&c.launch)
	}
	c.do()
	return nil
}

const (
	// defaultStaged lets a program be some buffers ahead of the device without doubling its memory.
	defaultStaged = 256 << 20
	// pageSlice is how long a page may stand still.
	pageSlice = 50 * time.Millisecond
	// manyBrief is how many commands run with no look at the clock in between, where those that are not brief pause by themselves. A look
	// takes as long as a small dispatch.
	manyBrief = 8
	// mostSpare is how many commands the queue keeps the memory of.
	mostSpare = 1 << 12
)

func (q *queue) init(op string, pauses bool, pause func()) {
	q.op, q.pause = op, pause
	q.last, q.running, q.most = make(chan struct{}), make(chan struct{}, 1), defaultStaged
	close(q.last)
	q.turn, q.next = q.last, nextTurn
	if runtime.GOOS == "js" {
		q.slice = pageSlice
	}
	if pauses {
		q.burst = manyBrief
	}
}

// enqueue has a work done after all that were enqueued before: by a goroutine, or by the caller if w.inline is set. The caller holds the
// lock, and must unlock it and call performBrief.
func (d *Device) enqueue(w *work) {
	q := &d.queue
	before := q.last
	w.done = make(chan struct{})
	q.last = w.done
	q.staged += w.staged
	if w.inline = over(before) && q.isBrief(w); w.inline {
		return
	}
	if q.slice > 0 && over(before) && over(q.turn) {
		q.begun, q.turn = time.Now(), q.next()
	}
	go func() {
		<-before
		d.perform(w)
	}()
}

// over reports whether a channel is closed.
func over(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// release calls free once the work submitted so far is done. The engine does it all when the device is closed or lost before.
func (d *Device) release(free func()) {
	switch {
	case d.gone:
		return
	case over(d.queue.last):
		free()
		return
	}
	w := &work{kind: ofFree, commands: []command{{do: func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		free()
	}}}}
	d.enqueue(w)
	d.queue.frees = w.done
}

// perform runs the commands of a work. One that does not return, because its kernel panicked or ended the goroutine, loses
// the device.
func (d *Device) perform(w *work) {
	var c *command
	returned, held := false, false
	defer func() {
		cause := fault.Panic(recover())
		d.mu.Lock()
		if !returned {
			d.SetLost("kernel " + c.label + " did not return: " + cmp.Or(cause, "it ended its goroutine"))
			w.err = d.Usable(d.queue.op)
			<-d.queue.running
		}
		d.queue.staged -= w.staged
		if returned && w.kind == ofList && cap(w.commands) <= mostSpare {
			clear(w.commands)
			d.queue.spare, w.commands = w.commands[:0], nil
		}
		if d.queue.frees == w.done {
			d.queue.frees = nil
		}
		d.mu.Unlock()
		close(w.done)
	}()
	for i := range w.commands {
		c = &w.commands[i]
		if !held && !d.begin(w) {
			break
		}
		pauses := d.queue.pauses
		err := c.run()
		held = d.queue.burst > 1 && err == nil && (i+1)%d.queue.burst > 0 && i < len(w.commands)-1 && pauses == d.queue.pauses
		if held = held && d.queue.joins(&w.commands[i+1]); held {
			continue
		}
		<-d.queue.running
		if err != nil {
			d.refuse(w, c.label, err)
			break
		}
		d.pause()
	}
	returned = true
}

// pause lets the page run if works have kept the thread for long.
func (d *Device) pause() {
	if q := &d.queue; q.slice > 0 && !q.brief.runs && time.Since(q.begun) > q.slice {
		q.pauses++
		<-q.turn
		q.begun, q.turn = time.Now(), q.next()
	}
}

// begin locks the queue for a command, or notes why it must not run.
func (d *Device) begin(w *work) bool {
	d.queue.running <- struct{}{}
	d.mu.Lock()
	defer d.mu.Unlock()
	if w.err == nil {
		w.err = d.Usable(d.queue.op)
	}
	if w.err == nil && w.kind != ofFree {
		w.err = d.refusal
	}
	if w.err != nil {
		<-d.queue.running
		return false
	}
	w.begun = true
	return true
}

// refuse notes that a list did not run to its end.
func (d *Device) refuse(w *work, label string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	err = d.fail("Dispatch", err, "; kernel "+label)
	if w.number != 0 {
		err = driver.Refusal{List: w.number, Err: err}
	}
	d.refusal = cmp.Or(d.refusal, err)
}

// run enqueues a function that prepare makes under the lock, and waits for it. One that has not begun when ctx ends never will;
// one that has is quickly done, and until it is, the caller's memory is in use.
func (d *Device) run(ctx context.Context, op string, prepare func() (do func(), bytes uint64, err error)) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.ready(ctx, op); err != nil {
		return err
	}
	do, bytes, err := prepare()
	if err != nil {
		return err
	}
	w := &work{kind: ofCall, commands: []command{{do: do, bytes: bytes}}}
	d.enqueue(w)
	d.mu.Unlock()
	if d.performBrief(w); !w.inline {
		select {
		case <-w.done:
		case <-ctx.Done():
		}
	}
	d.mu.Lock()
	if !w.begun && w.err == nil {
		w.err = d.fail(op, ctx.Err())
	} else {
		d.mu.Unlock()
		<-w.done
		d.mu.Lock()
	}
	return w.err
}

func nothing() {}

// shortened is the error of foreign memory that has become shorter.
func (d *Device) shortened(op string) error {
	return d.fail(op, fault.ErrInvalid, "host memory has fewer bytes than are wanted; an ArrayBuffer that was transferred has none, one that was resized may have fewer")
}

// stageable refuses host data that cannot be taken over: memory that is not Go's, and more of it than the device may
// ever hold.
func (d *Device) stageable(l *driver.CommandList) error {
	if l == nil {
		return nil // Objects says what is wrong with it
	}
	size := uint64(0)
	for _, h := range l.Data {
		if h.Foreign != nil && h.Copier() == nil {
			return d.fail("Submit", fault.ErrUnsupported, "host memory that the driver does not know")
		}
		if h.Valid() { // Objects refuses others
			size += uint64(h.Size)
		}
		if size > d.limit {
			return d.fail("Submit", fault.ErrNoMemory, "the host data of one list exceeds ", d.limit, " bytes")
		}
	}
	return d.afford("Submit", size)
}

// record makes a work of a checked list. It needs neither the caller's list nor the tables any more.
func (d *Device) record(l *driver.CommandList, data [][]byte) *work {
	w := &work{number: l.Number, commands: slices.Grow(d.queue.spare, 1+len(l.Words)/7)} // a dispatch has 7 words
	d.queue.spare = nil
	add := func(bytes uint64, do func()) {
		d.moved()
		w.commands = append(w.commands, command{do: do, bytes: bytes})
	}
	params := slices.Clone(l.Params)
	for c := range l.All() {
		switch v := c.Words; c.Op {
		case driver.OpWrite:
			src := data[v[3]]
			dst := d.span(v[0], c.U64(1), uint64(len(src)))
			w.staged += uint64(len(src))
			switch h := l.Data[v[3]]; {
			case !same(dst, src):
				add(uint64(len(src)), func() { copy(dst, src) })
			case d.watcher != nil && h.Foreign != nil && h.Offset == 0:
				d.watcher.Writes(dst)
			default: // is there already
				d.moved()
			}
		case driver.OpCopy:
			dst, src := d.span(v[0], c.U64(1), c.U64(6)), d.span(v[3], c.U64(4), c.U64(6))
			add(c.U64(6), func() { copy(dst, src) })
		case driver.OpClear:
			dst := d.span(v[0], c.U64(1), c.U64(3))
			add(c.U64(3), func() { clear(dst) })
		case driver.OpBind:
			storage := [][]byte{}
			for _, b := range c.Bindings() {
				storage = append(storage, d.span(uint32(b.Buffer), b.Offset, b.Size))
			}
			d.sets[driver.BindingsID(v[0])] = storage
		case driver.OpUnbind:
			delete(d.sets, driver.BindingsID(v[0]))
		case driver.OpTimestamp:
			dst := d.span(v[0], c.U64(1), 8)
			add(8, func() { binary.LittleEndian.PutUint64(dst, uint64(time.Since(epoch))) })
		case driver.OpDispatch:
			if v[2] > 0 && v[3] > 0 && v[4] > 0 {
				w.commands = append(w.commands, d.dispatch(v, params))
			}
		}
	}
	return w
}

// moved tells the watcher, if there is one, of bytes that are moved in another way than it wants to know of.
func (d *Device) moved() {
	if d.watcher != nil {
		d.watcher.Moves()
	}
}

// epoch is when the clock began.
var epoch = time.Now()

// direct reports whether a list only writes, and nothing is to be done before it: the data then need not be staged.
func (d *Device) direct(l *driver.CommandList) bool {
	return len(l.Data) == 1 && len(l.Words) == 5 && over(d.queue.last) // the words of a write
}

// written is what such a list writes to.
func (d *Device) written(l *driver.CommandList) (mem []byte) {
	for c := range l.All() {
		mem = d.span(c.Words[0], c.U64(1), (uint64(l.Data[0].Size)+3)&^3)
	}
	return mem
}

// load copies host data, with zeros up to a multiple of 4, and returns what it copied to.
func (d *Device) load(h driver.Host, to []byte) ([]byte, error) {
	clear(to[h.Size:])
	if m := h.Copier(); m == nil {
		copy(to, h.Mem())
	} else if m.Load(h.Offset, to[:h.Size]) < h.Size {
		return nil, d.shortened("Submit")
	}
	return to, nil
}

func (d *Device) dispatch(w []uint32, blocks []byte) command {
	k := d.kernels[driver.KernelID(w[0])]
	launch := Dispatch{Groups: [3]uint32(w[2:5]), Storage: d.sets[driver.BindingsID(w[1])], Pause: d.queue.pause}
	if k.params {
		at := int(w[5])
		end := min(at+driver.MaxParams, len(blocks))
		launch.Params = blocks[at:end:end]
	}
	return command{kernel: k, launch: launch}
}

// span returns a part of a buffer, clipped so that nothing after it can be reached.
func (d *Device) span(id uint32, offset, size uint64) []byte {
	return d.buffers[driver.BufferID(id)].bytes[offset : offset+size : offset+size]
}
