// SPDX-License-Identifier: Apache-2.0

package gputest

import (
	"math"
	"slices"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
)

var refusalCases = []testCase{
	{"RefusedTransfers", func(r *rig) { refuse(r, refusedTransfers) }},
	{"RefusedBindings", func(r *rig) { refuse(r, refusedBindings) }},
	{"RefusedDispatches", func(r *rig) { refuse(r, refusedDispatches) }},
	{"RefusedWords", func(r *rig) { refuse(r, refusedWords) }},
	{"RefusedBindingSize", refusedBindingSize},
	{"RefusedBindingCount", refusedBindingCount},
	{"RefusedNil", func(r *rig) { r.refused("nil list", r.dev.Submit(nil), fault.ErrInvalid) }},
}

// scene is what the refused commands find: good objects and bad ids.
type scene struct {
	*rig
	a, b     driver.BufferID // sceneWords each
	freed    driver.BufferID
	kernel   driver.KernelID // affine
	plain    driver.KernelID // bump: another layout
	set      driver.BindingsID
	stale    driver.BindingsID // its buffer was freed
	replaced driver.BindingsID // its buffer was freed, and another has the id
	fresh    driver.BindingsID // free
	spare    driver.BindingsID // free
}

const (
	sceneWords = 256
	sceneBytes = 4 * sceneWords
	nowhere    = math.MaxUint32
)

// refusal is one command that no device executes.
type refusal struct {
	name string
	want error
	add  func(s *scene)
}

func newScene(r *rig) *scene {
	s := &scene{rig: r}
	s.a, s.b = r.filled(pattern(sceneWords, 1)...), r.filled(pattern(sceneWords, 2)...)
	s.kernel, s.plain = r.kernel(affine), r.kernel(bump)
	gone, other := r.buffer(sceneBytes), r.buffer(sceneBytes)
	s.set = r.bind(affine, r.whole(s.a))
	s.stale = r.bind(affine, r.whole(gone))
	s.replaced = r.bind(affine, r.whole(other))
	r.sets += 2
	s.fresh, s.spare = r.sets-1, r.sets
	r.submit()
	r.dev.FreeBuffer(gone)
	r.dev.FreeBuffer(other)
	r.check(r.dev.NewBuffer(other, sceneBytes, false))
	s.freed = gone
	return s
}

// refuse puts each command into the middle of a good list. The list must be refused with the right sentinel, must have
// done nothing at all, and must leave the device as ready as before.
func refuse(r *rig, refusals []refusal) {
	s := newScene(r)
	for _, c := range refusals {
		s.good()
		c.add(s)
		s.list.Clear(s.b, 0, sceneBytes)
		s.list.Unbind(s.set)
		s.submitRefused(c.name, c.want)
		s.unchanged(c.name)
	}
	s.good()
	s.list.Unbind(s.fresh)
	s.want(s.a, each(pattern(sceneWords, 3), func(v uint32) uint32 { return v*3 + 1 }))
}

// good adds commands that are right.
func (s *scene) good() {
	s.write(s.a, 0, pattern(sceneWords, 3)...)
	s.rebind(s.fresh, affine, s.whole(s.b))
	s.dispatch(s.kernel, s.set, groups(sceneWords), 3, 1, sceneWords)
}

func (s *scene) unchanged(name string) {
	s.Helper()
	s.want(s.a, pattern(sceneWords, 1))
	s.want(s.b, pattern(sceneWords, 2))
	s.list.Unbind(s.fresh)
	s.submitRefused(name+": the refused list defined a binding set", fault.ErrInvalid)
	s.dispatch(s.kernel, s.set, groups(sceneWords), 1, 0, sceneWords) // times 1 plus 0: the set is still there
	s.submit()
	if s.Failed() {
		s.Fatalf("%s: stopping, later cases would fail for the same reason", name)
	}
}

