// SPDX-License-Identifier: Apache-2.0

// Package graph runs a dataflow graph on several devices: tasks that start when their inputs are there, and blocks of data
// that live on whichever device has them. It is the model of PTask (Rossbach et al., "PTask: Operating System Abstractions To
// Manage GPUs as Compute Devices", SOSP 2011), the use that CNTK's matrices with external buffers were made for.
//
//	g, err := graph.New([]*gpu.Device{a, b})
//	m := g.Template("m", 64, 64, matrix.Float32)
//	mul := g.Task("mul", graph.Expr(func(in graph.Operands) matrix.AnyExpr { return in("x").Mul(in("w")) }),
//		graph.In("x", m), graph.Sticky("w", m), graph.Out("y", m))
//	in, out := g.Input("x", mul.Port("x")), g.Output("y", mul.Port("y"))
//	err = mul.Port("w").Set(weights)
//	err = g.Run(ctx)
//	err = in.Push(ctx, block)
//	result, err := out.Pull(ctx)
//	result.Release()
//	err = g.Teardown()
//
// # Building
//
// Calls that build return no errors. What is wrong is collected, and [Graph.Finalize] returns all of it as [Faults].
//
// # Blocks
//
// A [Block] has a place on the host and one on each device that ever used it, with PTask's states: no entry, invalid, shared,
// exclusive. A task that reads it brings the newest bytes to its device, if they are not there; one that writes makes all
// other places invalid. Bytes move from one device to another by way of the host. Blocks are counted, and their memory on all
// devices serves again; see [PoolSize].
//
// One block that goes to several tasks is shared by those that read it. Tasks that write it, with an output [InPlace] of the
// input, get clones, so that nobody sees a block change that he did not get to write.
//
// # Matrices
//
// [Dispatch.Matrix] is a shell: one matrix for each block and device that is pointed at the block's memory with SetValueFrom
// and buffer.DontOwnBuffer in each dispatch. The shell never frees the memory, and its size is the block's own.
//
// # Running
//
// A task is ready when every input has a block and every output has room. [Mode] says which of those that are ready is next,
// and where it runs. Each device has one worker: it calls the body, which queues work and returns, so that transfers, work on
// other devices and what the host does overlap. Channels have room for a fixed number of blocks; a slow consumer stalls those who
// produce for it and nobody else. A graph in which nothing is ready uses no processor time. To see how long devices work, and not
// only how long queueing takes, there is [WithSync]. With [Deterministic] no task runs in a goroutine of the graph's.
//
// In a page it is the same scheduler. All goroutines share the page's thread there, so a graph that always has something to do
// rests every few milliseconds until timers, events and frames had their turn.
//
// # Errors
//
// A task that fails, or panics, sends blocks that stand for its error from all of its outputs, with the signal [Failed]. Tasks
// that get one do not run and pass it on, so that it reaches the outputs of the graph: [Block.Err]. If a device is lost its tasks run
// elsewhere until [gpu.Device.Reopen] brings it back. A block whose only copy was there stays an error until all of
// it is written anew.
package graph
