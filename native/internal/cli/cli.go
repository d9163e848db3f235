// SPDX-License-Identifier: Apache-2.0

// Package cli is what the commands do alike.
package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

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

// Execute runs a command. Its context ends with an interrupt; a second one ends the process at once. Arguments that no command
// takes are an [ErrUsage], whose second line says how the command wants to be called.
func Execute(root *cobra.Command, args []string, stdout, stderr io.Writer) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	started := false
	root.PersistentPreRun = func(*cobra.Command, []string) { started = true }
	c, err := root.ExecuteContextC(ctx)
	switch {
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
