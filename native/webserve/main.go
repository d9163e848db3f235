// SPDX-License-Identifier: Apache-2.0

// Command webserve serves a folder of static pages on this machine, for trying them out: with the media types that
// browsers insist on, and isolated from other origins, which gives pages SharedArrayBuffer and a fine clock.
//
//	webserve [-addr 127.0.0.1:8080] folder
package main

import (
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/sublet-gpu/sublet/internal/webpage"
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
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	fmt.Printf("http://%s/  (Ctrl+C ends)\n", listener.Addr())
	s := &http.Server{Handler: webpage.Handler(http.FileServer(http.Dir(folder))), ReadHeaderTimeout: 10 * time.Second}
	return s.Serve(listener)
}
