// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// barDelay is how long work may take before there is a bar.
const barDelay = time.Second

// progress shows how far each stage of the work is, in a line of a terminal. Work that ends within the delay shows nothing. What is
// written to it is only counted.
type progress struct {
	mu          sync.Mutex
	stage       string
	done, total int64 // bytes or calls; a total of 0 or less is not known
	quit, gone  chan struct{}
}

// newProgress draws to w if it is a terminal.
func newProgress(w io.Writer) *progress {
	if isTerminal(w) {
		return startProgress(w, barDelay)
	}
	return &progress{}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func startProgress(w io.Writer, delay time.Duration) *progress {
	p := &progress{quit: make(chan struct{}), gone: make(chan struct{})}
	go p.draw(w, delay)
	return p
}

func (p *progress) draw(w io.Writer, delay time.Duration) {
	defer close(p.gone)
	var bar *progressbar.ProgressBar
	var shown string
	for wait := delay; ; wait = 100 * time.Millisecond {
		select {
		case <-p.quit:
			if bar != nil {
				_ = bar.Clear()
			}
			return
		case <-time.After(wait):
		}
		p.mu.Lock()
		stage, done, total := p.stage, p.done, max(p.total, 0)
		p.mu.Unlock()
		if bar == nil || stage != shown {
			if bar != nil {
				_ = bar.Clear()
			}
			bar, shown = newBar(w, stage), stage
		}
		bar.ChangeMax64(max(total, done+1)) // a full bar would end itself
		_ = bar.Set64(done)
	}
}

// newBar makes a bar that leaves nothing behind.
func newBar(w io.Writer, stage string) *progressbar.ProgressBar {
	return progressbar.NewOptions64(1, progressbar.OptionSetDescription(stage), progressbar.OptionSetWriter(w),
		progressbar.OptionSetWidth(30), progressbar.OptionSetPredictTime(false), progressbar.OptionClearOnFinish(),
		progressbar.OptionSetRenderBlankState(true))
}

// enter begins the next stage.
func (p *progress) enter(stage string, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stage, p.done, p.total = stage, 0, total
}

// expect adds to the total of the stage.
func (p *progress) expect(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total += n
}

func (p *progress) add(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += n
}

// Write counts bytes.
func (p *progress) Write(b []byte) (int, error) {
	p.add(int64(len(b)))
	return len(b), nil
}

// stop removes the bar. Nothing is drawn after it returns.
func (p *progress) stop() {
	if p.quit != nil {
		close(p.quit)
		<-p.gone
		p.quit = nil
	}
}
