// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js

package core

import (
	"context"
	_ "embed" // the kernel
	"encoding/binary"

	"github.com/sublet-gpu/sublet/gpu/driver"
)

//go:embed probe.wgsl
var probeSource string

var probe = driver.Kernel{
	Label: "sublet probe", Source: probeSource, Entry: "main", Bounded: true,
	Layout: driver.NewLayout(driver.AccessReadWrite, driver.AccessParams),
}

// measureLoops measures how many turns the loops of an invocation make before the device ends them, or 0 if it does not. It is
// called before anybody else knows the device.
func (d *device) measureLoops(ctx context.Context) (uint32, error) {
	const id, size, turns = 1, 16, llvmpipeLoops + 1000
	if err := d.NewBuffer(id, size, false); err != nil {
		return 0, err
	}
	defer d.FreeBuffer(id)
	if err := d.NewKernel(ctx, id, &probe); err != nil {
		return 0, err
	}
	defer d.FreeKernel(id)
	var list driver.CommandList
	list.Bind(id, probe.Layout, []driver.Binding{{Buffer: id, Size: size}})
	list.Dispatch(id, id, [3]uint32{1, 1, 1}, binary.LittleEndian.AppendUint32(nil, turns))
	list.Unbind(id)
	if err := d.Submit(&list); err != nil {
		return 0, err
	}
	made := make([]byte, 4)
	if err := d.Read(ctx, driver.Transfer{Buffer: id, Host: driver.HostBytes(made), Width: len(made), Count: 1}); err != nil {
		return 0, err
	}
	if n := binary.LittleEndian.Uint32(made); n < turns {
		return n, nil
	}
	return 0, nil
}
