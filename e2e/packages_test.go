// SPDX-License-Identifier: Apache-2.0

//go:build !js

package e2e

import (
	"cmp"
	"os"
	"testing"
	"time"

	"github.com/sublet-gpu/sublet/e2e/chrome"
	"github.com/sublet-gpu/sublet/gpu/devtest"
)

// The layers above the driver run their own tests in the page, on WebGPU and, in long tests, on the devices that compute on the CPU:
// those do natively and in Node what they do here. Short runs have some packages on native drivers only. Tests leave out the examples,
// whose output a page cannot capture, and fuzzing, for which a page has no files.

func TestGPU(t *testing.T)    { runOnBrowser(t, "./gpu", "") }
func TestBuffer(t *testing.T) { runOnBrowser(t, "./buffer", "") }
func TestArrays(t *testing.T) { longOnBrowser(t, "./buffer/ndarray", "") }
func TestKernel(t *testing.T) { longOnBrowser(t, "./buffer/cruncher/kernel", "") }
func TestGraph(t *testing.T)  { longOnBrowser(t, "./matrix/graph", "") }
func TestTensor(t *testing.T) { longOnBrowser(t, "./matrix/tensor", "") }
func TestNN(t *testing.T)     { longOnBrowser(t, "./matrix/nn", "") }

// TestMatrix runs the tests that `make test` names, or all of them.
func TestMatrix(t *testing.T) { runOnBrowser(t, "./matrix", os.Getenv("SUBLET_ON_ADAPTERS")) }

// TestSIMD runs the conformance suite of the driver that needs no WebGPU.
func TestSIMD(t *testing.T) { chrome.RunPackage(t, "./gpu/simd", "-test.run=^Test") }

// crunchersInPages leaves out what closes devices in the middle of calls, as there is one thread only, and what takes long.
const crunchersInPages = "^Test(Foreign|ForeignFaults|ForeignGone|Stream|Traffic|Blobs|BlobsNeighbours|BlobsWhole|Repeat|Narrow|" +
	"Structs|Windows|SlidingWindows|Resident|ResidentUpload|Halo|Track|Batch|BatchRandom|AnyShares|Module|Cancelled)$"

// pipelinesInPages are pipelines of task graphs in all modes of the scheduler.
const pipelinesInPages = "^Test(Edges|EdgesSmall|EdgesEnds|Train|TrainEnds)$"

func TestCruncher(t *testing.T)   { runOnBrowser(t, "./buffer/cruncher", crunchersInPages) }
func TestTaskGraphs(t *testing.T) { longOnBrowser(t, "./matrix/graph/pipelines", pipelinesInPages) }

// longOnBrowser runs tests of a package, or all of them, in long tests.
func longOnBrowser(t *testing.T, dir, tests string) {
	t.Helper()
	if devtest.Long() {
		runOnBrowser(t, dir, tests)
	}
}

// runOnBrowser runs the tests of a package whose names fit a pattern, or all of them.
func runOnBrowser(t *testing.T, dir, tests string) {
	t.Helper()
	o := chrome.Options{Args: []string{"-test.run=" + cmp.Or(tests, "^Test")}, Timeout: 30 * time.Minute}
	if !devtest.Long() {
		o.Env = map[string]string{"SUBLET_TEST_DRIVERS": "browser"}
		o.Args = append(o.Args, "-test.skip=^TestEvery(Fault|Allocation)$") // whose devices are the oracle's
	}
	chrome.Build(t, dir).Run(t, o)
}
