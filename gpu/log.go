// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"cmp"
	"strings"

	"github.com/sublet-gpu/sublet/internal/fault"
)

// Logger is what a device logs to: a *slog.Logger is one. Arguments are names and values by turns; values are texts and uint64.
// Calls are made from any goroutine while the device is locked, so a Logger must not use the device.
//
// It is an interface so that only programs that use package log/slog link it.
type Logger interface {
	Debug(msg string, args ...any)
	Warn(msg string, args ...any)
}

// Lean is true in the npm package's program, which leaves out the work that the package's JavaScript does: logs, names of kernels in
// errors of batches, type checks.
const Lean = lean

// WithLogger sets the log's destination. Without [WithDebug], calls are logged.
func WithLogger(l Logger) Option {
	return func(c *config) error {
		if l == nil {
			return fail("Open", ErrInvalid, "nil logger")
		}
		c.logger = l
		return nil
	}
}

// WithDebug logs what the device does. Each word includes those before it:
//
//	calls    devices opened, closed, lost and reopened, buffers made and closed, transfers, batches sent, refused or
//	         failed, and memory that is closed with results that were never synced
//	kernels  each kernel compiled or found compiled, and each launch
//	wgsl     the source of each kernel compiled
//
// Records go to the [Logger]; without one to standard error, in a page to console.debug. Their level is Debug, but Warn for lost devices,
// refused batches and results dropped without Sync. The variable SUBLET_DEBUG, globalThis.SUBLET_DEBUG in a page, has the same effect if
// the option is absent. "" logs nothing, at no cost; another word is [ErrInvalid].
func WithDebug(word string) Option { return func(c *config) error { c.debug = word; return nil } }

// rung is a level of detail of the log.
type rung uint8

const (
	logCalls rung = 1 + iota
	logKernels
	logWGSL
)

var rungs = []string{"", "calls", "kernels", "wgsl"}

// settleLog sets the level from the options or the variable.
func (c *config) settleLog() error {
	if Lean {
		return nil
	}
	word := cmp.Or(c.debug, debugVariable())
	for i, r := range rungs {
		if r == word {
			c.rung = rung(i)
			if i == 0 && c.logger != nil {
				c.rung = logCalls
			}
			return nil
		}
	}
	return fail("Open", ErrInvalid, "debug ", fault.Short(word), " is none of calls, kernels, wgsl")
}

// Logger returns where the device logs to, for layers above it, and nil where it does not log.
func (d *Device) Logger() Logger {
	if d == nil || !d.logs(logCalls) {
		return nil
	}
	return d.conf.logger
}

// logs reports whether the device logs this level.
func (d *Device) logs(at rung) bool { return !Lean && d.conf.rung >= at }

// note logs a message with two numbers.
func (d *Device) note(msg, name string, value uint64, second string, other uint64) {
	if !Lean && d.conf.rung >= logCalls {
		d.conf.logger.Debug("sublet: "+msg, name, value, second, other)
	}
}

// tell logs a message with two texts.
func (d *Device) tell(at rung, msg, name, value, second, other string) {
	if !Lean && d.conf.rung >= at {
		d.conf.logger.Debug("sublet: "+msg, name, value, second, other)
	}
}

// warn logs a warning.
func (d *Device) warn(msg, why string) {
	if !Lean && d.conf.rung >= logCalls {
		d.conf.logger.Warn("sublet: "+msg, "why", why)
	}
}

// launches are the last kernels of a batch, which errors of the device name. An older one is overwritten at each launch.
type launches struct {
	launched uint64
	last     [4]*kernelEntry
}

func (l *launches) add(e *kernelEntry) {
	if Lean {
		return
	}
	l.last[l.launched%4] = e
	l.launched++
}

// text reads, for example, "; last kernels: sum 64, relu", and is "" where there are none.
func (l *launches) text() string {
	var names []string
	for i := max(l.launched, 4) - 4; i < l.launched; i++ {
		names = append(names, fault.Short(l.last[i%4].label))
	}
	if names == nil {
		return ""
	}
	return "; last kernels: " + strings.Join(names, ", ")
}

// sending logs the submission of a batch, and keeps the names of its last kernels for the error of a lost device.
func (d *Device) sending(b *batch) {
	if Lean || b.commands == 0 {
		return
	}
	if b.launched > 0 {
		d.sent = b.launches
	}
	d.note("batch sent", "commands", uint64(b.commands), "kernels", b.launched)
}

// blame adds the last kernels of a batch to its error.
func (d *Device) blame(last *launches, err error) error {
	if Lean {
		return err
	}
	err = fail("batch", err, d.ran(last))
	d.warn("batch failed", err.Error())
	return err
}

// ran adds the names of kernels to an error, unless the driver has done so, as that of browsers does.
func (d *Device) ran(last *launches) string {
	if Lean || d.info.Driver == "browser" {
		return ""
	}
	return last.text()
}

// lost is the error of a lost device, with the last kernels that it got.
func (d *Device) lost(op, reason string) error {
	last := &d.batch.launches
	if last.launched == 0 {
		last = &d.sent
	}
	return fail(op, ErrDeviceLost, reason, d.ran(last))
}
