package config

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
)

// named notes which files the configuration names, and what was in them and in
// its own, which holds data.
func (p *parser) named(data []byte, c *Config, warnings []Warning, err error) (*Config, []Warning, error) {
	names := slices.Sorted(maps.Keys(p.files.cache))
	sum := sumOf(p.report.file, names, func(path string) content {
		if found, named := p.files.cache[path]; named {
			return found
		}
		return content{data: data}
	})
	if c != nil {
		c.files, c.sum = names, sum
	}
	if problems, ok := errors.AsType[*Errors](err); ok {
		problems.Files, problems.Sum = names, sum
	}
	return c, warnings, err
}

// Files returns the paths of all files that the configuration names, fit for
// opening, sorted, without its own.
func (c *Config) Files() []string { return slices.Clone(c.files) }

// Sum returns what [Checksum] would have when the configuration was loaded.
func (c *Config) Sum() string { return c.sum }

// Checksum returns a text that is another one when the configuration file at
// path, or any of the files that it names, holds something else, or cannot be
// read. What is no regular file, such as a pipe, can be read once, and is left
// out.
func Checksum(path string, files []string) string {
	return sumOf(path, files, func(path string) content {
		data, err := readFile(path)
		return content{data, err}
	})
}

func sumOf(path string, files []string, of func(path string) content) string {
	sum := sha256.New()
	for _, path := range slices.Concat([]string{path}, files) {
		fmt.Fprintf(sum, "%q\n", path)
		if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
			continue
		}
		c := of(path)
		if c.err != nil {
			c.data = []byte(reason(c.err))
		}
		fmt.Fprintf(sum, "%t %d\n", c.err == nil, len(c.data))
		sum.Write(c.data) // never fails
	}
	return string(sum.Sum(nil))
}

// trafficFiles returns the names of the files of what a target sends.
func (t *Target) trafficFiles() (names []string) {
	all := []string{t.HTTP.BodyFile, t.TCP.SendFile}
	for _, name := range slices.Sorted(maps.Keys(t.HTTP.Headers)) {
		all = append(all, t.HTTP.Headers[name].Files...)
	}
	if b := t.HTTP.BasicAuth; b != nil {
		all = append(all, b.UsernameFile, b.PasswordFile)
	}
	if a := t.HTTP.Authorization; a != nil {
		all = append(all, a.CredentialsFile)
	}
	for _, name := range all {
		if name != "" {
			names = append(names, name)
		}
	}
	return names
}

// TrafficFiles returns the paths of the files that [Target.ReloadTraffic]
// reads, fit for opening: those of headers, credentials and bodies.
func (t *Target) TrafficFiles() []string {
	paths := t.trafficFiles()
	for i, name := range paths {
		paths[i] = within(t.folder, name)
	}
	return paths
}

// ReloadTraffic returns the target with what the files of [Target.TrafficFiles]
// hold now. It fails, with an [*Errors] that names each file and what to do,
// when one of them cannot be read or used. It changes nothing of the target and
// may be called concurrently.
func (t *Target) ReloadTraffic() (Target, error) {
	fresh := t.clone()
	r := &report{}
	newFiles(t.folder, readFile).fillTraffic(&checker{report: r, marks: newMarks()}, &fresh)
	if err := r.err(); err != nil {
		return Target{}, err
	}
	return fresh, nil
}

// Written returns the target as if its files were empty, for comparing what two
// say themselves.
func (t *Target) Written() Target {
	w := t.clone()
	w.HTTP.content, w.TCP.content = Secret{}, Secret{}
	for name, header := range w.HTTP.Headers {
		header.contents = nil
		w.HTTP.Headers[name] = header
	}
	if b := w.HTTP.BasicAuth; b != nil {
		b.username, b.password = Secret{}, Secret{}
	}
	if a := w.HTTP.Authorization; a != nil {
		a.credentials = Secret{}
	}
	w.TLS.ca, w.TLS.cert, w.TLS.key = Secret{}, Secret{}, Secret{}
	return w
}