func write(id func(s *scene) driver.BufferID, offset uint64, h driver.Host) func(*scene) {
	return func(s *scene) { s.list.Write(id(s), offset, h) }
}

func bufferA(s *scene) driver.BufferID     { return s.a }
func bufferFreed(s *scene) driver.BufferID { return s.freed }
func bufferNone(*scene) driver.BufferID    { return 0 }
func bufferWild(*scene) driver.BufferID    { return nowhere }

func zeros(n int) driver.Host { return driver.HostBytes(make([]byte, n)) }

func copyAB(dst, src, size uint64) func(*scene) {
	return func(s *scene) { s.list.Copy(s.a, dst, s.b, src, size) }
}

func clearA(offset, size uint64) func(*scene) {
	return func(s *scene) { s.list.Clear(s.a, offset, size) }
}

var refusedTransfers = []refusal{
	{"write to buffer 0", fault.ErrClosed, write(bufferNone, 0, zeros(4))},
	{"write to an unknown buffer", fault.ErrClosed, write(bufferWild, 0, zeros(4))},
	{"write to a freed buffer", fault.ErrClosed, write(bufferFreed, 0, zeros(4))},
	{"write at a misaligned offset", fault.ErrInvalid, write(bufferA, 2, zeros(4))},
	{"write beyond the end", fault.ErrInvalid, write(bufferA, sceneBytes-4, zeros(5))},
	{"write from beyond the end", fault.ErrInvalid, write(bufferA, sceneBytes+4, zeros(0))},
	{"write at an offset that wraps", fault.ErrInvalid, write(bufferA, math.MaxUint64-3, zeros(8))},
	{"write of less memory than it says", fault.ErrInvalid, write(bufferA, 0, driver.Host{Bytes: make([]byte, 4), Size: 8})},
	{"write of negative size", fault.ErrInvalid, write(bufferA, 0, driver.Host{Bytes: make([]byte, 4), Size: -4})},
	{"write of no host data", fault.ErrInvalid, func(s *scene) {
		s.list.Write(s.a, 0, zeros(4))
		s.list.Data = s.list.Data[:len(s.list.Data)-1]
	}},

	{"copy within a buffer", fault.ErrInvalid, func(s *scene) { s.list.Copy(s.a, 0, s.a, 64, 4) }},
	{"copy to an unknown buffer", fault.ErrClosed, func(s *scene) { s.list.Copy(nowhere, 0, s.b, 0, 4) }},
	{"copy from an unknown buffer", fault.ErrClosed, func(s *scene) { s.list.Copy(s.a, 0, nowhere, 0, 4) }},
	{"copy to a freed buffer", fault.ErrClosed, func(s *scene) { s.list.Copy(s.freed, 0, s.b, 0, 4) }},
	{"copy from a freed buffer", fault.ErrClosed, func(s *scene) { s.list.Copy(s.a, 0, s.freed, 0, 4) }},
	{"copy to a misaligned offset", fault.ErrInvalid, copyAB(1, 0, 4)},
	{"copy from a misaligned offset", fault.ErrInvalid, copyAB(0, 2, 4)},
	{"copy of a misaligned size", fault.ErrInvalid, copyAB(0, 0, 3)},
	{"copy beyond the destination", fault.ErrInvalid, copyAB(sceneBytes-4, 0, 8)},
	{"copy beyond the source", fault.ErrInvalid, copyAB(0, sceneBytes-4, 8)},
	{"copy of more than there is", fault.ErrInvalid, copyAB(0, 0, sceneBytes+4)},
	{"copy to an offset that wraps", fault.ErrInvalid, copyAB(math.MaxUint64-3, 0, 8)},
	{"copy from an offset that wraps", fault.ErrInvalid, copyAB(0, math.MaxUint64-3, 8)},
	{"copy of a size that wraps", fault.ErrInvalid, copyAB(8, 8, math.MaxUint64-3)},

	{"clear an unknown buffer", fault.ErrClosed, func(s *scene) { s.list.Clear(nowhere, 0, 4) }},
	{"clear a freed buffer", fault.ErrClosed, func(s *scene) { s.list.Clear(s.freed, 0, 4) }},
	{"clear at a misaligned offset", fault.ErrInvalid, clearA(3, 4)},
	{"clear a misaligned size", fault.ErrInvalid, clearA(0, 2)},
	{"clear beyond the end", fault.ErrInvalid, clearA(sceneBytes-4, 8)},
	{"clear from beyond the end", fault.ErrInvalid, clearA(sceneBytes+4, 0)},
	{"clear a size that wraps", fault.ErrInvalid, clearA(4, math.MaxUint64-3)},
}

