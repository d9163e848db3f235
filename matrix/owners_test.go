// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/matrix"
)

// poison is what earlier owners left in every byte of the device's pool.
const poison = 0xa5

// poisoned fills the pool with closed buffers of every small size, twice, and of some larger ones.
func poisoned(t *testing.T, dev *gpu.Device) {
	t.Helper()
	var all []*gpu.Buffer
	for size := 16; size <= 1<<12; size += 16 {
		for range 2 {
			b := must[*gpu.Buffer](t)(dev.NewBuffer(uint64(size)))
			check(t, b.Write(0, gpu.HostBytes(bytes.Repeat([]byte{poison}, int(b.Size())))))
			all = append(all, b)
		}
	}
	for _, b := range all {
		check(t, b.Close())
	}
	check(t, dev.Sync(background))
}

// clean wants no earlier owner's byte in the memory of a matrix, pads and spare capacity included.
func clean(t *testing.T, what string, b *buffer.Buffer) {
	t.Helper()
	if b.Size() == 0 {
		return
	}
	mem := make([]byte, b.Size())
	check(t, b.Read(background, buffer.Range(0, b.Size()), gpu.HostBytes(mem), 0))
	if i := bytes.IndexByte(mem, poison); i >= 0 {
		t.Fatalf("%s: byte %d of %d is an earlier owner's: % x", what, i, len(mem), mem)
	}
}

// TestEarlierOwners makes, resizes and partly writes matrices of the memory that closed ones left: nobody sees what these had.
func TestEarlierOwners(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		rng := rand.New(rand.NewPCG(13, 5))
		for range devtest.Times(25) {
			poisoned(t, dev)
			for range 8 {
				ownersRound(t, dev, rng)
			}
		}
	})
}

func ownersRound(t *testing.T, dev *gpu.Device, rng *rand.Rand) {
	t.Helper()
	rows, cols := 1+rng.IntN(20), 1+rng.IntN(20)
	o := matrix.Options{ColMajor: rng.IntN(2) == 0, Padded: rng.IntN(2) == 0, Offset: rng.IntN(3) * rng.IntN(5)}
	m := must[*dense](t)(matrix.New[float32](dev, rows, cols, o))
	defer m.Close()
	v := make([]float32, rows*cols)
	var err error
	what := ""
	switch rng.IntN(11) {
	case 0:
		what = "new"
	case 1:
		what, err = "a view filled", m.Slice(0, 1, 0, 1).Fill(1)
	case 2:
		what, err = "assigned", m.Assign(matrix.Fill[float32](rows, cols, 2))
	case 3:
		what, err = "an element set", m.Set(rows-1, cols-1, 3)
	case 4:
		what, err = "set", m.SetSlice(v)
	case 5:
		what, err = "smaller, then as before", errors.Join(m.Fill(1), m.Resize((rows+1)/2, cols), m.Fill(2), m.Resize(rows, cols))
	case 6:
		what, err = "larger", errors.Join(m.Fill(1), m.Resize(2*rows, cols+3))
	case 7:
		small := must[*dense](t)(matrix.FromSlice(dev, 1, 1, []float32{4}))
		what, err = "a smaller value", errors.Join(m.SetValue(small), m.Resize(rows, cols), small.Close())
	case 8:
		ctx, cancel := context.WithCancel(background)
		cancel()
		if m.AssignContext(ctx, matrix.Tanh(m)) == nil {
			t.Error("assigned under a context that has ended")
		}
		what = "a failed assignment"
	case 9:
		what, err = "accessed", m.Access(background, buffer.Replaces, func([]float32) error { return nil })
	default:
		what = "mapped"
		check(t, m.Close())
		m = must[*dense](t)(matrix.Map[float32](dev, rows, cols))
		row := m.Row(0)
		err = errors.Join(row.Fill(5), row.Close(), m.Resize(rows+1, cols))
	}
	check(t, err)
	clean(t, what, m.Buffer())
	got := must[[]float32](t)(m.Read(background))
	if what == "new" {
		same(t, "zeros", got, v)
	}
	ownersOthers(t, dev, rng, rows, cols)
}

// ownersOthers are matrices of other kinds.
func ownersOthers(t *testing.T, dev *gpu.Device, rng *rand.Rand, rows, cols int) {
	t.Helper()
	h := must[*matrix.Dense[matrix.Half]](t)(matrix.New[matrix.Half](dev, rows, cols))
	check(t, h.Set(rng.IntN(rows), rng.IntN(cols), matrix.ToHalf(1)))
	clean(t, "half", h.Buffer())
	three := must[*matrix.Dense[matrix.Half]](t)(matrix.FromSlice(dev, 1, 3, make([]matrix.Half, 3)))
	check(t, three.Assign(matrix.Add(three, three)))
	clean(t, "three halves", three.Buffer())
	s := must[*sparse](t)(matrix.NewSparse[float32](dev, matrix.CSR, rows, cols, nil, nil, make([]int32, rows+1)))
	check(t, s.Append(0, 0, 1))
	d := must[*dense](t)(s.ToDense())
	want := make([]float32, rows*cols)
	want[0] = 1
	same(t, "sparse", must[[]float32](t)(d.Read(background)), want)
	clean(t, "of a sparse one", d.Buffer())
	check(t, errors.Join(h.Close(), three.Close(), s.Close(), d.Close()))
}
