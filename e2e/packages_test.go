// SPDX-License-Identifier: Apache-2.0

//go:build !js

package e2e

import (
	"testing"
	"time"

	"github.com/sublet-gpu/sublet/e2e/chrome"
	"github.com/sublet-gpu/sublet/gpu/devtest"
)

// The layers above the driver run their own tests in the page, on WebGPU and on the oracle. They leave out the examples, whose
// output a page cannot capture.

func TestGPU(t *testing.T) { chrome.RunPackage(t, "./gpu", "-test.run=^Test") }

// TestSIMD runs the conformance suite of the driver that needs no WebGPU.
func TestSIMD(t *testing.T) { chrome.RunPackage(t, "./gpu/simd", "-test.run=^Test") }

// TestKernel leaves out the fuzzing, for which a page has no files.
func TestKernel(t *testing.T) {
	chrome.Build(t, "./buffer/cruncher/kernel").Run(t, chrome.Options{Args: []string{"-test.run=^Test"}, Timeout: 5 * time.Minute})
}

func TestBuffer(t *testing.T) { chrome.RunPackage(t, "./buffer", "-test.run=^Test") }

func TestArrays(t *testing.T) {
	chrome.Build(t, "./buffer/ndarray").Run(t, chrome.Options{Args: []string{"-test.run=^Test"}, Timeout: 5 * time.Minute})
}

// TestCruncher leaves out what closes devices in the middle of calls, as there is one thread only, and what takes long.
func TestCruncher(t *testing.T) {
	const tests = "Foreign|ForeignFaults|ForeignGone|Stream|Traffic|Blobs|BlobsNeighbours|BlobsWhole|Repeat|Narrow|Structs|Windows|SlidingWindows|" +
		"Resident|ResidentUpload|Halo|Track|Batch|BatchRandom|AnyShares|Module|Cancelled"
	chrome.Build(t, "./buffer/cruncher").Run(t, chrome.Options{Args: []string{"-test.run=^Test(" + tests + ")$"}})
}

// TestTaskGraphs runs the pipelines of task graphs in all modes of the scheduler.
func TestTaskGraphs(t *testing.T) {
	chrome.Build(t, "./matrix/graph/pipelines").Run(t, chrome.Options{Args: []string{"-test.run=^Test(Edges|EdgesSmall|EdgesEnds|Train|TrainEnds)$"}})
}

func TestGraph(t *testing.T) {
	chrome.Build(t, "./matrix/graph").Run(t, chrome.Options{Args: []string{"-test.run=^Test"}, Timeout: 5 * time.Minute})
}

// The tests of matrices leave the oracle to long tests: it computes natively what it does here.

func TestMatrix(t *testing.T) { runOnBrowser(t, "./matrix") }
func TestTensor(t *testing.T) { runOnBrowser(t, "./matrix/tensor") }
func TestNN(t *testing.T)     { runOnBrowser(t, "./matrix/nn") }

func runOnBrowser(t *testing.T, dir string) {
	t.Helper()
	o := chrome.Options{Args: []string{"-test.run=^Test"}, Timeout: 10 * time.Minute}
	if !devtest.Long() {
		o.Env = map[string]string{"SUBLET_TEST_DRIVERS": "browser"}
		o.Args = append(o.Args, "-test.skip=^TestEvery(Fault|Allocation)$") // whose devices are the oracle's
	}
	chrome.Build(t, dir).Run(t, o)
}
