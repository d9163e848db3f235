// SPDX-License-Identifier: Apache-2.0

// Package chrome runs tests in a headless Chromium that has WebGPU.
//
// A package's own tests, compiled for GOOS=js and run in a page:
//
//	func TestMatrix(t *testing.T) { chrome.RunPackage(t, "./matrix") }
//
// Every test of the package becomes a subtest, with its log.
//
// A page of one's own:
//
//	p := chrome.Start(t).Open(t, chrome.Serve(t, http.FileServer(http.Dir("dist")))+"/demo.html")
//	sum := chrome.Eval[float64](p, `demo.run()`) // promises are awaited
//	p.Screenshot("demo")                         // e2e/artifacts/demo.png
//
// Tests of a package whose TestMain calls [Main] share a browser, in which each has a context of its own: starting one takes more than most
// tests do. A test that may do harm to a browser starts its own with [StartOwn].
//
// Nothing here skips: a missing browser, or one without WebGPU, fails the test and says what to do.
//
// The browser is the program named by $CHROME, or the first Chromium or Chrome found in the usual places. It runs
// WebGPU on SwiftShader, so that no GPU is needed and the results are the same everywhere.
package chrome
