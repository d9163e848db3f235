// SPDX-License-Identifier: Apache-2.0

// Command bench keeps figures of benchmarks and writes BENCHMARKS.md of them, with a chart for each set. It runs in the repository's
// root:
//
//	bench record native bench.txt   # the output of go test -bench; also: record web
//	bench peers FILE.json...        # results of a benchmark that runs native/peer or web/bench-peer.mjs beside other libraries
//	bench report
package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sublet-gpu/sublet/gpu"
)

// results is where the figures and charts are.
const results = "native/bench/results"

// set is the figures of one run. Columns are the libraries, ours first.
type set struct {
	Title   string   `json:"title"`
	When    string   `json:"when"`
	Machine string   `json:"machine"`
	Command string   `json:"command"`
	Notes   []string `json:"notes,omitempty"`
	Columns []string `json:"columns"`
	Rows    []row    `json:"rows"`
}

// row is an item: milliseconds by column.
type row struct {
	Name string             `json:"name"`
	Ms   map[string]float64 `json:"ms"`
}

const ours = "Sublet"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("usage: bench record native|web FILE | bench peers FILE.json... | bench report")

func run(args []string) error {
	switch {
	case len(args) == 3 && args[0] == "record" && (args[1] == "native" || args[1] == "web"):
		return record(args[1], args[2])
	case len(args) > 1 && args[0] == "peers":
		for _, path := range args[1:] {
			if err := peers(path); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		}
		return nil
	case len(args) == 1 && args[0] == "report":
		return report(results, "BENCHMARKS.md", "README.md")
	}
	return errUsage
}

// record keeps the output of go test -bench.
func record(name, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	s := set{Title: "Natively", Command: "make bench", When: today()}
	if name == "web" {
		s = set{Title: "In Chromium, beside TensorFlow.js and plain JavaScript", Command: "make bench-web", When: today()}
	} else if s.Notes, err = adapter(); err != nil {
		return err
	}
	if err := s.parse(f); err != nil {
		return err
	}
	return s.save(name)
}

func today() string { return time.Now().UTC().Format(time.DateOnly) }

// adapter says what computes here.
func adapter() ([]string, error) {
	dev, err := gpu.Open(context.Background())
	if err != nil {
		return nil, err
	}
	info := dev.Info()
	return []string{"Sublet on " + info.Name + " (driver " + info.Driver + "); gonum computes in float64."}, dev.Close()
}

// benchmarkLine is a result: its name without the number of processors, and nanoseconds.
var benchmarkLine = regexp.MustCompile(`^Benchmark(\S+?)(?:-\d+)?\s+\d+\s+([\d.]+) ns/op`)

// parse reads lines of results, of which those of one name become their median, and of what they were made on.
func (s *set) parse(r io.Reader) error {
	lines := bufio.NewScanner(r)
	times := map[[2]string][]float64{}
	var order []string
	for lines.Scan() {
		if key, value, ok := strings.Cut(lines.Text(), ": "); ok {
			switch key {
			case "cpu":
				s.Machine = fmt.Sprintf("%s, %d cores, %s/%s, %s", strings.TrimSpace(value), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version())
			case "note":
				s.Notes = append(s.Notes, value)
			}
		}
		m := benchmarkLine.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		ns, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			return err
		}
		name, column := itemOf(m[1])
		times[[2]string{name, column}] = append(times[[2]string{name, column}], ns/1e6)
		if !slices.Contains(order, name) {
			order = append(order, name)
		}
		if !slices.Contains(s.Columns, column) {
			s.Columns = append(s.Columns, column)
		}
	}
	group := func(name string) int { // sub-benchmarks come in another order each time
		of, _, _ := strings.Cut(name, ", ")
		return slices.IndexFunc(order, func(n string) bool { return n == of || strings.HasPrefix(n, of+", ") })
	}
	sorted := slices.Clone(order)
	slices.SortFunc(sorted, func(a, b string) int { return cmp.Or(group(a)-group(b), strings.Compare(a, b)) })
	for _, name := range sorted {
		one := row{name, map[string]float64{}}
		for _, column := range s.Columns {
			if all := times[[2]string{name, column}]; len(all) > 0 {
				one.Ms[column] = median(all)
			}
		}
		s.Rows = append(s.Rows, one)
	}
	if i := slices.Index(s.Columns, ours); i > 0 {
		s.Columns[0], s.Columns[i] = ours, s.Columns[0]
	}
	return lines.Err()
}

// itemOf splits a benchmark's name into what is computed and who does it.
func itemOf(name string) (item, column string) {
	parts := strings.Split(strings.ReplaceAll(name, "_", " "), "/")
	switch last := len(parts) - 1; {
	case parts[0] == "Race" && last == 2:
		return parts[1], parts[2]
	case strings.HasPrefix(parts[0], "Gonum"):
		parts[0], column = strings.TrimPrefix(parts[0], "Gonum"), "gonum"
	default:
		column = ours
	}
	return strings.Join(parts, ", "), column
}

func median(all []float64) float64 {
	slices.Sort(all)
	n := len(all)
	return (all[(n-1)/2] + all[n/2]) / 2
}

// save writes a set, with as many digits as the figures are good for.
func (s *set) save(name string) error {
	if len(s.Rows) == 0 {
		return errors.New("there are no figures in it")
	}
	for _, r := range s.Rows {
		for column, ms := range r.Ms {
			r.Ms[column] = rounded(ms)
		}
	}
	b, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(results, name+".json"), append(b, '\n'), 0o644)
}

// rounded leaves four digits.
func rounded(v float64) float64 {
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64) // what was formatted
	return v
}
