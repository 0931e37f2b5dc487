# The image of steadyprobe: one static program, the certificates that it
# trusts, and nothing else; no shell, no package, nothing to write to. It runs
# as any user and with a read-only root.
#
# `make image` builds it with docker, podman or buildah, which do it alike;
# test/image_linux_test.go builds and runs it with every change.

# Where Docker Hub is out of reach, any image with Go, a shell and certificates
# does (GO_IMAGE).
ARG GO_IMAGE=docker.io/library/golang:1.26

# The compiler runs on the builder's own kind of machine and writes for the
# image's.
FROM --platform=${BUILDPLATFORM} ${GO_IMAGE} AS compile
ARG TARGETOS
ARG TARGETARCH
# Where the modules come from, for who has a mirror.
ARG GOPROXY
ARG VERSION=unknown
ARG REVISION=unknown
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS="$TARGETOS" GOARCH="$TARGETARCH" \
    go build -trimpath -buildvcs=false \
      -ldflags "-s -w -X github.com/prometheus/common/version.Version=$VERSION -X github.com/prometheus/common/version.Revision=$REVISION" \
      -o /steadyprobe ./cmd/steadyprobe

FROM scratch
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="steadyprobe" \
      org.opencontainers.image.description="Constant-rate probe of load balancers and ingresses for Prometheus" \
      org.opencontainers.image.source="https://github.com/steadyprobe/steadyprobe" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
# The authorities are a file and not part of the program, because a bundle in
# the program ages with it unseen, and because a company's own authorities can
# be mounted over a file. Here Go looks for it by itself (crypto/x509).
COPY --from=compile /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=compile /steadyprobe /src/LICENSE /
# The default configuration file is relative to here, so that it is found also
# where flags take the place of the CMD.
WORKDIR /etc/steadyprobe
# A number, so that Kubernetes can see that it is not root (runAsNonRoot).
USER 65532:65532
EXPOSE 10115
ENTRYPOINT ["/steadyprobe"]
CMD ["--config.file=/etc/steadyprobe/steadyprobe.yml"]