// binding is a refusal of a set for p with these entries.
func binding(p program, entries func(s *scene) []driver.Binding) func(*scene) {
	return func(s *scene) { s.rebind(s.spare, p, entries(s)...) }
}

// partOfA is a refusal of a set for affine with a part of a.
func partOfA(offset, size uint64) func(*scene) {
	return binding(affine, func(s *scene) []driver.Binding { return []driver.Binding{{Buffer: s.a, Offset: offset, Size: size}} })
}

// twoParts is a refusal of a set of two parts of a, the second offset bytes after the first.
func twoParts(p program, parts uint64) func(*scene) {
	return binding(p, func(s *scene) []driver.Binding {
		return []driver.Binding{
			{Buffer: s.a, Size: parts * s.align()},
			{Buffer: s.a, Offset: s.align(), Size: s.align()},
		}
	})
}

func entriesOf(ids ...func(s *scene) driver.BufferID) func(*scene) []driver.Binding {
	return func(s *scene) (entries []driver.Binding) {
		for _, id := range ids {
			entries = append(entries, driver.Binding{Buffer: id(s), Size: 64})
		}
		return entries
	}
}

var refusedBindings = []refusal{
	{"set 0", fault.ErrInvalid, func(s *scene) { s.rebind(0, affine, s.whole(s.a)) }},
	{"set out of all proportion", fault.ErrInvalid, func(s *scene) { s.rebind(nowhere, affine, s.whole(s.a)) }},
	{"set that is taken", fault.ErrInvalid, func(s *scene) { s.rebind(s.set, affine, s.whole(s.a)) }},
	{"set taken in the same list", fault.ErrInvalid, func(s *scene) { s.rebind(s.fresh, affine, s.whole(s.a)) }},
	{"no entry", fault.ErrInvalid, binding(affine, entriesOf())},
	{"an entry too few", fault.ErrInvalid, binding(scale, entriesOf(bufferA))},
	{"an entry too many", fault.ErrInvalid, binding(affine, entriesOf(bufferA, bufferA))},
	{"buffer 0", fault.ErrClosed, binding(affine, entriesOf(bufferNone))},
	{"unknown buffer", fault.ErrClosed, binding(affine, entriesOf(bufferWild))},
	{"freed buffer", fault.ErrClosed, binding(affine, entriesOf(bufferFreed))},
	{"size 0", fault.ErrInvalid, partOfA(0, 0)},
	{"misaligned size", fault.ErrInvalid, partOfA(0, 6)},
	{"misaligned offset", fault.ErrInvalid, partOfA(2, 4)},
	{"beyond the end", fault.ErrInvalid, partOfA(0, sceneBytes+4)},
	{"from beyond the end", fault.ErrInvalid, partOfA(sceneBytes, 4)},
	{"offset out of range", fault.ErrInvalid, partOfA(math.MaxUint64-0xffff, 4)},
	{"size out of range", fault.ErrInvalid, partOfA(256, math.MaxUint64-3)},
	{"read and written", fault.ErrInvalid, twoParts(scale, 2)},
	{"read and written apart", fault.ErrInvalid, twoParts(scale, 1)},
	{"written twice", fault.ErrInvalid, twoParts(swap, 2)},
	{"two parameter blocks", fault.ErrInvalid, func(s *scene) {
		s.list.Bind(s.spare, driver.NewLayout(readWrite, params, params), []driver.Binding{s.whole(s.a)})
	}},
	{"unbind 0", fault.ErrInvalid, func(s *scene) { s.list.Unbind(0) }},
	{"unbind what is not bound", fault.ErrInvalid, func(s *scene) { s.list.Unbind(s.spare) }},
	{"unbind out of all proportion", fault.ErrInvalid, func(s *scene) { s.list.Unbind(nowhere) }},
	{"unbind twice", fault.ErrInvalid, func(s *scene) { s.list.Unbind(s.set); s.list.Unbind(s.set) }},
}

