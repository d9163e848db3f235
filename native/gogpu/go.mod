module github.com/sublet-gpu/sublet/native/gogpu

go 1.26

require (
	github.com/gogpu/gputypes v0.5.1
	github.com/gogpu/naga v0.17.16
	github.com/gogpu/wgpu v0.30.30
	github.com/sublet-gpu/sublet v0.0.0
)

require (
	github.com/go-webgpu/goffi v0.6.2 // indirect
	github.com/go-webgpu/webgpu v0.5.4 // indirect
	github.com/gogpu/gpucontext v0.23.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
)

replace github.com/sublet-gpu/sublet => ../..
