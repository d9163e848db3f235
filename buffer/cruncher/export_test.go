// SPDX-License-Identifier: Apache-2.0

package cruncher

import "github.com/sublet-gpu/sublet/gpu"

// Devices lists the devices of a cruncher.
func (cr *Cruncher) Devices() (list []*gpu.Device) {
	if cr == nil {
		return nil
	}
	for _, w := range cr.workers {
		list = append(list, w.dev)
	}
	return list
}

// Traffic returns what moved between the arrays of a pipeline and its device.
func (p *DevicePipeline) Traffic() Traffic {
	if p == nil {
		return Traffic{}
	}
	return p.cr.Traffic()
}

// Latency returns how many feeds after that of its data a result comes.
func (p *DevicePipeline) Latency() int {
	if p == nil || p.serial {
		return 0
	}
	return len(p.stages)
}

// Cruncher returns what computes a stage.
func (p *Pipeline) Cruncher(stage int) *Cruncher {
	return p.stages[stage].cr
}
