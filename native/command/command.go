// SPDX-License-Identifier: Apache-2.0

// Package command is the command sublet but for its main function, so that programs with drivers of their own have it, too:
//
//	package main
//
//	import (
//		_ "example.org/mydriver" // calls gpu.Register when it is initialised
//
//		"github.com/sublet-gpu/sublet/native/command"
//	)
//
//	func main() { command.Main() }
//
// What the command does is in the documentation of native/sublet.
package command

import (
	"cmp"
	"errors"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/native/internal/cli"
)

// Main runs the command with the arguments and files of the process, and ends the process with the status 0 or 1.
func Main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// run is [Main] without the process around it.
func run(args []string, stdin *os.File, stdout, stderr io.Writer) int {
	quietDrivers()
	a := &app{in: stdin, out: stdout, err: stderr, progress: newProgress(stderr)}
	defer a.close()
	args = expressionLast(args)
	help := &printer{w: stdout}
	err := cmp.Or(cli.Execute(a.root(), args, help, stderr), help.err)
	a.progress.stop()
	if err == nil {
		return 0
	}
	if errors.Is(err, cli.ErrUsage) { // the parser may not have come to --json
		if i := slices.Index(args, "--"); i >= 0 {
			args = args[:i]
		}
		a.json = a.json || slices.Contains(args, "--json") || slices.Contains(args, "--json=true")
	}
	a.fail(err)
	return 1
}

// printer keeps the first error of a writer, of which who prints help does not tell.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) Write(b []byte) (n int, err error) {
	n, err = p.w.Write(b)
	p.err = cmp.Or(p.err, err)
	return n, err
}

// quietDrivers keeps libwayland, which Mesa asks for a display, from complaining on standard error where there is no
// session. Any absolute path will do; a folder that anybody may write to would not.
func quietDrivers() {
	const name = "XDG_RUNTIME_DIR"
	if os.Getenv(name) == "" {
		_ = os.Setenv(name, "/") // the name is valid
	}
}

// app is one invocation of the command.
type app struct {
	in              *os.File
	out, err        io.Writer
	data            io.Writer // standard output where a result goes there, and out is standard error; else nil
	json            bool
	driver, adapter string
	options         []gpu.Option // of devices, which tests add
	progress        *progress
	files           sync.Mutex // guards outputs
	outputs         []output
	closers         []func() // of inputs, the last one first
}

// close discards what was not committed, and closes the rest. A command that still runs cannot commit any more.
func (a *app) close() {
	a.files.Lock()
	for _, out := range a.outputs {
		out.discard()
	}
	a.closeInputs()
}

// closeInputs closes the files that are still read.
func (a *app) closeInputs() {
	for _, end := range slices.Backward(a.closers) {
		end()
	}
	a.closers = nil
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "sublet",
		Short: "Matrix mathematics on the GPU over .npy files",
		Long: `Matrix mathematics on the GPU over .npy files.

The exit status is 0, or 1 after a failure. With --json a failure is an object, too.`,
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetVersionTemplate("sublet {{.Version}}\n")
	flags := root.PersistentFlags()
	flags.BoolVar(&a.json, "json", false, "print one line of JSON")
	flags.StringVar(&a.driver, "driver", "", "use this driver only (see sublet info; also $SUBLET_DRIVER)")
	flags.StringVar(&a.adapter, "adapter", "", "use the adapter whose name contains this text (also $SUBLET_ADAPTER)")
	root.AddCommand(a.infoCommand(), a.mulCommand(), a.evalCommand(), a.paramsCommand(), a.runCommand(), a.tuneCommand())
	root.SetOut(a.out) // the next call looks at it
	refuseWords(root)
	return root
}

// refuseWords makes what the parser's own commands do not know an error: they would print help and succeed.
func refuseWords(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "completion":
			c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
		case "help":
			c.Args = func(_ *cobra.Command, args []string) error {
				if _, rest, err := root.Find(args); err != nil || len(rest) > 0 {
					return cli.Usagef("no such command: %s", strings.Join(args, " "))
				}
				return nil
			}
		}
	}
}

const modulePath = "github.com/sublet-gpu/sublet"

// version says what was built and with what.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown)"
	}
	module := &info.Main
	if i := slices.IndexFunc(info.Deps, func(m *debug.Module) bool { return m.Path == modulePath }); i >= 0 { // somebody else's program
		module = info.Deps[i]
	}
	return cmp.Or(module.Version, "(devel)") + " " + info.GoVersion
}
