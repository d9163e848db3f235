// SPDX-License-Identifier: Apache-2.0

// Package cli is what the commands do alike.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// ErrUsage is the error for a command that is called in a wrong way.
var ErrUsage = fault.New("ErrUsage", "wrong usage")

type usageError struct{ error }

func (e usageError) Unwrap() []error { return []error{e.error, ErrUsage} }

// Usagef formats an error that is an [ErrUsage], too.
func Usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// grace is how long a command may go on after its context has ended.
const grace = 5 * time.Second

// interrupts are the signals that end a command. What the process was started to ignore, as by nohup, stays ignored.
func interrupts() []os.Signal {
	list := []os.Signal{syscall.SIGTERM}
	for _, s := range []os.Signal{os.Interrupt, hangup} {
		if !signal.Ignored(s) {
			list = append(list, s)
		}
	}
	return list
}

// Execute runs a command. Its context ends with an interrupt or when the terminal goes, of which a second one ends the process at once, and after the time that
// the flag --timeout says. A command that goes on, in a read or a call of the platform's that cannot be stopped, is left behind after
// 5 seconds: the caller is to exit. Arguments that no command takes are an [ErrUsage], whose second line says how the command wants to be
// called.
func Execute(root *cobra.Command, args []string, stdout, stderr io.Writer) error {
	ctx, stop := signal.NotifyContext(context.Background(), interrupts()...)
	defer stop()
	context.AfterFunc(ctx, stop)
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	var limit time.Duration
	root.PersistentFlags().Func("timeout", "stop after a `duration`, such as 30s (default: never)", func(s string) (err error) {
		if limit, err = time.ParseDuration(s); err == nil && limit < 0 {
			err = errors.New("want 0, which is never, or more")
		}
		return err
	})
	started, done, late := false, make(chan error, 1), make(chan error, 1)
	root.PersistentPreRun = func(c *cobra.Command, _ []string) {
		started = true
		ctx, cancel := context.WithTimeout(c.Context(), cmp.Or(limit, math.MaxInt64))
		context.AfterFunc(c.Context(), cancel)
		context.AfterFunc(ctx, func() { time.AfterFunc(grace, func() { late <- ctx.Err() }) })
		c.SetContext(ctx)
	}
	var c *cobra.Command
	go func() {
		var err error
		c, err = root.ExecuteContextC(ctx)
		done <- err
	}()
	var err error
	select {
	case err = <-done:
	case err = <-late:
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("--timeout %v: %w", limit, err)
	case err == nil || started:
		return err
	case c.HasAvailableSubCommands():
		return Usagef("%w\nsee %s --help", err, c.CommandPath())
	}
	return Usagef("%w\nusage: %s", err, c.UseLine())
}

// Select selects the adapters of a driver whose names contain a text. For what is "" the variables SUBLET_DRIVER and
// SUBLET_ADAPTER stand in, as they do in [gpu.Open]. named is whether there is a driver's name then.
func Select(ctx context.Context, driver, adapter string) (s gpu.Selection, named bool) {
	s = gpu.Select(ctx)
	if driver = cmp.Or(driver, os.Getenv("SUBLET_DRIVER")); driver != "" {
		s = s.Driver(driver)
	}
	if adapter = cmp.Or(adapter, os.Getenv("SUBLET_ADAPTER")); adapter != "" {
		s = s.Name(adapter)
	}
	return s, driver != ""
}

// OneLine joins the lines of a message, such as those of a WGSL compiler.
func OneLine(s string) string {
	var lines []string
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "; ")
}
