// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"slices"
	"testing"
)

// TestShorter replaces sequences of Go's compiler, and leaves alone what only looks like them.
func TestShorter(t *testing.T) {
	const push = 5
	var (
		sp      = []byte{opLocalGet, 1}
		plus8   = []byte{opLocalGet, 1, opI32Const, 8, opI32Add}
		minus1  = []byte{opLocalGet, 1, opI32Const, 0x7f, opI32Add}
		keep    = []byte{opLocalTee, 1, opGlobalSet, globalSP}
		leave   = []byte{opI32Const, 0, opReturn}
		renew   = []byte{opGlobalGet, globalSP, opLocalSet, 1}
		down    = slices.Concat([]byte{opLocalGet, 1, opI32Const, 8, opI32Sub}, keep, []byte{opLocalGet, 1, opI64Const, 0x42, opI64Store, 3, 0, opI32Const, 0, opCall, 9}, renew)
		other   = []byte{opLocalGet, 2, opI32Const, 8, opI32Add}
		load    = []byte{0x29, 3, 4}
		large   = []byte{opLocalGet, 1, opI32Const, 0xff, 0xff, 0xff, 0x3f, opI32Add} // 2^27 - 1
		change  = []byte{opI32Const, 0, opLocalSet, 1}
		product = []byte{opLocalGet, 3, opLocalGet, 4, 0x7e} // i64.mul
	)
	for name, c := range map[string]struct{ code, want [][]byte }{
		"addresses of 64 bits":     {[][]byte{{opI64ExtendU, opI64Const, 3, opI64Add, opI32WrapI64}}, [][]byte{{opI32Const, 3, opI32Add}}},
		"a number of 64 bits":      {[][]byte{{opI64Const, 3, opI32WrapI64}}, [][]byte{{opI32Const, 3}}},
		"a load":                   {[][]byte{plus8, load}, [][]byte{sp, {0x29, 3, 12}}},
		"a load below SP":          {[][]byte{minus1, load}, [][]byte{minus1, load}},
		"a load elsewhere":         {[][]byte{other, load}, [][]byte{other, load}},
		"a load of a later value":  {[][]byte{plus8, sp, load}, [][]byte{plus8, sp, load}},
		"a store":                  {[][]byte{plus8, product, {opI64Store, 3, 0}}, [][]byte{sp, product, {opI64Store, 3, 8}}},
		"a store of what was read": {[][]byte{plus8, plus8, load, {opI64Store, 3, 0}}, [][]byte{sp, sp, {0x29, 3, 12}, {opI64Store, 3, 8}}},
		"a store after a branch":   {[][]byte{plus8, {opI32Const, 1, opIf, typeI64}, sp, load, {opElse}, sp, load, {opEnd, opI64Store, 3, 0}}, nil},
		"two additions":            {[][]byte{plus8, keep, plus8, keep, product, {opDrop}}, [][]byte{{opLocalGet, 1, opI32Const, 16, opI32Add}, keep, product, {opDrop}}},
		"the end":                  {[][]byte{plus8, keep, plus8, keep, leave}, [][]byte{{opLocalGet, 1, opI32Const, 16, opI32Add, opGlobalSet, globalSP}, leave}},
		"an addition to a local":   {[][]byte{other, {opLocalTee, 2}, {opGlobalSet, 3}, leave}, nil},
		"a call":                   {[][]byte{renew, down}, [][]byte{renew, {opI64Const, 0x42, opCall, push, opI32Const, 0, opCall, 9}, renew}},
		"a copy that is no copy":   {[][]byte{renew, change, down}, nil},
		"SP without its copy":      {[][]byte{renew, {opLocalGet, 2, opGlobalSet, globalSP}, down}, nil},
		"a call with an offset":    {[][]byte{renew, slices.Concat(down[:13], []byte{opI64Store, 3, 8}, down[16:])}, nil},
		"a call by another way":    {[][]byte{renew, slices.Concat([]byte{opLocalGet, 1, opI32Const, 16, opI32Sub}, down[5:])}, nil},
		"large additions":          {[][]byte{large, keep, large, keep, product, {opDrop}}, [][]byte{{opLocalGet, 1, opI32Const, 0xfe, 0xff, 0xff, 0xff, 0, opI32Add}, keep, product, {opDrop}}},
		"nothing":                  {[][]byte{{opNop}, sp}, [][]byte{sp}},
	} {
		code := slices.Concat(c.code...)
		_, list := instructions(append([]byte{0}, code...))
		var got []byte
		for _, in := range shorter(list, push) {
			got = append(got, in.bytes...)
		}
		want := slices.Concat(c.want...)
		if c.want == nil {
			want = code
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s: % x, want % x", name, got, want)
		}
	}
}
