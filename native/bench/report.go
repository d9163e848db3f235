// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"image/color"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// sets are those that there are, in the order of the document.
var sets = []string{"native", "web", "peers-native", "peers-web"}

const preface = `# Benchmarks

<!-- Written by make bench-report of native/bench/results: do not edit. -->

Milliseconds, medians; less is better. Every result of a race between libraries is checked against float64. The machines have no GPU:
what computes is the CPU, by Sublet's own driver ` + "`simd`" + ` or by a software adapter. **No real GPU has run it yet.** The last line of a table is
the geometric mean of a column's times divided by Sublet's, over the items that both have; the charts show these ratios.

` + "`make bench` and `make bench-web` measure again and write this file; `make bench-report` writes it of the figures that there are." + `
`

// report writes the document of the sets in a folder, a chart of each beside them, and what matters most of them into the README.
func report(folder, document, readme string) error {
	var b, short strings.Builder
	b.WriteString(preface)
	for _, name := range sets {
		var s set
		data, err := os.ReadFile(filepath.Join(folder, name+".json"))
		if os.IsNotExist(err) {
			continue
		}
		if err == nil {
			err = json.Unmarshal(data, &s)
		}
		if err != nil {
			return err
		}
		s.write(&b, path.Join(results, name+".svg"))
		s.summarise(&short)
		if len(s.compared()) > 0 {
			if err := s.chart(filepath.Join(folder, name+".svg")); err != nil {
				return err
			}
		}
	}
	if err := os.WriteFile(document, []byte(b.String()), fs.FileMode(0o644)); err != nil {
		return err
	}
	text, err := os.ReadFile(readme)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, also := strings.Cut(rest, end)
	if !ok || !also {
		return fmt.Errorf("%s: there is no place for figures between %q and %q", readme, begin, end)
	}
	return os.WriteFile(readme, []byte(before+begin+"\n"+short.String()+end+after), fs.FileMode(0o644))
}

// begin and end are around the figures in the README.
const (
	begin = "<!-- make bench-report writes what follows -->"
	end   = "<!-- and what follows is not written by it -->"
)

// summarise writes a line on a set with several libraries.
func (s *set) summarise(b *strings.Builder) {
	if len(s.compared()) == 0 {
		return
	}
	var list []string
	for _, column := range s.Columns {
		if mean, n := s.mean(column); n > 0 && column != ours {
			list = append(list, fmt.Sprintf("%s %.2f", column, mean))
		}
	}
	fmt.Fprintf(b, "- %s, %d items (%s, %s): %s\n", s.Title, len(s.compared()), s.When, s.Machine, strings.Join(list, ", "))
}

// mean is the geometric mean of a column's times divided by ours, of so many.
func (s *set) mean(column string) (mean, n float64) {
	sum := 0.
	for _, r := range s.Rows {
		if q := r.ratio(column); q > 0 {
			sum, n = sum+math.Log(q), n+1
		}
	}
	return math.Exp(sum / max(n, 1)), n
}

// write writes a set as a section.
func (s *set) write(b *strings.Builder, chart string) {
	fmt.Fprintf(b, "\n## %s\n\n%s, %s: `%s`\n\n", s.Title, s.When, s.Machine, s.Command)
	if len(s.Notes) > 0 {
		fmt.Fprintf(b, "%s\n\n", strings.Join(s.Notes, " "))
	}
	if len(s.compared()) > 0 {
		fmt.Fprintf(b, "![Times relative to Sublet's](%s)\n\n", chart)
	}
	fmt.Fprintf(b, "| | %s |\n|---%s|\n", strings.Join(s.Columns, " | "), strings.Repeat("|--:", len(s.Columns)))
	for _, r := range s.Rows {
		fmt.Fprintf(b, "| %s |", r.Name)
		for _, column := range s.Columns {
			fmt.Fprintf(b, " %s |", shown(r.Ms[column]))
		}
		b.WriteString("\n")
	}
	if len(s.Columns) < 2 {
		return
	}
	b.WriteString("| **relative to Sublet's** |")
	for _, column := range s.Columns {
		if mean, n := s.mean(column); n > 0 {
			fmt.Fprintf(b, " **%.2f**", mean)
		}
		b.WriteString(" |")
	}
	b.WriteString("\n")
}

// ratio is a column's time divided by ours, 0 if one of them is not there.
func (r row) ratio(column string) float64 {
	if r.Ms[ours] == 0 {
		return 0
	}
	return r.Ms[column] / r.Ms[ours]
}

// compared are the rows that others have times in, too.
func (s *set) compared() (list []row) {
	for _, r := range s.Rows {
		if len(r.Ms) > 1 && r.Ms[ours] > 0 {
			list = append(list, r)
		}
	}
	return list
}

// shown is a time with three digits.
func shown(ms float64) string {
	switch {
	case ms == 0:
		return ""
	case ms >= 100:
		return strconv.FormatFloat(ms, 'f', 0, 64)
	}
	v := strconv.FormatFloat(ms, 'g', 3, 64)
	v, _, _ = strings.Cut(v, "e") // of nothing that takes a nanosecond
	return v
}

// colours tell the columns apart, also by people who see some of them alike.
var colours = []color.Color{
	color.RGBA{0, 114, 178, 255},
	color.RGBA{213, 94, 0, 255},
	color.RGBA{0, 158, 115, 255},
	color.RGBA{204, 121, 167, 255},
	color.RGBA{86, 180, 233, 255},
	color.RGBA{230, 159, 0, 255},
	color.RGBA{90, 90, 90, 255},
}

// glyphs do so without colours.
var glyphs = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}, draw.RingGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{}, draw.CrossGlyph{}}

// chart draws each column's times divided by ours.
func (s *set) chart(file string) error {
	p := plot.New()
	p.BackgroundColor = color.White
	p.Y.Label.Text = "time / Sublet's time"
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	p.Legend.Top, p.Legend.YOffs = true, -vg.Points(6)
	var names []string
	points := make([]plotter.XYs, len(s.Columns))
	least, most := 1., 1.
	for _, r := range s.compared() {
		for i, column := range s.Columns {
			if q := r.ratio(column); q > 0 && column != ours {
				points[i] = append(points[i], plotter.XY{X: float64(len(names)), Y: q})
				least, most = min(least, q), max(most, q)
			}
		}
		names = append(names, r.Name)
	}
	one, err := plotter.NewLine(plotter.XYs{{X: -0.5, Y: 1}, {X: float64(len(names)) - 0.5, Y: 1}})
	if err != nil {
		return err
	}
	p.Add(plotter.NewGrid(), one)
	p.Legend.Add("Sublet", one)
	for i, column := range s.Columns {
		if len(points[i]) == 0 {
			continue
		}
		dots, err := plotter.NewScatter(points[i])
		if err != nil {
			return err
		}
		dots.GlyphStyle = draw.GlyphStyle{Color: colours[i%len(colours)], Radius: vg.Points(3.5), Shape: glyphs[i%len(glyphs)]}
		p.Add(dots)
		p.Legend.Add(column, dots)
	}
	p.NominalX(names...)
	p.X.Tick.Label.Rotation, p.X.Tick.Label.XAlign, p.X.Tick.Label.YAlign = math.Pi/3, draw.XRight, draw.YCenter
	p.X.Min, p.X.Max = -0.5, float64(len(names))+2.5 // the legend stands beside
	p.Y.Min, p.Y.Max = least*0.8, most*1.3
	return p.Save(24*vg.Centimeter, 12*vg.Centimeter, file)
}
