package main

import (
	"runtime/debug"
	"strings"
)

// programVersion returns the version that the linker has set, as for a release:
//
//	-ldflags "-X github.com/prometheus/common/version.Version=1.2.3"
//
// else the one of the module, as Go knows it for "go install" and for a build
// in a clone, or "devel", so that the User-Agent always has one.
func programVersion(linked string) string {
	if linked != "" {
		return linked
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return strings.TrimPrefix(info.Main.Version, "v")
	}
	return "devel"
}
