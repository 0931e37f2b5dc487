// The definitions of the Gateway API, which the test bed installs: nothing of it
// is compiled.
module github.com/steadyprobe/steadyprobe/test/kubebed/gatewayapi

go 1.26.0

require sigs.k8s.io/gateway-api v1.6.3
