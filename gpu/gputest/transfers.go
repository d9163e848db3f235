// SPDX-License-Identifier: Apache-2.0

package gputest

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
)

var transferCases = []testCase{
	{"ReadParts", readParts},
	{"ReadRows", readRows},
	{"ReadNothing", readNothing},
	{"ReadRefused", readRefused},
	{"WriteParts", writeParts},
	{"WriteMany", writeMany},
	{"WriteTaken", writeTaken},
	{"HostOffset", hostOffset},
	{"Copy", copyParts},
	{"Clear", clearParts},
	{"Timestamps", timestamps},
	{"Empty", emptyCommands},
	{"Big", bigRoundTrip},
}

// untouched is what host memory holds that no transfer may write to.
const untouched = 0xEE

func hostBytes(n int) []byte { return bytes.Repeat([]byte{untouched}, n) }

// Any offset and any width can be read, although devices copy in multiples of four bytes.
func readParts(r *rig) {
	const n = 64
	id := r.filled(pattern(n, 1)...)
	all := PutU32(nil, pattern(n, 1)...)
	r.submit()
	for _, c := range [][2]int{{0, 256}, {0, 4}, {0, 1}, {0, 7}, {1, 1}, {1, 3}, {2, 4}, {3, 5}, {3, 253}, {4, 252}, {127, 2}, {252, 4}, {255, 1}} {
		got := hostBytes(c[1] + 2)
		r.check(r.dev.Read(r.ctx, driver.Transfer{
			Buffer: id, Offset: uint64(c[0]), Host: driver.HostBytes(got), HostOffset: 1, Width: c[1], Count: 1,
		}))
		want := hostBytes(len(got))
		copy(want[1:], all[c[0]:c[0]+c[1]])
		if !bytes.Equal(got, want) {
			r.Errorf("%d bytes at %d: got % x, want % x", c[1], c[0], got, want)
		}
	}
}

// Rows lie Pitch bytes apart on both sides, and what lies between them on the host stays.
func readRows(r *rig) {
	const n = 256
	id := r.filled(pattern(n, 2)...)
	all := PutU32(nil, pattern(n, 2)...)
	r.submit()
	for _, c := range []struct{ offset, host, width, pitch, count int }{
		{0, 0, 16, 16, 64},
		{0, 0, 4, 8, 128},
		{0, 5, 12, 40, 25},
		{7, 3, 1, 3, 300},
		{1, 0, 13, 17, 50},
		{1000, 9, 24, 1 << 30, 1}, // the pitch of a single row does not matter
		{4, 2, 8, -8, 1},
	} {
		span := (c.count-1)*c.pitch + c.width
		got := hostBytes(c.host + span + 3)
		r.check(r.dev.Read(r.ctx, driver.Transfer{
			Buffer: id, Offset: uint64(c.offset), Host: driver.HostBytes(got), HostOffset: c.host,
			Width: c.width, Pitch: c.pitch, Count: c.count,
		}))
		want := hostBytes(len(got))
		for i := range c.count {
			at := i * c.pitch
			copy(want[c.host+at:][:c.width], all[c.offset+at:])
		}
		if !bytes.Equal(got, want) {
			r.Errorf("%+v: wrong bytes", c)
		}
	}
}

// A transfer of nothing succeeds at once, however many rows of nothing there are.
func readNothing(r *rig) {
	id := r.filled(1, 2)
	r.submit()
	host := hostBytes(8)
	for _, t := range []driver.Transfer{
		{},
		{Count: 1},
		{Count: 0, Width: 1 << 30, Pitch: 1 << 30},
		{Count: math.MaxInt},
		{Count: 1, Offset: 8},
		{Count: 1, Offset: 8, HostOffset: 8, Host: driver.HostBytes(host)},
		{Count: 5, Pitch: 8, Host: driver.HostBytes(host)},
	} {
		t.Buffer = id
		r.check(r.dev.Read(r.ctx, t))
	}
	if !bytes.Equal(host, hostBytes(8)) {
		r.Errorf("a read of nothing wrote % x", host)
	}
}

