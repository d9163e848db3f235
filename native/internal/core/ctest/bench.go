// SPDX-License-Identifier: Apache-2.0

package ctest

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// Bench is a driver over package core, and its binding as a program uses it beside the driver. Handles are what the driver takes and
// gives out: *wgpu.Device and *wgpu.Buffer.
type Bench struct {
	Driver driver.Driver

	// RequestDevice requests a device of the best adapter, without features and with default limits.
	RequestDevice  func() (device any, err error)
	ReleaseDevice  func(device any)
	MaxInvocations func(device any) uint32 // limit maxComputeInvocationsPerWorkgroup

	CreateBuffer  func(device any, size uint64, usage Usage, mapped bool) (buffer any, err error)
	DestroyBuffer func(buffer any)
	ReleaseBuffer func(buffer any)
	MappedRange   func(buffer any, size int) []byte // of a buffer that is mapped
	Unmap         func(buffer any) error
	Write         func(device, buffer any, data []byte) error   // to the start of the buffer, by the device's queue
	Copy          func(device, from, to any, size uint64) error // from start to start, by an encoder, submitted
	CreateModule  func(device any, source string) (module any, err error)
	// Stray makes an error on the device that no call of its own reports. It is nil where all calls of the binding report their errors.
	Stray func(device any) error

	NilDevice, EmptyDevice any // a nil pointer, and one to the zero value
	NilBuffer, EmptyBuffer any

	// What differs between versions of the library, and why.

	// Unseen says why the driver cannot see that a buffer was released or is mapped from its creation on, or "".
	Unseen string
	// Cleared says that to release an object clears its handle, which is then refused like an empty one.
	Cleared bool
	// NoSwiftShader says why the driver does not list SwiftShader, or "".
	NoSwiftShader string
	// Old says that the library lacks parts of WGSL that came late.
	Old bool
	// Fatal says why the library ends the process on a source, or returns "". Such sources are not compiled.
	Fatal func(source string) string
	// Takes names a kernel that others refuse and this version takes.
	Takes string
	// Second says that another driver over package core has all cases in short tests. This one has those that depend on the binding.
	Second bool
}

// Usage is a set of usages of a buffer, with the values of GPUBufferUsage.
type Usage uint32

// The usages.
const (
	UsageMapWrite Usage = 0x02
	UsageCopySrc  Usage = 0x04
	UsageCopyDst  Usage = 0x08
	UsageStorage  Usage = 0x80

	// UsageImport is what a buffer needs that is imported.
	UsageImport = UsageStorage | UsageCopySrc | UsageCopyDst
)

type testCase struct {
	name string
	run  func(t *testing.T, bench *Bench)
}

var cases = []testCase{
	{"Conformance", testConformance},
	{"Adopt", testAdopt},
	{"AdoptClosed", testAdoptClosed},
	{"AdoptedConformance", testAdoptedConformance},
	{"AdoptedAdapter", testAdoptedAdapter},
	{"AdoptedUnlisted", testAdoptedUnlisted},
	{"Import", testImport},
	{"BufferHandle", testBufferHandle},
	{"StrayErrors", testStrayErrors},
	{"OddSize", testOddSize},
	{"DestroyBuffer", testDestroyBuffer},
	{"LongJob", testLongJob},
	{"GoroutinesShareADevice", testGoroutinesShareADevice},
	{"UseWhileOthersWait", testUseWhileOthersWait},
	{"TwoDevices", testTwoDevices},
	{"Loops", testLoops},
	{"EndlessLoops", testEndlessLoops},
	{"GuardNamesMistakes", testGuardNamesMistakes},
	{"LoopsOfOthers", testLoopsOfOthers},
	{"GuardChangesNothing", testGuardChangesNothing},
	{"HostileKernels", testHostileKernels},
	{"OpenCloseCycles", testOpenCloseCycles},
	{"CloseWhileBusy", testCloseWhileBusy},
	{"OpenAfterClose", testOpenAfterClose},
	{"WaitCancelled", testWaitCancelled},
	{"Loss", testLoss},
	{"Adapters", testAdapters},
	{"AdaptersAgain", testAdaptersAgain},
	{"OpenAfterListing", testOpenAfterListing},
	{"MappedStorage", testMappedStorage},
	{"MapCancelled", testMapCancelled},
	{"MapOvertaken", testMapOvertaken},
	{"MapClosed", testMapClosed},
	{"RefusedLists", testRefusedLists},
	{"RefusedKernels", testRefusedKernels},
	{"CompileMessage", testCompileMessage},
	{"RefusedBuffers", testRefusedBuffers},
	{"ReimportedBuffers", testReimportedBuffers},
	{"Released", testReleased},
	{"BuffersOthersSpoil", testBuffersOthersSpoil},
	{"BindingBeside", testBindingBeside},
	{"ForeignRaw", testForeignRaw},
	{"RefusedTransfers", testRefusedTransfers},
	{"RefusedMappings", testRefusedMappings},
	{"RefusedContexts", testRefusedContexts},
	{"RefusedAdoptions", testRefusedAdoptions},
	{"UseAfterClose", testUseAfterClose},
	{"ReadbackUnderGarbageCollection", testReadbackUnderGarbageCollection},
	{"AnnouncedRead", testAnnouncedRead},
	{"AnnouncedInVain", testAnnouncedInVain},
	{"ReadInChunks", testReadInChunks},
	{"StagingPool", testStagingPool},
	{"LargeWrites", testLargeWrites},
	{"WriteOrder", testWriteOrder},
	{"ManyParameters", testManyParameters},
	{"UnbindWithinPass", testUnbindWithinPass},
	{"PlatformRefusal", testPlatformRefusal},
}

