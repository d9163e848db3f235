// SPDX-License-Identifier: Apache-2.0

// Package graph runs a dataflow graph on several devices: tasks that start when their inputs have arrived, and blocks of data that
// stay on the device that wrote them until another needs them. It is the model of PTask (Rossbach et al., "PTask: Operating System
// Abstractions To Manage GPUs as Compute Devices", SOSP 2011), for which CNTK's matrices have external buffers.
//
//	g, err := graph.New([]*gpu.Device{a, b})
//	m := g.Template("m", 64, 64, dtype.Float32)
//	layer := g.Task("layer", graph.Eval[float32]("relu(x*w)"), graph.In("x", m), graph.Sticky("w", m), graph.Out("y", m))
//	in, out := g.Input("x", layer.Port("x")), g.Output("y", layer.Port("y"))
//	err = layer.Port("w").Set(weights)
//	err = g.Run(ctx)
//	err = in.Push(ctx, block)
//	result, err := out.Pull(ctx)
//	result.Release()
//	err = g.Teardown()
//
// # Building
//
// Calls that build the graph return no errors: [Graph.Finalize] returns all of them. If a call is given several configurations the last
// one counts.
//
// # Blocks
//
// A [Block] has a place on the host and one on each device that ever used it, with PTask's states: no entry, invalid, shared,
// exclusive. Before a task reads a block, the current bytes are copied to its device, through the host, if they are not there. Writing
// a block makes all other places invalid. Blocks are reference-counted, and their memory is reused; see [Format].
//
// If a block goes to several tasks, tasks that only read it share it. Tasks that write it, with an output in place of the input, get
// clones, so that no task sees another one's changes.
//
// # Matrices
//
// [Expr], [Eval] and [Matrix] use one matrix for each block and device. Each dispatch sets it to the block's memory and size by
// SetValueFrom with buffer.DontOwnBuffer, so it never frees the memory.
//
// # Running
//
// A task is ready when every input has a block and every output has capacity. [Mode] says which of the ready tasks is next, and
// where it runs. Each device runs one task at a time: the body queues work and returns, so that transfers, work on other devices and
// on the host overlap. A graph without ready tasks uses no processor time. In a page the graph yields every few milliseconds to timers,
// events and frames.
//
// # Errors
//
// If a task fails or panics, each of its outputs sends a block that carries the error and the signal [Failed]. A task that gets such a
// block does not run and passes it on, so that it reaches the outputs of the graph: [Block.Err]. If a device is lost, its tasks run
// elsewhere until [gpu.Device.Reopen]. Using a block whose only copy was on the lost device is an error until all of it is written
// again.
package graph
