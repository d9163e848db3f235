// SPDX-License-Identifier: Apache-2.0

// Package tune times the variants of Sublet's kernels on an adapter and has package matrix use the fastest.
//
// A program that imports it uses the results of earlier timings by the command sublet tune or by [Run]:
//
//	import _ "github.com/sublet-gpu/sublet/matrix/tune"
//
// The timings are in a file for each adapter in the user's cache folder; see [Path]. It is read in the background when a device is first
// used; until then the default variants are used, so that nothing waits. [Use] reads it at once. A file that is damaged, or of another
// adapter or other kernels, is ignored with a message in the device's log. SUBLET_TUNE=off ignores all files.
//
// A variant replaces the default if it is clearly faster: by a twentieth in the lower quartile of its timings. Results stay within the
// tolerances of package matrix; their last bits may differ, since sums are computed in another order.
//
// Pages keep timings in the database of the browser: see gpu.tuning of the npm package.
package tune

import (
	"context"
	"io"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/matrix/internal/exec"
	"github.com/sublet-gpu/sublet/matrix/tune/timing"
)

type (
	// Results are the timings of an adapter, as they are in its file.
	Results = timing.Results
	// Adapter has the properties of an adapter on which timings depend.
	Adapter = timing.Adapter
	// Choice has the timings of a family's variants for operands of one type, one layout and sizes between the same powers of two.
	Choice = timing.Choice
	// Timing has the measurements of a variant.
	Timing = timing.Timing
	// Work is something to time: a family of kernels and a size.
	Work = timing.Work
	// Options are those of [Run].
	Options = timing.Options
)

// ParseWork reads, for example, "product:300x500x700", the sizes of both factors' rows and of the columns, "sparse:5000x20x64", rows,
// entries of a row and columns, and "softmax:777x333". Letters behind dense products tell which factors are stored by columns, n or t
// for each: "product:64x64x64:nt".
func ParseWork(text string) (Work, error) { return timing.ParseWork(text) }

// Read reads results that [Results.Write] wrote, perhaps on another machine with the same adapter. What is no such file is
// [gpu.ErrInvalid]; timings of another adapter or driver, or of other kernels than this program's, are [gpu.ErrUnsupported].
func Read(from io.Reader, i gpu.AdapterInfo) (*Results, error) { return timing.Read(from, i) }

// Run times the variants of kernels on the adapter of a device. It does so in rounds, so that other load on the machine affects all of
// them alike, and on further devices that it opens on the adapter, so that work queued on dev does not wait. The results are merged with
// those in the adapter's file; [Save] saves them and [Results.Apply] uses them. If the adapter cannot be found, or no kernel has several
// variants on it, the error is [gpu.ErrUnsupported].
func Run(ctx context.Context, dev *gpu.Device, o Options) (*Results, error) {
	r, err := Load(dev.Info())
	if err != nil {
		r = nil
	}
	return timing.Run(ctx, dev, r, o)
}

func init() {
	exec.Began = func(dev *gpu.Device) { _ = Use(dev) } // which logs it
}

// Use reads the file of a device's adapter and makes expressions on the device use the fastest variants. Without this call that happens in
// the background when the device is first used. If there is no file it does nothing. A file that does not fit is ignored, and the error
// says why: [gpu.ErrInvalid] if it is no file of timings, [gpu.ErrUnsupported] if it is of another adapter or of other kernels. A device
// that is closed or nil is [gpu.ErrClosed].
func Use(dev *gpu.Device) error {
	if err := dev.Usable(); err != nil {
		return fail("Use", err)
	}
	return timing.Use(dev, func() (*Results, error) { return Load(dev.Info()) })
}

func fail(op string, err error, detail ...any) error {
	return fault.Fail("tune: "+op, err, fault.Text(detail...))
}
