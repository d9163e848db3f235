module nativepeers/peers/ours

go 1.26

require (
	github.com/sublet-gpu/sublet v0.0.0
	nativepeers v0.0.0
)

replace nativepeers => ../..
