module github.com/sublet-gpu/sublet/native/gogpu

go 1.26

require (
	github.com/gogpu/gputypes v0.5.1
	github.com/gogpu/naga v0.17.16
	github.com/gogpu/wgpu v0.30.30
	github.com/sublet-gpu/sublet v0.0.0
)

require (
	github.com/cogentcore/webgpu v0.23.0 // indirect
	github.com/go-json-experiment/json v0.0.0-20260213210345-44df1a37e875 // indirect
	github.com/go-webgpu/goffi v0.6.2 // indirect
	github.com/go-webgpu/webgpu v0.5.4 // indirect
	github.com/gogpu/gpucontext v0.23.0 // indirect
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/mitchellh/colorstring v0.0.0-20190213212951-d06e56a500db // indirect
	github.com/pbnjay/memory v0.0.0-20210728143218-7b4eea64cf58 // indirect
	github.com/rivo/uniseg v0.4.7 // indirect
	github.com/schollz/progressbar/v3 v3.19.0 // indirect
	github.com/spf13/cobra v1.10.2 // indirect
	github.com/spf13/pflag v1.0.9 // indirect
	github.com/tetratelabs/wazero v1.12.0 // indirect
	github.com/x448/float16 v0.8.4 // indirect
	golang.org/x/sys v0.47.0 // indirect
	golang.org/x/term v0.28.0 // indirect
)

replace github.com/sublet-gpu/sublet => ../..