func readRefused(r *rig) {
	id := r.filled(1, 2, 3, 4)
	r.submit()
	freed := r.buffer(16)
	r.dev.FreeBuffer(freed)
	host := hostBytes(16)
	for _, c := range []struct {
		name string
		t    driver.Transfer
		want error
	}{
		{"no buffer", driver.Transfer{Width: 4, Count: 1}, fault.ErrClosed},
		{"unknown buffer", driver.Transfer{Buffer: math.MaxUint32, Width: 4, Count: 1}, fault.ErrClosed},
		{"freed buffer", driver.Transfer{Buffer: freed, Width: 4, Count: 1}, fault.ErrClosed},
		{"negative width", driver.Transfer{Buffer: id, Width: -4, Count: 1}, fault.ErrInvalid},
		{"negative count", driver.Transfer{Buffer: id, Width: 4, Count: -1}, fault.ErrInvalid},
		{"negative host offset", driver.Transfer{Buffer: id, Width: 4, Count: 1, HostOffset: -1}, fault.ErrInvalid},
		{"overlapping rows", driver.Transfer{Buffer: id, Width: 4, Pitch: 3, Count: 2}, fault.ErrInvalid},
		{"negative pitch", driver.Transfer{Buffer: id, Width: 4, Pitch: -4, Count: 2}, fault.ErrInvalid},
		{"beyond the buffer", driver.Transfer{Buffer: id, Offset: 8, Width: 9, Count: 1}, fault.ErrInvalid},
		{"rows beyond the buffer", driver.Transfer{Buffer: id, Width: 4, Pitch: 8, Count: 3}, fault.ErrInvalid},
		{"offset beyond the buffer", driver.Transfer{Buffer: id, Offset: 17, Count: 1}, fault.ErrInvalid},
		{"offset out of range", driver.Transfer{Buffer: id, Offset: math.MaxUint64 - 3, Width: 8, Count: 1}, fault.ErrInvalid},
		{"width out of range", driver.Transfer{Buffer: id, Width: math.MaxInt, Count: 1}, fault.ErrInvalid},
		{"rows out of range", driver.Transfer{Buffer: id, Width: 4, Pitch: 1 << 30, Count: math.MaxInt - 1}, fault.ErrInvalid},
		{"rows that wrap to nothing", driver.Transfer{Buffer: id, Width: 4, Pitch: math.MaxInt/2 + 1, Count: 5}, fault.ErrInvalid},
		{"host too short", driver.Transfer{Buffer: id, Width: 8, Count: 1, HostOffset: 9}, fault.ErrInvalid},
		{"host offset beyond the host", driver.Transfer{Buffer: id, Count: 1, HostOffset: 17}, fault.ErrInvalid},
		{"host shorter than it says", driver.Transfer{Buffer: id, Width: 4, Count: 1, Host: driver.Host{Bytes: host[:2], Size: 16}}, fault.ErrInvalid},
		{"read-only host", driver.Transfer{Buffer: id, Width: 4, Count: 1, Host: driver.Host{Bytes: host, Size: len(host), ReadOnly: true}}, fault.ErrReadOnly},
		{"host of negative size", driver.Transfer{Buffer: id, Width: 4, Count: 1, Host: driver.Host{Bytes: host, Size: -1}}, fault.ErrInvalid},
	} {
		if c.t.Host.Bytes == nil {
			c.t.Host = driver.HostBytes(host)
		}
		r.refused(c.name, r.dev.Read(r.ctx, c.t), c.want)
		if !bytes.Equal(host, hostBytes(16)) {
			r.Fatalf("%s: the refused read wrote % x", c.name, host)
		}
	}
	r.want(id, []uint32{1, 2, 3, 4})
}

func writeParts(r *rig) {
	want := pattern(64, 3)
	id := r.filled(want...)
	for _, c := range [][2]int{{0, 1}, {1, 1}, {5, 20}, {63, 1}, {30, 34}, {0, 64}} {
		p := pattern(c[1], uint32(c[0]))
		r.write(id, uint64(4*c[0]), p...)
		copy(want[c[0]:], p)
		r.want(id, want)
	}
	for i := range 32 { // in one list, over each other: the last one stays
		r.write(id, uint64(4*i), pattern(32, uint32(i))...)
		copy(want[i:], pattern(32, uint32(i)))
	}
	r.list.Write(id, 0, driver.Host{Bytes: PutU32(nil, 7, 8, 9), Size: 4}) // only Size of it counts
	want[0] = 7
	odd := PutU32([]byte{0}, 10, 11) // memory at an odd address
	r.list.Write(id, 40, driver.HostBytes(odd[1:]))
	want[10], want[11] = 10, 11
	r.list.Write(id, 100, driver.HostBytes([]byte{1, 2, 3, 4, 5, 6})) // zeros follow
	want[25], want[26] = 0x04030201, 0x0605
	r.want(id, want)
}

