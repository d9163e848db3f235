// SPDX-License-Identifier: Apache-2.0

package page

// Command is what a message asks for. Keep in step with web/src/protocol.mjs.
type Command uint8

// The commands of every program and the words after their header. A number of 64 bits, here called long, is two words, the low
// one first; an object is the number of something on the page's side.
const (
	CmdEnd    Command = 16 // ends the program
	CmdCancel Command = 37 // ticket: ends the context of what is to settle it
)

// The commands of matrices, which package bridge executes. form is the element type | the order << 8 | padded << 9 | input row by row
// << 10, expr an expression. source is memory to make a matrix from:
// flags of package buffer | "a GPUBuffer" << 8, form, rows, cols, offset, stride, object, bytes.
const (
	CmdNew    Command = 1 + iota // handle form rows cols offset stride [object bytes]: zeros, or these elements
	CmdData                      // handle object bytes: replaces all of the matrix, in its order in memory
	CmdFrom                      // handle source
	CmdAlias                     // handle of: another matrix of the same memory
	CmdEval                      // handle expr: a new matrix
	CmdAssign                    // value expr: into the matrix that is the value of that number
	CmdRead                      // ticket object bytes expr: into memory of the page, row by row
	CmdSync                      // ticket handle: results of wrapped memory are in it
	CmdTouch                     // handle: wrapped memory has changed
	CmdClose                     // ticket handle: reports when the memory is not used any more, with ticket 0 nobody cares
	CmdFunc                      // function object: its text
	CmdForget                    // function
	CmdFlush                     // hands what is queued to the device
	CmdWait                      // ticket: reports when everything is done
	CmdBuffer                    // ticket handle: reports the matrix's GPUBuffer
	_                            // CmdEnd

	// Those that change the size or the memory of a matrix: the matrix of the handle from becomes that of another, and stays
	// where it is if the command fails. The ticket hears of either end.
	CmdSetValue // ticket handle from expr
	CmdSetFrom  // ticket handle from source
	CmdResize   // ticket handle from rows cols
	CmdSetShape // ticket handle from rows cols

	CmdLocation // ticket handle: reports where the current bits are

	// Sparse matrices. format is the element type | the format << 8 | "memory of the page" << 16.
	CmdSparse      // handle format rows cols values bytes indices count pointers count
	CmdColumns     // handle of start n: a column slice
	CmdValues      // handle of: its values as a dense matrix
	CmdAppend      // handle i j bits
	CmdSparseEval  // ticket handle format of expr: a sparse result, or of its product with a sparse matrix; reports format and count of indices
	CmdSparseRead  // ticket handle values bytes indices count pointers count
	CmdSparseTouch // handle indices count pointers count: wrapped memory has changed

	// Parameter dictionaries; see params.go of package bridge. limit and size are longs, -1 for none. text is a description of tensors;
	// for each of them there is a handle or, with 0 for it, an object.
	CmdLoad        // ticket handle flags limit size: a file that is read from what is passed; reports a description
	CmdSave        // ticket handle flags text bytes [of object bytes]: a file that is written into what is passed
	CmdPass        // ticket handle object bytes: memory for such a file; reports what is next
	CmdTake        // ticket handle [handle]: gives the arrays that were loaded to these handles
	CmdArrayRead   // ticket handle object bytes: an array's elements
	CmdArrayMatrix // handle of form rows cols: a matrix of an array's memory

	CmdReopen // ticket object: brings a lost device back, with object 0 or the page's next one; reports it

	CmdExplain Command = 38 // ticket expr: reports how an expression is computed

	// What of package nn writes to several matrices, makes several, or remembers something of them; see stateful.go of package bridge.
	CmdLayer Command = 39 // kind [3]handle [3]target [3]value [6]number expr

	CmdRecord Command = 40 // ticket handle [CmdAssign]: plans assignments
	CmdReplay Command = 41 // handle: computes them

	// Timings of kernels, which are texts; see tuning.go of package bridge.
	CmdTuning Command = 42 // ticket: reports results without timings, and the usual work
	CmdTime   Command = 43 // ticket results work rounds: reports the results with those for the work
	CmdTuned  Command = 44 // ticket results: has the device use them, or none if the text is empty
)

// The commands of crunchers, which wasm/cruncher executes. Handles are the page's choice; names are texts. property is a place in
// the table of wasm/cruncher/calls.go, and value a long, which stands for a text by the object's number.
const (
	CmdOpen         Command = 64 + iota // ticket handle wgsl balancer coherence memory [device]: memory is a long; reports kernels and devices
	CmdCloseOpened                      // ticket handle
	CmdCompute                          // ticket handle order
	CmdFetch                            // ticket handle [array]
	CmdEvict                            // ticket handle [array]
	CmdStats                            // ticket handle id: reports what is known of an id
	CmdReport                           // ticket handle: reports what the last call did
	CmdTraffic                          // ticket handle
	CmdArray                            // ticket handle name type object bytes [property value]
	CmdGet                              // ticket handle property
	CmdSet                              // ticket handle property value
	CmdDirty                            // ticket handle: the page wrote into the memory
	CmdCloseArray                       // ticket handle
	CmdBatch                            // ticket handle of: opens a batch of a cruncher
	CmdBatchCompute                     // ticket handle order
	CmdBatchEnd                         // ticket handle: reports when everything has come back
	CmdReached                          // ticket handle: how many calls of a batch are done on all devices
	CmdRemaining                        // ticket handle: how many are not

	// Tasks, and what computes them and stages of kernels. type is a cruncher.TaskType, and called the page's function with 1 before it, or 0.
	// A stage is cruncher count [kernels range] count [kernels range] and three times count [parameter]: what runs, what runs at first, inputs,
	// hidden arrays and outputs.
	CmdTask             // ticket handle type called order
	CmdCloseTask        // ticket handle
	CmdTaskCompute      // ticket handle cruncher
	CmdCalled           // number object: the page's function has returned, the object says what it threw, if anything
	CmdPool             // ticket handle cruncher mode
	CmdClosePool        // ticket handle
	CmdAddDevice        // ticket handle device: reports the device
	CmdEnqueue          // ticket handle [task]
	CmdFinish           // ticket handle: reports the seconds
	CmdPoolStats        // ticket handle: how many tasks each device has completed, and how many remain
	CmdPipeline         // ticket handle count [stage]
	CmdPush             // ticket handle way count [array] way count [array]: way is 1 for the arrays that follow, 0 for those of the stage; reports whether results came
	CmdDevicePipeline   // ticket handle device count [stage]: the place of the device among those of the first stage's cruncher
	CmdFeed             // ticket handle end: begins a feed, or ends it and reports whether results came
	CmdMode             // ticket handle serial
	CmdStopTransmission // ticket handle [stage]
	CmdClosePipeline    // ticket handle: of either kind
)

// The commands of task graphs, which wasm/pipelines executes.
const (
	CmdEdges      Command = 112 + iota // ticket run width height sigma gain frame show
	CmdTrain                           // ticket run data hidden batch rate steps saveEvery points step picture
	CmdStop                            // ticket
	CmdTrace                           // ticket
	CmdDOT                             // ticket
	CmdGraphStats                      // ticket
)
