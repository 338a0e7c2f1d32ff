# The image: one static binary with the catalogue inside, no shell, not root.
#
#   docker build -t rwannotate .
#
# What comes from outside is an argument, so that a release can name it by
# digest:
#
#   docker build --build-arg BUILDER=docker.io/library/golang@sha256:… -t rwannotate .
#
# Target prebuilt packs bin/rwannotate (make build) instead of compiling, and
# needs no image at all:
#
#   buildah bud --format docker --target prebuilt -t rwannotate .

ARG BUILDER=docker.io/library/golang:1.26
# What the image stands on. Nothing is needed; distroless/static works too.
ARG BASE=scratch

FROM scratch AS empty
WORKDIR /state

FROM ${BASE} AS image
ARG VERSION=dev
ARG REVISION=unknown
LABEL org.opencontainers.image.title="rwannotate" \
      org.opencontainers.image.description="Recognises known errors in RisingWave logs and says what to do about them" \
      org.opencontainers.image.source="https://github.com/rwannotate/rwannotate" \
      org.opencontainers.image.documentation="https://github.com/rwannotate/rwannotate#readme" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY LICENSE /licenses/LICENSE
# A named volume takes over the owner of the directory it hides.
COPY --from=empty --chown=65532:0 /state/ /var/lib/rwannotate/
ENV PATH=/usr/bin
# Group 0 reads the kubelet's log files, which are 0640 root:root.
USER 65532:0
WORKDIR /var/lib/rwannotate
EXPOSE 12399
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s CMD ["/usr/bin/rwannotate", "healthcheck"]
ENTRYPOINT ["/usr/bin/rwannotate"]
CMD ["run"]

# For a Loki behind https mount /etc/ssl/certs, or take a BASE that has it.
FROM image AS prebuilt
COPY bin/rwannotate /usr/bin/rwannotate

# It compiles on the machine that builds, for the platform that is asked for.
FROM --platform=${BUILDPLATFORM} ${BUILDER} AS built
ARG VERSION=dev
ARG REVISION=unknown
# Set by the builder.
ARG TARGETOS
ARG TARGETARCH
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN GOOS=$TARGETOS GOARCH=$TARGETARCH make build VERSION=$VERSION REVISION=$REVISION OUT=/out/rwannotate

FROM image
COPY --from=built /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=built /out/rwannotate /usr/bin/rwannotate
