// SPDX-License-Identifier: Apache-2.0

package ctest

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/gpu/gputest"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/native/internal/core"
)

// Transfers of all shapes, in chunks so small that rows are cut.
func testReadInChunks(t *testing.T, bench *Bench) {
	const size = 1 << 18
	d := bench.open(t)
	rowGap := core.Inspect(d).SmallChunks()
	source := make([]byte, size)
	for i := range source {
		source[i] = byte(i * 7 >> 3)
	}
	must(t, d.NewBuffer(1, size, false))
	var l driver.CommandList
	l.Write(1, 0, driver.HostBytes(source))
	must(t, d.Submit(&l))

	shapes := []driver.Transfer{
		{Width: size, Count: 1},
		{Offset: 1, Width: size - 2, Count: 1},
		{Offset: size - 1, Width: 1, Count: 1},
		{Width: 1, Pitch: 1, Count: 5000},
		{Offset: 3, Width: 5, Pitch: 7, Count: 9000},
		{Offset: 2, Width: 3000, Pitch: 5001, Count: 50},
		{Offset: 1, Width: 3, Pitch: rowGap + 4, Count: 30},        // row by row
		{Offset: 3, Width: 4000, Pitch: rowGap + 8192, Count: 16},  // row by row, one a chunk
		{Offset: 7, Width: 2, Pitch: rowGap + 3, Count: 31},        // rows at odd distances
		{Offset: 4, Width: 9000, Pitch: 9000 + rowGap, Count: 15},  // rows longer than a chunk
		{HostOffset: 5, Width: 0, Pitch: 8, Count: 4},              // nothing
		{HostOffset: 5, Offset: 12, Width: 8, Pitch: 8, Count: 0},  // nothing
		{HostOffset: 11, Offset: 8, Width: 16, Pitch: 3, Count: 1}, // a pitch that does not matter
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		tr := driver.Transfer{HostOffset: r.IntN(9), Offset: r.Uint64N(9000), Width: 1 + r.IntN(9000), Count: 1 + r.IntN(8)}
		tr.Pitch = tr.Width + r.IntN(3)*r.IntN(12000)
		shapes = append(shapes, tr)
	}
	for _, tr := range shapes {
		want := bytes.Repeat([]byte{0xa5}, tr.HostOffset+tr.Span())
		for row := range tr.Count * min(tr.Width, 1) {
			copy(want[tr.HostOffset+row*tr.Pitch:][:tr.Width], source[int(tr.Offset)+row*tr.Pitch:])
		}
		got := bytes.Repeat([]byte{0xa5}, len(want))
		tr.Buffer, tr.Host = 1, driver.HostBytes(got)
		must(t, d.Read(t.Context(), tr))
		if !bytes.Equal(got, want) {
			t.Errorf("%d rows of %d bytes, %d apart, from %d: wrong bytes", tr.Count, tr.Width, tr.Pitch, tr.Offset)
		}
	}
}

// Staging buffers are used again and kept within bounds.
func testStagingPool(t *testing.T, bench *Bench) {
	d := bench.open(t)
	must(t, d.NewBuffer(1, 1<<20, false))
	for range 10 {
		for n := 1; n <= 1<<18; n *= 8 {
			_, err := read(t.Context(), d, 1, n)
			must(t, err)
		}
	}
	inside := core.Inspect(d)
	if want := uint64(1<<12 + 1<<14 + 1<<17 + 1<<20); inside.Staging() != want { // one of each size for one reader
		t.Errorf("%d bytes are kept, want %d", inside.Staging(), want)
	}
	inside.TrimStaging(1 << 18)
	if inside.Staging() > 1<<18 {
		t.Errorf("%d bytes are kept where %d may be", inside.Staging(), 1<<18)
	}
}

// More writes than may wait for a submission, in one piece and in many.
func testLargeWrites(t *testing.T, bench *Bench) {
	const size = 80 << 20
	d := bench.open(t)
	must(t, d.NewBuffer(1, size, false))
	source := make([]byte, size)
	for i := range source {
		source[i] = byte(i>>8) ^ byte(i)
	}
	got := make([]byte, size)
	for _, piece := range []int{size, size / 5, size / 80} {
		var l driver.CommandList
		for at := 0; at < size; at += piece {
			l.Write(1, uint64(at), driver.HostBytes(source[at:at+piece]))
		}
		must(t, d.Submit(&l))
		clear(got)
		must(t, d.Read(t.Context(), driver.Transfer{Buffer: 1, Host: driver.HostBytes(got), Width: size, Count: 1}))
		if !bytes.Equal(got, source) {
			t.Errorf("wrong bytes after pieces of %d", piece)
		}
		source[piece/2]++
	}
}

