// SPDX-License-Identifier: Apache-2.0

package gpu_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
)

// TestZeroDevice calls every method of a device that nobody opened, and of none: they are like a closed one.
func TestZeroDevice(t *testing.T) {
	zeroDevice(t, &gpu.Device{})
	zeroDevice(t, nil)
}

func zeroDevice(t *testing.T, d *gpu.Device) {
	t.Helper()
	ctx := t.Context()
	for m := range reflect.TypeFor[*gpu.Device]().Methods() {
		args := []reflect.Value{reflect.ValueOf(d)}
		for in := 1; in < m.Type.NumIn(); in++ {
			arg := reflect.Zero(m.Type.In(in))
			switch {
			case reflect.TypeOf(ctx).AssignableTo(arg.Type()):
				arg = reflect.ValueOf(ctx)
			case arg.Kind() == reflect.Interface:
				arg = reflect.ValueOf("something")
			case arg.Type() == reflect.TypeFor[func() error]():
				arg = reflect.ValueOf(func() error { return nil })
			case arg.Kind() == reflect.Func:
				arg = reflect.ValueOf(func() any { return 1 })
			}
			args = append(args, arg)
		}
		call := m.Func.Call
		if m.Type.IsVariadic() {
			call = m.Func.CallSlice
		}
		out := call(args)
		if len(out) == 0 {
			continue
		}
		last := out[len(out)-1]
		err, _ := reflect.TypeAssert[error](last)
		if last.Type() == reflect.TypeFor[error]() && m.Name != "Close" && !errors.Is(err, gpu.ErrClosed) {
			t.Errorf("%s: %v", m.Name, err)
		}
	}
	if !errors.Is(d.Usable(), gpu.ErrClosed) {
		t.Error("a device that nobody opened is not closed")
	}
}

// TestZeroBuffer calls what every buffer answers, of none and of one that nobody made.
func TestZeroBuffer(t *testing.T) {
	for _, b := range []*gpu.Buffer{nil, {}} {
		if b.Device() != nil || b.Size() != 0 || b.Lost() || b.Identity() != 0 || b.Handle() != nil || b.Close() != nil {
			t.Errorf("%v is something", b)
		}
		if err := b.Clear(0, 4); !errors.Is(err, gpu.ErrInvalid) {
			t.Error(err)
		}
	}
}
