// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"errors"
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/native/internal/cli"
)

func TestOneLine(t *testing.T) {
	if got := cli.OneLine("kernel:\n  3:4 unexpected\n\n"); got != "kernel:; 3:4 unexpected" {
		t.Errorf("%q", got)
	}
}

// TestSelect takes what is named, and what the variables name where nothing is.
func TestSelect(t *testing.T) {
	t.Setenv("SUBLET_DRIVER", "cpu")
	t.Setenv("SUBLET_ADAPTER", "no such adapter")
	if s, named := cli.Select(t.Context(), "", ""); !named || count(s) != 0 {
		t.Errorf("%d adapters, a driver is named: %v", count(s), named)
	}
	if _, err := first(cli.Select(t.Context(), "no such driver", "go")).Adapters(); !errors.Is(err, gpu.ErrNoAdapter) {
		t.Error(err)
	}
	t.Setenv("SUBLET_ADAPTER", "")
	list, err := first(cli.Select(t.Context(), "", "")).Adapters()
	if err != nil || len(list) != 1 || list[0].Info.Driver != "cpu" {
		t.Errorf("%v, %v", list, err)
	}
	t.Setenv("SUBLET_DRIVER", "")
	if s, named := cli.Select(t.Context(), "", ""); named || count(s) != count(gpu.Select(t.Context())) {
		t.Errorf("%d adapters, a driver is named: %v", count(s), named)
	}
}

func first(s gpu.Selection, _ bool) gpu.Selection { return s }

// count returns how many adapters a selection has.
func count(s gpu.Selection) int {
	list, _ := s.Adapters()
	return len(list)
}
