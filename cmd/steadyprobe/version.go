package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/prometheus/common/version"
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

// programRevision returns the revision that the linker has set, else the one
// that Go has read from the clone, or "unknown". It ends in "-modified" where
// Go has seen that the clone was changed after that revision.
func programRevision(linked string, settings []debug.BuildSetting) string {
	var revision, modified string
	for _, s := range settings {
		switch s.Key {
		case "vcs.revision":
			revision = s.Value
		case "vcs.modified":
			modified = s.Value
		}
	}
	switch {
	case linked != "" && linked != revision:
		return linked
	case revision == "":
		return "unknown"
	case modified == "true":
		return revision + "-modified"
	}
	return revision
}

// buildSettings returns what Go knows of the build.
func buildSettings() []debug.BuildSetting {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Settings
	}
	return nil
}

// versionText returns what --version prints. Its first line is as that of
// other programs around Prometheus.
func versionText() string {
	return fmt.Sprintf("steadyprobe, version %s (revision: %s)\n  go version: %s\n  platform:   %s/%s",
		version.Version, version.Revision, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
