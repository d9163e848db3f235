// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	"github.com/sublet-gpu/sublet/e2e/chrome"
)

// The layers above the driver run their own tests in the page, on WebGPU and on the oracle.

func TestGPU(t *testing.T) { chrome.RunPackage(t, "./gpu") }

func TestBuffer(t *testing.T) { chrome.RunPackage(t, "./buffer") }

func TestMatrix(t *testing.T) { chrome.RunPackage(t, "./matrix") }
