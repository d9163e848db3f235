// SPDX-License-Identifier: Apache-2.0

//go:build !sublet_simd

package simd

import "syscall/js"

// instance is a module on Go's memory.
type instance struct{ run js.Value }

func (m *machine) instantiate(t *translation) (in *instance, err error) {
	defer thrown(&err)
	return &instance{m.exports(t).Get("run")}, nil
}

// call runs workgroups of a dispatch. The error is that of a module that trapped.
func (i *instance) call(args, scratch, from, to uint32) (result uint32, err error) {
	defer thrown(&err)
	return uint32(i.run.Invoke(args, scratch, from, to).Int()), nil
}

func (*instance) close() {}
