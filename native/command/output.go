// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/native/internal/cli"
)

// standard stands for standard input or output in place of a file's name.
const standard = "-"

// outputFlag adds -o. No name, such as that of a variable that is not set, is a mistake rather than no flag.
func (a *app) outputFlag(c *cobra.Command, path *string, usage string) {
	c.Flags().FuncP("output", "o", usage, func(s string) error {
		if s == "" {
			return errors.New("want the name of a file")
		}
		*path = a.claim(s)
		return nil
	})
}

// claim keeps standard output free for a result that path sends there: what else is printed goes to standard error.
func (a *app) claim(path string) string {
	if path == standard && a.data == nil {
		a.data, a.out = a.out, a.err
	}
	return path
}

// output is a file that gets its name from commit, whole or not at all. A device or a pipe is written in place.
type output struct {
	*os.File
	path string
}

// create opens a file to write before any work is done, so that an unwritable path is an early error. The file gets its name when
// the command's result is reported. Standard output was claimed before.
func (a *app) create(path string) (io.Writer, error) {
	if path == standard {
		if isTerminal(a.data) {
			return nil, cli.Usagef("standard output is a terminal, and the result is no text")
		}
		return a.data, nil
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target // write through a link rather than replace it
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0) // a rename could replace what the user may not write
	a.files.Lock()
	defer a.files.Unlock()
	if err == nil {
		if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
			a.outputs = append(a.outputs, output{f, f.Name()})
			return f, err
		}
		_ = f.Close()
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	f, err = os.OpenFile(temporary(filepath.Dir(path)), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		pe.Path = path // the name that the user knows
		return nil, pe
	}
	a.outputs = append(a.outputs, output{f, path})
	return f, err
}

// tempPrefix begins the names of files that get another name when they are complete.
const tempPrefix = ".sublet-"

// temporary returns such a name in a folder, with the machine's and the number of the process. It removes the files of those that ended
// in the middle.
func temporary(dir string) string {
	host, _ := os.Hostname() // none does as well
	prefix := tempPrefix + filepath.Base(host) + "-"
	list, _ := os.ReadDir(dir) // what cannot be listed keeps what was left
	for _, e := range list {
		if name, ours := strings.CutPrefix(e.Name(), prefix); ours && e.Type().IsRegular() && ended(name) {
			_ = os.Remove(filepath.Join(dir, e.Name())) // it may be somebody else's
		}
	}
	return filepath.Join(dir, prefix+strconv.Itoa(os.Getpid())+"-"+strconv.FormatUint(rand.Uint64(), 36))
}

// ended reports whether there is no process of the number that a name begins with.
func ended(name string) bool {
	number, _, _ := strings.Cut(name, "-")
	id, err := strconv.Atoi(number)
	return err == nil && id > 0 && processEnded(id)
}

// commit closes the file and gives it its name.
func (o output) commit() error {
	if err := o.Close(); err != nil || o.Name() == o.path {
		return err
	}
	if st, err := os.Stat(o.path); err == nil {
		_ = os.Chmod(o.Name(), st.Mode().Perm()) // as the file it replaces; its own mode does as well
	}
	return os.Rename(o.Name(), o.path)
}

// discard removes a file that was not committed. After commit it does nothing.
func (o output) discard() {
	_ = o.Close()
	if o.Name() != o.path {
		_ = os.Remove(o.Name())
	}
}

// The errors of the command itself.
var (
	errType     = fault.New("ErrType", "not an element type of arrays of kernels")
	errElem     = fault.New("ErrType", "not an element type of matrices")
	errOverflow = fault.New("ErrOverflow", "value out of range")
)

func inFile(path string, err error) error { return fmt.Errorf("%s: %w", path, err) }

// fail reports err: one line on standard error and, where JSON was asked for, an object on standard output.
func (a *app) fail(err error) {
	message := cli.OneLine(err.Error())
	fmt.Fprintln(a.err, "sublet: "+message)
	if !a.json {
		return
	}
	code := fault.Code(err)
	for known, name := range map[error]string{
		fs.ErrNotExist: "ErrNotExist", fs.ErrPermission: "ErrPermission", context.Canceled: "Canceled",
		context.DeadlineExceeded: "DeadlineExceeded",
	} {
		if errors.Is(err, known) {
			code = name
		}
	}
	result := map[string]any{"error": map[string]string{"code": code, "message": message}}
	_ = writeJSON(a.out, result) // the line above is all that is left to say
}

// report ends a command: its outputs get their names, and its result is printed, as JSON where that was asked for, or by text, which
// reads inputs only if there are no outputs: Windows replaces no file that is open, as one is that is input and output.
func (a *app) report(result any, text func(io.Writer) error) error {
	a.progress.stop()
	a.files.Lock()
	defer a.files.Unlock()
	if len(a.outputs) > 0 {
		a.closeInputs()
	}
	for _, out := range a.outputs {
		if err := out.commit(); err != nil {
			return err
		}
	}
	if a.json {
		return writeJSON(a.out, result)
	}
	return text(a.out)
}

// writeJSON writes one line.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// printTable prints rows of cells that tabs separate, in columns.
func printTable(out io.Writer, rows []string) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(w, row)
	}
	return w.Flush()
}
