// SPDX-License-Identifier: Apache-2.0

//go:build cgo && !js

package core

import (
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/gpu/driver"
)

func TestComputedHalves(t *testing.T) {
	const other = "fn main() { my_unpack2x16float(1u); unpack2x16floats(2u); }"
	if got := computedHalves(other); got != other {
		t.Errorf("other names: %s", got)
	}
	got, ok := strings.CutPrefix(computedHalves("a = unpack2x16float(pack2x16float(x));"), "a = sublet_unpack(sublet_pack(x));\n")
	if !ok || strings.Count(got, "fn sublet_unpack(") != 1 || strings.Count(got, "fn sublet_pack(") != 1 {
		t.Error(got)
	}
	llvmpipe := driver.AdapterInfo{Limits: driver.Limits{MaxLoopsPerInvoking: llvmpipeLoops}}
	if !computesHalves("arm64", llvmpipe) || computesHalves("amd64", llvmpipe) || computesHalves("arm64", driver.AdapterInfo{}) {
		t.Error("not the adapters that need it")
	}
}
