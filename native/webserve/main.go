// SPDX-License-Identifier: Apache-2.0

// Command webserve serves a folder of static pages on this machine, for trying them out: with the media types that
// browsers insist on, and isolated from other origins, which gives pages SharedArrayBuffer and a fine clock.
//
//	webserve [-addr 127.0.0.1:8080] folder
package main

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"time"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "address to listen on; port 0 takes a free one")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: webserve [-addr host:port] folder")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := serve(*addr, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "webserve:", err)
		os.Exit(1)
	}
}

func serve(addr, folder string) error {
	if _, err := os.Stat(filepath.Join(folder, "index.html")); err != nil {
		return err
	}
	listener, err := listen(addr)
	if err != nil {
		return err
	}
	fmt.Printf("http://%s/  (Ctrl+C ends)\n", listener.Addr())
	s := &http.Server{Handler: handler(http.FileServer(http.Dir(folder))), ReadHeaderTimeout: 10 * time.Second}
	if err := s.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// listen takes any free port where the one in the address is in use.
func listen(addr string) (net.Listener, error) {
	listener, err := net.Listen("tcp", addr)
	if err == nil {
		return listener, nil
	}
	host, _, split := net.SplitHostPort(addr)
	if split != nil {
		return nil, err
	}
	return net.Listen("tcp", net.JoinHostPort(host, "0"))
}

// kinds are the media types of pages. Package mime takes them from the machine, where they may be wrong.
var kinds = map[string]string{
	".css":  "text/css; charset=utf-8",
	".html": "text/html; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".json": "application/json",
	".mjs":  "text/javascript; charset=utf-8",
	".ts":   "text/plain; charset=utf-8",
	".wasm": "application/wasm",
}

func handler(files http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		head := w.Header()
		head.Set("Cross-Origin-Opener-Policy", "same-origin")
		head.Set("Cross-Origin-Embedder-Policy", "require-corp")
		head.Set("Cache-Control", "no-cache") // the next build is seen at once
		if kind, ok := kinds[path.Ext(r.URL.Path)]; ok {
			head.Set("Content-Type", kind)
		}
		files.ServeHTTP(w, r)
	})
}
