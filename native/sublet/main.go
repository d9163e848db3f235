// SPDX-License-Identifier: Apache-2.0

// Command sublet does matrix mathematics on the GPU over NumPy's .npy files.
//
//	sublet info
//	sublet mul a.npy b.npy -o c.npy
//	sublet eval 'tanh(A*B + C)' -i A=a.npy -i B=b.npy -i C=c.npy -o out.npy
//	sublet params list model.params
//	sublet params convert model.params model.safetensors
//	sublet run add3.wgsl -g 1000 -l 100 -a arr=arr.npy:partial-read,write -o arr=out.npy
//
// With --json every command prints one JSON value on standard output, and an object when it fails. The exit status is 0 or 1.
package main

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

	"github.com/sublet-gpu/sublet/native/internal/cli"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// run is main without the process around it.
func run(args []string, stdin *os.File, stdout, stderr io.Writer) int {
	quietDrivers()
	a := &app{in: stdin, out: stdout, err: stderr, progress: newProgress(stderr)}
	defer a.close()
	args = expressionLast(args)
	err := cli.Execute(a.root(), args, stdout, stderr)
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
	progress        *progress
	files           sync.Mutex // guards outputs
	outputs         []output
	closers         []func() // for the end, the last one first
}

// close discards what was not committed, and closes the rest. A command that still runs cannot commit any more.
func (a *app) close() {
	a.files.Lock()
	for _, out := range a.outputs {
		out.discard()
	}
	for _, end := range slices.Backward(a.closers) {
		end()
	}
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
	root.AddCommand(a.infoCommand(), a.mulCommand(), a.evalCommand(), a.paramsCommand(), a.runCommand())
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

// version says what was built and with what.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown)"
	}
	return cmp.Or(info.Main.Version, "(devel)") + " " + info.GoVersion
}