// Small writes by the thousand, which a driver may gather, between commands, which may not see them too early.
func writeMany(r *rig) {
	const n = 2000
	a, b := r.buffer(4*n), r.buffer(4*n)
	want := make([]uint32, n)
	for i := range uint32(n) {
		r.write(a, 4*uint64(i), i+1)
		r.list.Copy(b, 4*uint64(i), a, 4*uint64(i), 4)
		r.write(a, 4*uint64(i), i+2)
		want[i] = i + 1
	}
	r.want(b, want)
	r.want(a, each(want, func(v uint32) uint32 { return v + 1 }))
}

// Once Submit returns, the caller's list and host data are the caller's again.
func writeTaken(r *rig) {
	const n = 1 << 14
	id, k := r.buffer(4*n), r.kernel(affine)
	set := r.bind(affine, r.whole(id))
	for i := range uint32(20) {
		data := PutU32(nil, pattern(n, i)...)
		r.list.Write(id, 0, driver.HostBytes(data))
		r.dispatch(k, set, groups(n), 3, i, n)
		r.check(r.dev.Submit(&r.list))
		r.bound[set] = true
		clear(data)
		clear(r.list.Words)
		clear(r.list.Params)
		clear(r.list.Data)
		r.list.Reset()
		r.want(id, each(pattern(n, i), func(v uint32) uint32 { return v*3 + i }))
	}
}

// Host memory may begin anywhere in what holds it, on both ways.
func hostOffset(r *rig) {
	const n = 64
	all := PutU32(nil, pattern(n, 5)...)
	id := r.buffer(4 * n)
	want := make([]byte, 4*n)
	for _, c := range [][3]int{{0, 0, 256}, {4, 8, 16}, {1, 100, 20}, {255, 0, 0}, {253, 200, 0}, {252, 252, 4}, {7, 40, 128}} {
		from, at, size := c[0], c[1], c[2]
		r.list.Write(id, uint64(at), driver.Host{Bytes: all, Offset: from, Size: size})
		copy(want[at:at+size], all[from:])
	}
	if got := r.bytes(id); !bytes.Equal(got, want) {
		r.Error("wrote something else")
	}
	got := hostBytes(300)
	r.check(r.dev.Read(r.ctx, driver.Transfer{
		Buffer: id, Offset: 3, Host: driver.Host{Bytes: got, Offset: 11, Size: 200}, HostOffset: 5, Width: 7, Pitch: 16, Count: 10,
	}))
	rows := hostBytes(300)
	for i := range 10 {
		copy(rows[16+16*i:][:7], want[3+16*i:])
	}
	if !bytes.Equal(got, rows) {
		r.Error("read something else, or to another place")
	}
	for _, h := range []driver.Host{
		{Bytes: all, Offset: -4, Size: 4},
		{Bytes: all, Offset: 256, Size: 4},
		{Bytes: all, Offset: 254, Size: 4},
		{Bytes: all, Offset: math.MaxInt, Size: 4},
		{Bytes: all, Offset: math.MaxInt - 3, Size: math.MaxInt - 3},
		{Offset: 4, Size: 4},
	} {
		r.list.Write(id, 0, h)
		r.submitRefused("write from beyond the memory", fault.ErrInvalid)
		err := r.dev.Read(r.ctx, driver.Transfer{Buffer: id, Host: h, Width: 4, Count: 1})
		r.refused("read to beyond the memory", err, fault.ErrInvalid)
	}
	if got := r.bytes(id); !bytes.Equal(got, want) {
		r.Error("what was refused was done")
	}
}

