// SPDX-License-Identifier: Apache-2.0

// Peer is Sublet's entry in a benchmark that runs libraries for Go side by side, each in a process of its own. Every item
// is what a user would write for it.
//
// It is a module of its own, because the benchmark is one. Put this folder into the benchmark's peers folder as ours and
// say there where Sublet is:
//
//	go mod edit -replace github.com/sublet-gpu/sublet=PATH
//	go mod tidy
package main

import (
	"context"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
	"nativepeers/peer"
)

type (
	dense = matrix.Dense[float32]
	expr  = matrix.Expr[float32]
)

func main() { peer.Main(&sublet{ctx: context.Background()}) }

type sublet struct {
	ctx context.Context
	dev *gpu.Device
}

// Open takes the best adapter of the machine.
func (s *sublet) Open() (string, error) {
	dev, err := gpu.Open(s.ctx)
	if err != nil {
		return "", err
	}
	s.dev = dev
	return "sublet on " + dev.Info().Name, nil
}

// Case prepares an item.
func (s *sublet) Case(it peer.Item, in peer.Inputs) (*peer.Case, error) {
	c := &item{sublet: s}
	m, n, k := max(it.M, 1), it.N, it.K
	switch it.Kind {
	case "matmul", "gemv":
		a, b := c.upload(m, k, in.A), c.upload(k, n, in.B)
		return c.compute(func() *expr { return matrix.Mul(a, b) })
	case "fma":
		a, b, d := c.upload(1, n, in.A), c.upload(1, n, in.B), c.upload(1, n, in.C)
		return c.compute(func() *expr { return matrix.MulElem(a, b).Add(d) })
	case "chain":
		a, b := c.upload(1, n, in.A), c.upload(1, n, in.B)
		return c.compute(func() *expr {
			return matrix.MulElem(a, b).Add(a).Abs().Sqrt().Neg().Exp().Add(b).MulElem(a).Sub(b).MulElem(a)
		})
	case "madd":
		a, b := c.upload(1, n, in.A), c.upload(1, n, in.B)
		return c.compute(func() *expr {
			return matrix.MulElem(a, b).Add(a).MulElem(b).Add(b).MulElem(a).Add(a).MulElem(b).Add(b).MulElem(a).Add(a)
		})
	case "sum":
		a := c.upload(1, n, in.A)
		return c.compute(func() *expr { return matrix.Sum(a) })
	case "softmax":
		a := c.upload(m, n, in.A)
		return c.compute(func() *expr { return matrix.Softmax(a) })
	case "transpose":
		a := c.upload(m, n, in.A)
		return c.compute(func() *expr { return matrix.Transpose(a) })
	case "tiny":
		a, b := c.upload(m, n, in.A), c.upload(m, n, in.B)
		return c.tiny(it.Ops, a, b)
	case "latency":
		a, b := c.upload(m, n, in.A), c.upload(m, n, in.B)
		return c.latency(a, b)
	case "upload":
		return c.transferIn(in.A)
	case "download":
		return c.transferOut(in.A)
	}
	return nil, peer.NA("not offered")
}

// item is a case: its operands, and the result that its computation leaves on the device.
type item struct {
	*sublet
	operands []*dense
	y        dense
	err      error
}

func (c *item) upload(rows, cols int, values []float32) *dense {
	m, err := matrix.FromSlice(c.dev, rows, cols, values)
	if err != nil {
		c.err = err
		return nil
	}
	c.operands = append(c.operands, m)
	return m
}

// compute is an expression, built and computed by every run.
func (c *item) compute(f func() *expr) (*peer.Case, error) {
	return c.run(c.result, func() error { return c.wait(c.y.Assign(f())) })
}

// tiny adds b to a many times, one operation after the other.
func (c *item) tiny(ops int, a, b *dense) (*peer.Case, error) {
	return c.run(c.result, func() error {
		err := c.y.Add(a, b)
		for i := 1; i < ops && err == nil; i++ {
			err = c.y.Add(&c.y, b)
		}
		return c.wait(err)
	})
}

// latency has the sum in a Go slice.
func (c *item) latency(a, b *dense) (*peer.Case, error) {
	var sum []float32
	return c.run(func() ([]float32, error) { return sum, nil }, func() error {
		err := c.y.Add(a, b)
		if err == nil {
			sum, err = c.y.Read(c.ctx)
		}
		return err
	})
}

func (c *item) transferIn(values []float32) (*peer.Case, error) {
	y := c.upload(1, len(values), values)
	return c.run(func() ([]float32, error) { return y.Read(c.ctx) }, func() error { return c.wait(y.SetSlice(values)) })
}

func (c *item) transferOut(values []float32) (*peer.Case, error) {
	a, out := c.upload(1, len(values), values), make([]float32, len(values))
	p, err := c.run(func() ([]float32, error) { return out, nil }, func() error { return c.y.ReadTo(c.ctx, out) })
	p.Before = func() error { return c.wait(c.y.Add(a, a)) }
	return p, err
}

// result reads what a computation left on the device.
func (c *item) result() ([]float32, error) { return c.y.Read(c.ctx) }

// wait returns once the device is done with an operation that began without an error.
func (c *item) wait(err error) error {
	if err != nil {
		return err
	}
	return c.dev.Sync(c.ctx)
}

func (c *item) run(read func() ([]float32, error), f func() error) (*peer.Case, error) {
	return &peer.Case{Run: f, Read: read, Close: c.close}, c.err
}

func (c *item) close() {
	for _, m := range append(c.operands, &c.y) {
		if err := m.Close(); err != nil {
			panic(err)
		}
	}
}