// run is a refusal of a dispatch of so many groups.
func run(x, y, z uint32) func(*scene) {
	return func(s *scene) { s.dispatch(s.kernel, s.set, [3]uint32{x, y, z}, 1, 1, 1) }
}

// paramsAt is a refusal of a dispatch whose parameters lie elsewhere.
func paramsAt(offset func(s *scene) uint32) func(*scene) {
	return func(s *scene) {
		s.dispatch(s.kernel, s.set, groups(1), 1, 1, 1)
		s.list.Words[len(s.list.Words)-1] = offset(s)
	}
}

var refusedDispatches = []refusal{
	{"kernel 0", fault.ErrClosed, func(s *scene) { s.dispatch(0, s.set, groups(1), 1, 1, 1) }},
	{"unknown kernel", fault.ErrClosed, func(s *scene) { s.dispatch(nowhere, s.set, groups(1), 1, 1, 1) }},
	{"set 0", fault.ErrInvalid, func(s *scene) { s.dispatch(s.kernel, 0, groups(1), 1, 1, 1) }},
	{"unknown set", fault.ErrInvalid, func(s *scene) { s.dispatch(s.kernel, s.spare, groups(1), 1, 1, 1) }},
	{"set out of all proportion", fault.ErrInvalid, func(s *scene) { s.dispatch(s.kernel, nowhere, groups(1), 1, 1, 1) }},
	{"set forgotten in the same list", fault.ErrInvalid, func(s *scene) {
		s.list.Unbind(s.fresh)
		s.dispatch(s.kernel, s.fresh, groups(1), 1, 1, 1)
	}},
	{"set of another layout", fault.ErrInvalid, func(s *scene) { s.dispatch(s.plain, s.set, groups(1)) }},
	{"set with a freed buffer", fault.ErrClosed, func(s *scene) { s.dispatch(s.kernel, s.stale, groups(1), 1, 1, 1) }},
	{"set with a replaced buffer", fault.ErrClosed, func(s *scene) { s.dispatch(s.kernel, s.replaced, groups(1), 1, 1, 1) }},
	{"too many groups in x", fault.ErrLimit, func(s *scene) { run(s.info.Limits.MaxGroups+1, 1, 1)(s) }},
	{"too many groups in y", fault.ErrLimit, func(s *scene) { run(1, s.info.Limits.MaxGroups+1, 1)(s) }},
	{"too many groups in z", fault.ErrLimit, func(s *scene) { run(1, 1, s.info.Limits.MaxGroups+1)(s) }},
	{"too many groups beside none", fault.ErrLimit, run(math.MaxUint32, 0, 0)},
	{"misaligned parameters", fault.ErrInvalid, paramsAt(func(*scene) uint32 { return 4 })},
	{"parameters beyond the end", fault.ErrInvalid, paramsAt(func(s *scene) uint32 { return uint32(len(s.list.Params)) })},
	{"parameters out of all proportion", fault.ErrInvalid, paramsAt(func(*scene) uint32 { return math.MaxUint32 &^ 255 })},
	{"no parameters", fault.ErrInvalid, func(s *scene) { s.list.Params = nil }},
	{"half a word of parameters", fault.ErrInvalid, func(s *scene) {
		s.dispatch(s.kernel, s.set, groups(1), 1, 1, 1)
		s.list.Params = append(s.list.Params, 0, 0)
	}},
	{"half a word of parameters without a dispatch", fault.ErrInvalid, func(s *scene) { s.list.Params = []byte{1, 2} }},
}

