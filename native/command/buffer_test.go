// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"strings"
	"sync"
	"testing"
)

// lockedBuffer is a buffer that one goroutine writes and another waits on.
type lockedBuffer struct {
	mu   sync.Mutex
	cond *sync.Cond
	b    bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cond != nil {
		defer l.cond.Broadcast()
	}
	return l.b.Write(p)
}

func (l *lockedBuffer) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Len()
}

// wait returns when text was written. If it never is, the test ends by its timeout, and says here what it waited for.
func (l *lockedBuffer) wait(t *testing.T, text string) {
	t.Helper()
	t.Logf("waiting for %q", text)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cond = sync.NewCond(&l.mu)
	for !strings.Contains(l.b.String(), text) {
		l.cond.Wait()
	}
}
