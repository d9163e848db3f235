// SPDX-License-Identifier: Apache-2.0

package mapfile_test

import (
	"testing"

	"github.com/sublet-gpu/sublet/gpu/devtest"
)

func TestMain(m *testing.M) { devtest.Main(m) }
