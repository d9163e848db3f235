// SPDX-License-Identifier: Apache-2.0

//go:build !js

package gpu_test

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
)

// TestBackends lists each processor once, unless a backend is asked for.
func TestBackends(t *testing.T) {
	if devtest.Native() == "" {
		t.Fatal("no driver of wgpu is linked")
	}
	seen := map[string]bool{}
	for a, err := range gpu.Adapters(t.Context()) {
		check(t, err)
		if id := a.Info.Driver + a.Info.Name; seen[id] {
			t.Errorf("%s is there twice", a.Info.Name)
		} else {
			seen[id] = true
		}
	}
	usual, err := gpu.Open(t.Context(), gpu.WithDriver(devtest.Native()))
	check(t, err)
	defer func() { check(t, usual.Close()) }()
	for _, backend := range []string{usual.Info().Backend, "opengl", "go"} {
		d, err := gpu.Open(t.Context(), gpu.WithBackend(backend))
		check(t, err)
		if got := d.Info().Backend; got != backend {
			t.Errorf("%s in place of %s", got, backend)
		}
		check(t, d.Close())
	}
	check(t, openAndClose(t, gpu.WithBackend(strings.ToUpper(usual.Info().Backend)), gpu.WithDriver(devtest.Native())))
	noBackend(t, "glide", openAndClose(t, gpu.WithBackend("glide")))
	t.Setenv("SUBLET_BACKEND", "voodoo")
	noBackend(t, "voodoo", openAndClose(t))
	_, err = gpu.Select(t.Context()).Adapters()
	noBackend(t, "voodoo", err)
	t.Setenv("SUBLET_BACKEND", "opengl")
	for a, err := range gpu.Adapters(t.Context()) {
		check(t, err)
		if a.Info.Backend != "opengl" {
			t.Errorf("%s of %s", a.Info.Name, a.Info.Backend)
		}
	}
	d, err := gpu.Open(t.Context(), gpu.WithBackend("go"))
	check(t, err)
	check(t, d.Close())
}

func openAndClose(t *testing.T, options ...gpu.Option) error {
	t.Helper()
	d, err := gpu.Open(t.Context(), options...)
	return cmp.Or(err, d.Close())
}

// noBackend wants an error that names the backend that is not there, and what there is.
func noBackend(t *testing.T, name string, err error) {
	t.Helper()
	text := fmt.Sprint(err)
	if !errors.Is(err, gpu.ErrNoAdapter) || !strings.Contains(text, `backend "`+name+`"`) || !strings.Contains(text, " cpu go Go on ") {
		t.Errorf("a backend that is not there: %v", err)
	}
}
