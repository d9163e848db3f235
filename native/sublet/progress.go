// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// barDelay is how long work may take before there is a bar.
const barDelay = time.Second

// clearLine empties the terminal's line.
const clearLine = "\r\x1b[K"

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
	select {
	case <-p.quit:
		return
	case <-time.After(delay):
	}
	for {
		fmt.Fprint(w, clearLine, p)
		select {
		case <-p.quit:
			fmt.Fprint(w, clearLine)
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// String is the bar.
func (p *progress) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.total <= 0 {
		return p.stage + " ..."
	}
	const width = 30
	share := float64(min(p.done, p.total)) / float64(p.total)
	return fmt.Sprintf("%s %3.0f%% |%-*s|", p.stage, 100*share, width, strings.Repeat("#", int(width*share)))
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
