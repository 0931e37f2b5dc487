# The tests need nginx, HAProxy, openssl, curl, Chromium, Buildah, iptables and a C
# compiler: `make setup` says what is missing and installs it (Debian, Ubuntu). It is part of
# `make test`.

version  := github.com/prometheus/common/version
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
REVISION ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)

.PHONY: help setup build image test lint fuzz bench gobench e2e kube demo run pictures clean

help: ## list these targets
	@sed -n 's/^\([a-z0-9]*\):.*## /\1\t/p' Makefile

setup: ## install the servers that the tests need, build the tools
	@scripts/setup

build: ## build bin/steadyprobe
	go build -trimpath -ldflags '-s -w -X $(version).Version=$(VERSION) -X $(version).Revision=$(REVISION)' \
		-o bin/steadyprobe ./cmd/steadyprobe

image: ## build the image steadyprobe with docker, podman or buildah (BUILDER=… chooses, GO_IMAGE=… names another base)
	@builder='$(BUILDER)'; \
	for b in docker podman buildah; do \
		if [ -z "$$builder" ] && command -v $$b >/dev/null && { [ $$b != docker ] || docker info >/dev/null 2>&1; }; then builder=$$b; fi; \
	done; \
	[ -n "$$builder" ] || { echo "missing: docker (running), podman or buildah" >&2; exit 1; }; \
	set -x; $$builder build --build-arg VERSION='$(VERSION)' --build-arg REVISION='$(REVISION)' \
		$(if $(GO_IMAGE),--build-arg GO_IMAGE='$(GO_IMAGE)') --tag steadyprobe .

test: setup ## all tests but the proof of the alerts
	@scripts/test

e2e: setup ## only the tests with real servers, and the proof of the alerts
	@scripts/test e2e

kube: setup ## only the tests with a Kubernetes control plane (built once, ten minutes), with a churn of ten minutes
	@STEADYPROBE_LOOP=10m scripts/test kube

lint: ## format and lint
	@scripts/lint

fuzz: ## fuzz every target for 30 s
	@scripts/fuzz

bench: ## side by side with other tools, see bench/README.md (BENCH="flags")
	@scripts/setup nginx haproxy wrk ab h2load
	@scripts/tools build peers
	go run ./bench -path "$$(scripts/tools where peers)" $(BENCH)

gobench: ## the benchmarks of the packages
	go test -run '^$$' -bench . -benchmem ./...

run: ## a door and the daemon that probes it
	@scripts/run

demo: build ## all in one process: doors, backends that come and go, and the probe
	@bin/steadyprobe demo

pictures: setup ## the pictures of the pages in docs, from the demo in a browser and from doors that go wrong
	STEADYPROBE_PICTURES=$(CURDIR)/docs/img go test ./test ./test/observability -p 1 -count 1 -run '^(TestPage|TestObservability)$$'

clean: ## remove what was built
	rm -rf bin