func copyParts(r *rig) {
	src, dst, third := pattern(64, 1), pattern(64, 2), pattern(64, 3)
	a, b, c := r.filled(src...), r.filled(dst...), r.filled(third...)
	for _, p := range [][3]uint64{{0, 0, 64}, {0, 63, 1}, {63, 0, 1}, {10, 20, 30}, {5, 5, 0}, {64, 64, 0}} {
		r.list.Copy(b, 4*p[0], a, 4*p[1], 4*p[2])
		copy(dst[p[0]:], src[p[1]:p[1]+p[2]])
		r.want(b, dst)
	}
	r.list.Copy(c, 0, b, 0, 256) // in one list each copy sees what the one before left
	r.list.Copy(b, 0, a, 128, 128)
	r.list.Copy(a, 0, c, 0, 256)
	r.list.Copy(c, 4, b, 0, 8)
	copy(third, dst)
	copy(dst, src[32:])
	copy(src, third)
	copy(third[1:3], dst)
	r.want(a, src)
	r.want(b, dst)
	r.want(c, third)
}

func clearParts(r *rig) {
	want := pattern(64, 4)
	id := r.filled(want...)
	for _, p := range [][2]uint64{{0, 1}, {63, 1}, {7, 20}, {30, 0}, {64, 0}, {0, 64}} {
		r.list.Clear(id, 4*p[0], 4*p[1])
		clear(want[p[0] : p[0]+p[1]])
		r.want(id, want)
	}
}

// The device's clock does not go back, among more timestamps than a driver may have places for, and writes its 8 bytes alone.
func timestamps(r *rig) {
	const n = 150
	id := r.filled(pattern(2*n+2, 5)...)
	if !r.has(driver.FeatureTimestamps) {
		r.list.Timestamp(id, 0)
		r.submitRefused("a timestamp", fault.ErrUnsupported)
		return
	}
	if r.info.Limits.TimestampPeriod <= 0 {
		r.Errorf("a tick is %g ns", r.info.Limits.TimestampPeriod)
	}
	data := r.filled(1, 2, 3, 4)
	k, set := r.kernel(affine), r.bind(affine, r.whole(data))
	for i := range n {
		r.list.Timestamp(id, uint64(8*i))
		r.dispatch(k, set, groups(1), 1, 1, 4)
	}
	got := r.bytes(id)
	r.want(data, []uint32{n + 1, n + 2, n + 3, n + 4})
	last := uint64(1)
	for i := range n {
		if v := binary.LittleEndian.Uint64(got[8*i:]); v < last {
			r.Fatalf("timestamp %d is %d, after %d", i, v, last)
		} else {
			last = v
		}
	}
	r.same("behind the timestamps", words(got[8*n:]), pattern(2*n+2, 5)[2*n:])
	for _, offset := range []uint64{4, 16 * n, 1 << 40} {
		r.list.Timestamp(id, offset)
		r.submitRefused("a timestamp elsewhere", fault.ErrInvalid)
	}
}

// What does nothing is no error.
func emptyCommands(r *rig) {
	r.check(r.dev.Submit(&r.list))
	a, b := r.filled(1, 2), r.filled(3, 4)
	r.list.Write(a, 0, driver.Host{})
	r.list.Write(a, 8, driver.HostBytes(nil))
	r.list.Write(a, 4, driver.HostBytes([]byte{}))
	r.list.Copy(a, 8, b, 0, 0)
	r.list.Clear(b, 8, 0)
	r.want(a, []uint32{1, 2})
	r.want(b, []uint32{3, 4})
	r.check(r.dev.Wait(r.ctx))
	r.check(r.dev.Wait(r.ctx))
}

func bigRoundTrip(r *rig) {
	const size = 64 << 20
	data := make([]byte, size)
	for i := range size / 4 {
		setWord(data, i, uint32(i)*2654435761)
	}
	a, b := r.buffer(size), r.buffer(size)
	r.list.Write(a, 0, driver.HostBytes(data))
	r.list.Copy(b, 0, a, 0, size)
	r.submit()
	got := make([]byte, size)
	r.check(read(r.ctx, r.dev, b, 0, got))
	if !bytes.Equal(got, data) {
		r.Error("64 MiB came back changed")
	}
	r.check(read(r.ctx, r.dev, b, size-1001, got[:1001]))
	if !bytes.Equal(got[:1001], data[size-1001:]) {
		r.Error("the last bytes of 64 MiB are wrong")
	}
}
