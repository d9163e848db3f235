// SPDX-License-Identifier: Apache-2.0

// Package graph runs a dataflow graph on several devices: tasks that start when their inputs are there, and blocks of data
// that live on whichever device has them. It is the model of PTask (Rossbach et al., "PTask: Operating System Abstractions To
// Manage GPUs as Compute Devices", SOSP 2011), the use that CNTK's matrices with external buffers were made for.
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
// Calls that build return no errors: [Graph.Finalize] returns all that is wrong. Of several configurations that a call is given the last
// one counts.
//
// # Blocks
//
// A [Block] has a place on the host and one on each device that ever used it, with PTask's states: no entry, invalid, shared,
// exclusive. A task that reads it brings the current bytes to its device, by way of the host, if they are not there. A task that writes
// it makes all other places invalid. Blocks are reference-counted, and their memory serves again; see [Format].
//
// A block that goes to several tasks is shared by those that read it. Tasks that write it, with an output in place of the input,
// get clones, so that no task sees another one's changes.
//
// # Matrices
//
// [Expr], [Eval] and [Matrix] use one matrix for each block and device, which is pointed at the block's memory with SetValueFrom
// and buffer.DontOwnBuffer in each dispatch. It never frees the memory, and its size is the block's.
//
// # Running
//
// A task is ready when every input has a block and every output has capacity. [Mode] says which of the ready tasks is next, and
// where it runs. Each device runs one task at a time: the body queues work and returns, so that transfers, work on other devices and
// what the host does overlap. A graph in which nothing is ready uses no processor time. In a page it rests every few milliseconds until
// timers, events and frames had their turn.
//
// # Errors
//
// A task that fails, or panics, sends blocks that stand for its error from all of its outputs, with the signal [Failed]. Tasks
// that get one do not run and pass it on, so that it reaches the outputs of the graph: [Block.Err]. If a device is lost its tasks run
// elsewhere until [gpu.Device.Reopen] brings it back. A block whose only copy was there stays an error until all of
// it is written anew.
package graph
