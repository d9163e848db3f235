// SPDX-License-Identifier: Apache-2.0

// Package cli is what the commands do alike.
package cli

import (
	"context"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/sublet-gpu/sublet/gpu"
)

// Execute runs a command. Its context ends with an interrupt; a second one ends the process at once. Arguments that no command
// takes are a [UsageError].
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
	if err != nil && !started {
		err = &UsageError{err, c}
	}
	return err
}

// UsageError is about the way in which a command was called.
type UsageError struct {
	err     error
	command *cobra.Command
}

// Error tells what is wrong, and in a second line how the command wants to be called.
func (e *UsageError) Error() string {
	text := strings.TrimSpace(e.err.Error())
	if e.command.HasAvailableSubCommands() {
		return text + "\nsee " + e.command.CommandPath() + " --help"
	}
	return text + "\nusage: " + e.command.UseLine()
}

// Unwrap returns the argument parser's error.
func (e *UsageError) Unwrap() error { return e.err }

// Select selects the adapters of a driver whose names contain a text. For what is "" the variables SUBLET_DRIVER and
// SUBLET_ADAPTER stand in, as they do in [gpu.Open]. named is whether there is a driver's name then.
func Select(ctx context.Context, driver, adapter string) (s gpu.Selection, named bool) {
	s = gpu.Select(ctx)
	if driver == "" {
		driver = os.Getenv("SUBLET_DRIVER")
	}
	if driver != "" {
		s = s.Driver(driver)
	}
	if adapter == "" {
		adapter = os.Getenv("SUBLET_ADAPTER")
	}
	if adapter != "" {
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
