// SPDX-License-Identifier: Apache-2.0

//go:build !js

package e2e

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/sublet-gpu/sublet/e2e/chrome"
	"github.com/sublet-gpu/sublet/gpu/devtest"
)

// seed is the number that all that is random in a test follows from: SUBLET_SEED, or another one each time.
func seed(t *testing.T) uint32 {
	t.Helper()
	s := rand.Uint32N(1 << 30)
	if given, err := strconv.ParseUint(os.Getenv("SUBLET_SEED"), 10, 32); err == nil {
		s = uint32(given)
	}
	t.Logf("SUBLET_SEED=%d", s)
	return s
}

// TestWebTriesEverything calls whatever the npm package has with whatever there is.
func TestWebTriesEverything(t *testing.T) {
	p := openWeb(t, "")
	p.RequireWebGPU()
	did := chrome.Eval[map[string]int](p, "import('/tests/caller.mjs').then(({tryEverything}) => tryEverything("+
		strconv.Itoa(int(seed(t)))+", "+strconv.Itoa(devtest.Times(6))+"))")
	t.Logf("%d calls of %d members, %d of them refused", did["calls"], did["members"], did["refused"])
	if did["calls"] < 200 || did["refused"] < 20 || did["members"] < 50 {
		t.Error("that is not everything")
	}
}

// TestWebMemoryPressure has calls of WebGPU fail for want of memory.
func TestWebMemoryPressure(t *testing.T) {
	p := openWeb(t, "")
	p.RequireWebGPU()
	did := chrome.Eval[map[string]int](p, "import('/tests/pressure.mjs').then(({press}) => press("+
		strconv.Itoa(int(seed(t)))+", "+strconv.Itoa(devtest.Times(100))+"))")
	t.Logf("%d calls of WebGPU failed, %d of ours, %d did not", did["injected"], did["errors"], did["right"])
	if did["injected"] < 100 || did["errors"] == 0 {
		t.Error("there was too much memory")
	}
}

// TestWebLoses has devices destroyed at any point of a run.
func TestWebLoses(t *testing.T) {
	p := openWeb(t, "")
	p.RequireWebGPU()
	did := chrome.Eval[map[string]int](p, "import('/tests/loss.mjs').then(({lose}) => lose("+
		strconv.Itoa(int(seed(t)))+", "+strconv.Itoa(devtest.Times(20))+"))")
	t.Logf("%d devices were lost at any of %d calls of WebGPU, %d calls of ours failed, %d did not", did["lost"], did["calls"], did["errors"], did["right"])
	if did["lost"] < 20 || did["errors"] == 0 || did["calls"] < 30 {
		t.Error("nothing was lost")
	}
}