// ofBinding names what depends on the binding and on the version of the library in it.
var ofBinding = []string{
	"Conformance", "Adopt", "AdoptedAdapter", "Import", "BufferHandle", "StrayErrors", "DestroyBuffer", "EndlessLoops", "GuardNamesMistakes",
	"HostileKernels", "Loss", "Adapters", "MappedStorage", "CompileMessage", "RefusedKernels", "RefusedBuffers", "Released",
	"BuffersOthersSpoil", "BindingBeside",
}

// Run tests the driver. The test that calls it does nothing else: cases that may end the process start it again in another one.
func Run(t *testing.T, bench Bench) {
	t.Helper()
	for _, c := range cases {
		if bench.Second && !long() && !slices.Contains(ofBinding, c.name) {
			continue
		}
		t.Run(c.name, func(t *testing.T) { c.run(t, &bench) })
	}
}

// again is the arguments with which the test's program runs nothing but this test.
func again(t *testing.T) string {
	return "-test.run=^" + strings.ReplaceAll(t.Name(), "/", "$/^") + "$"
}

// long reports whether tests are to take their time.
func long() bool { return os.Getenv("SUBLET_LONG") != "" }

// times is how often something random is repeated: n times, or in long tests 20 times as often.
func times(n int) int {
	if long() {
		return 20 * n
	}
	return n
}

// openBest opens the best adapter.
func (bench *Bench) openBest(ctx context.Context) (driver.Device, error) {
	adapters, err := bench.Driver.Adapters(ctx)
	if err != nil {
		return nil, err
	}
	if len(adapters) == 0 {
		return nil, fault.Fail("test", fault.ErrNoAdapter)
	}
	return adapters[0].Open(ctx)
}

// open opens a device for the time of a test.
func (bench *Bench) open(t testing.TB) driver.Device {
	t.Helper()
	d, err := bench.openBest(context.Background())
	must(t, err)
	t.Cleanup(func() { must(t, d.Close()) })
	return d
}

// request makes a device with the binding alone, as a program would that has one already.
func (bench *Bench) request(t testing.TB) any {
	t.Helper()
	dev, err := bench.RequestDevice()
	must(t, err)
	return dev
}

// adopt adopts a device and releases the user's handle at once: the driver has its own reference.
func (bench *Bench) adopt(t testing.TB) driver.Device {
	t.Helper()
	dev := bench.request(t)
	d, err := bench.Driver.Adopt(t.Context(), dev)
	must(t, err)
	t.Cleanup(func() { must(t, d.Close()) })
	bench.ReleaseDevice(dev)
	return d
}

// make makes a buffer with the binding, for the time of a test.
func (bench *Bench) make(t testing.TB, device any, size uint64, usage Usage, mapped bool) any {
	t.Helper()
	b, err := bench.CreateBuffer(device, size, usage, mapped)
	must(t, err)
	t.Cleanup(func() { bench.ReleaseBuffer(b) })
	return b
}

// usable checks that a program can still make buffers on a device.
func (bench *Bench) usable(t testing.TB, device any) {
	t.Helper()
	b, err := bench.CreateBuffer(device, 16, UsageCopyDst, false)
	must(t, err)
	bench.ReleaseBuffer(b)
}
