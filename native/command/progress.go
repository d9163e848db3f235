// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// barDelay is how long work may take before there is a bar.
const barDelay = time.Second

// progress shows how far each stage of the work is, in a line of a terminal. Work that ends within the delay shows nothing.
type progress struct {
	out io.Writer // nil: nothing is drawn, or no more
	bar *progressbar.ProgressBar
}

// silent is the bar where there is none.
var silent = progressbar.DefaultSilent(0)

// newProgress draws to w if it is a terminal.
func newProgress(w io.Writer) *progress {
	if isTerminal(w) {
		return startProgress(w, barDelay)
	}
	return &progress{bar: silent}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func startProgress(w io.Writer, delay time.Duration) *progress {
	return &progress{delayed{w, time.Now().Add(delay)}, silent}
}

// delayed drops what is written before a time.
type delayed struct {
	io.Writer
	from time.Time
}

func (d delayed) Write(b []byte) (int, error) {
	if time.Now().Before(d.from) {
		return len(b), nil
	}
	return d.Writer.Write(b)
}

// enter begins the next stage. The total is of bytes or calls; one of 0 or less is not known.
func (p *progress) enter(stage string, total int64) {
	_ = p.bar.Finish()
	if p.out == nil {
		return
	}
	if total <= 0 {
		total = -1 // the bar turns by itself
	}
	p.bar = progressbar.NewOptions64(total, progressbar.OptionSetDescription(stage), progressbar.OptionSetWriter(p.out),
		progressbar.OptionSetWidth(30), progressbar.OptionSetPredictTime(false), progressbar.OptionClearOnFinish(),
		progressbar.OptionSetRenderBlankState(true))
}

func (p *progress) add(n int64) { _ = p.bar.Add64(n) }

// stop removes the bar. Nothing is drawn after it returns.
func (p *progress) stop() {
	_ = p.bar.Finish()
	p.out, p.bar = nil, silent
}

// pour copies data in blocks of whole elements of any type, until the context ends.
func (p *progress) pour(ctx context.Context, dst io.Writer, src io.Reader, size int64) error {
	block := make([]byte, min(size, 1<<20))
	for ; size > 0; size -= int64(len(block)) {
		if err := ctx.Err(); err != nil {
			return err
		}
		block = block[:min(int64(len(block)), size)]
		if _, err := io.ReadFull(src, block); err != nil {
			return err
		}
		if _, err := dst.Write(block); err != nil {
			return err
		}
		p.add(int64(len(block)))
	}
	return nil
}
