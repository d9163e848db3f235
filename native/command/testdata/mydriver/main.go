// SPDX-License-Identifier: Apache-2.0

// The program mydriver is the command with a driver of somebody else's, which computes with the devices of the oracle.
package main

import (
	"context"
	"log"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/cpu"
	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/native/command"
)

const name = "mydriver"

// device is a device of the oracle under another name.
type device struct{ driver.Device }

func (d device) Info() driver.AdapterInfo { return renamed(d.Device.Info()) }

func renamed(info driver.AdapterInfo) driver.AdapterInfo {
	info.Driver, info.Name = name, "My Adapter"
	return info
}

func adapters(ctx context.Context) ([]driver.Adapter, error) {
	list, err := cpu.New().Adapters(ctx)
	for i, a := range list {
		list[i].Info = renamed(a.Info)
		list[i].Open = func(ctx context.Context) (driver.Device, error) {
			dev, err := a.Open(ctx)
			return device{dev}, err
		}
	}
	return list, err
}

func init() {
	if err := gpu.Register(driver.Driver{Name: name, Adapters: adapters}); err != nil {
		log.Fatal(err)
	}
}

func main() { command.Main() }