func raw(w ...uint32) func(*scene) {
	return func(s *scene) { s.list.Words = append(s.list.Words, w...) }
}

// header is the first word of a command of n words.
func header(op driver.Op, n uint32) uint32 { return n<<8 | uint32(op) }

var refusedWords = []refusal{
	{"zero", fault.ErrInvalid, raw(0)},
	{"ones", fault.ErrInvalid, raw(math.MaxUint32)},
	{"operation 0", fault.ErrInvalid, raw(header(0, 2), 0)},
	{"unknown operation", fault.ErrInvalid, raw(header(driver.OpTimestamp+1, 2), 0)},
	{"length 0", fault.ErrInvalid, raw(header(driver.OpUnbind, 0))},
	{"write too short", fault.ErrInvalid, raw(header(driver.OpWrite, 4), 1, 0, 0)},
	{"copy too short", fault.ErrInvalid, raw(header(driver.OpCopy, 8), 1, 0, 0, 2, 0, 0, 4)},
	{"clear too short", fault.ErrInvalid, raw(header(driver.OpClear, 5), 1, 0, 0, 4)},
	{"clear too long", fault.ErrInvalid, raw(header(driver.OpClear, 7), 1, 0, 0, 0, 0, 0)},
	{"bind too short", fault.ErrInvalid, raw(header(driver.OpBind, 3), 1, 0)},
	{"bind with half an entry", fault.ErrInvalid, func(s *scene) {
		raw(header(driver.OpBind, 6), uint32(s.spare), 0, 0, uint32(s.a), 0)(s)
	}},
	{"unbind too short", fault.ErrInvalid, raw(header(driver.OpUnbind, 1))},
	{"dispatch too short", fault.ErrInvalid, raw(header(driver.OpDispatch, 6), 1, 1, 1, 1, 1)},
	{"length beyond the end", fault.ErrInvalid, raw(header(driver.OpClear, 1<<24-1), 1, 0, 0, 4, 0)},
	{"cut off", fault.ErrInvalid, func(s *scene) {
		s.list.Clear(s.a, 0, 4)
		s.list.Words = s.list.Words[:len(s.list.Words)-1]
	}},
}

// A set of more bindings than any kernel of the device may have.
func refusedBindingCount(r *rig) {
	most := int(r.info.Limits.MaxStorageBuffers)
	if most >= driver.MaxBindings {
		return // a layout cannot say more
	}
	id := r.filled(1)
	layout := driver.NewLayout(slices.Repeat([]driver.Access{readOnly}, most+1)...)
	r.list.Bind(1, layout, slices.Repeat([]driver.Binding{r.whole(id)}, most+1))
	r.submitRefused("too many bindings", fault.ErrLimit)
	r.want(id, []uint32{0}) // the write before was not done either
}

// A binding may be limited to less than a buffer.
func refusedBindingSize(r *rig) {
	l := r.info.Limits
	const affordable = 1 << 30
	if l.MaxBindingSize >= min(l.MaxBufferSize, affordable) {
		return // a buffer that is too large to bind cannot be had
	}
	k, size := r.kernel(bump), l.MaxBindingSize&^3+4
	id := r.buffer(size)
	set := r.bind(bump, driver.Binding{Buffer: id, Size: size})
	r.dispatch(k, set, groups(1))
	r.submitRefused("binding over the limit", fault.ErrLimit)
	r.rebind(set, bump, driver.Binding{Buffer: id, Offset: r.align(), Size: size - r.align()})
	r.dispatch(k, set, groups(1))
	r.submit()
	got := make([]byte, 4)
	r.check(read(r.ctx, r.dev, id, r.align(), got))
	r.same("word", words(got), []uint32{1})
}