// Writes stand where they stand: after what the list used the buffer for before, before what it uses it for later.
func testWriteOrder(t *testing.T, bench *Bench) {
	const n = 300
	d := bench.open(t)
	prepareAxpy(t, d, 1, n)
	must(t, d.NewBuffer(3, 4*n, false))
	var l driver.CommandList
	sum := make([]uint32, n)
	for i := range uint32(20) {
		x := ramp(n, 100*i)
		l.Write(1, 0, driver.HostBytes(bytesOf(x)))
		if i%3 == 0 { // not named by the list so far, then named by a copy
			l.Write(3, 0, driver.HostBytes(bytesOf(x)))
			l.Copy(1, 4, 3, 0, 4)
			x[1] = x[0]
		}
		l.Dispatch(1, 1, groups(n), gputest.PutU32(nil, n, i))
		if i%4 == 0 {
			l.Clear(2, 0, 8)
			sum[0], sum[1] = 0, 0
			for j := 2; j < n; j++ {
				sum[j] += i * x[j]
			}
			continue
		}
		for j := range sum {
			sum[j] += i * x[j]
		}
	}
	must(t, d.Submit(&l))
	want(t, d, 2, sum)
}

// Parameter blocks beyond what the first parameter buffer holds, with sets made before it grew and after.
func testManyParameters(t *testing.T, bench *Bench) {
	const n = 64
	d := bench.open(t)
	prepareAxpy(t, d, 1, n)
	total := uint32(0)
	for _, count := range []uint32{1, 100, 300, 5, 2000, 3} {
		var l driver.CommandList
		for i := range count {
			l.Dispatch(1, 1, groups(n), gputest.PutU32(nil, n, i))
			total += i
		}
		must(t, d.Submit(&l))
	}
	want(t, d, 2, multiples(n, total))
}

// A set may be forgotten, and its id used again, while the pass that uses it is still being recorded.
func testUnbindWithinPass(t *testing.T, bench *Bench) {
	const n = 64
	d := bench.open(t)
	must(t, d.NewKernel(t.Context(), 1, &bump))
	must(t, d.NewBuffer(1, 4*n, false))
	must(t, d.NewBuffer(2, 4*n, false))
	var l driver.CommandList
	for i := range 300 {
		l.Bind(1, bump.Layout, []driver.Binding{whole(driver.BufferID(1+i%2), n)})
		l.Dispatch(1, 1, groups(n), nil)
		l.Unbind(1)
	}
	must(t, d.Submit(&l))
	want(t, d, 1, []uint32{150, 150})
	want(t, d, 2, []uint32{150, 150})
}

// A dispatch that the platform refuses although the list is right takes its segment with it, and the sets that the list
// defines stay defined.
func testPlatformRefusal(t *testing.T, bench *Bench) {
	const n = 64
	d := bench.open(t)
	k := bump
	k.Source = `
struct Wide { a: array<u32, 100> }
@group(0) @binding(0) var<storage, read_write> y: Wide;
@compute @workgroup_size(1) fn main() { y.a[0] = 7u; }
`
	must(t, d.NewKernel(t.Context(), 1, &k))
	must(t, d.NewKernel(t.Context(), 2, &bump))
	must(t, d.NewBuffer(1, 4*n, false))
	var l driver.CommandList
	l.Bind(1, k.Layout, []driver.Binding{whole(1, n)}) // too small for Wide
	l.Dispatch(1, 1, groups(1), nil)
	l.Clear(1, 0, 4)
	l.Bind(2, bump.Layout, []driver.Binding{whole(1, n)})
	l.Unbind(1)
	refused(t, d, "too small", d.Submit(&l), fault.ErrInvalid)
	want(t, d, 1, []uint32{0})
	l.Reset()
	l.Dispatch(2, 2, groups(n), nil)
	must(t, d.Submit(&l))
	want(t, d, 1, []uint32{1})
}
