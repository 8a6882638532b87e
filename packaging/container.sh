#!/usr/bin/env bash
# Builds the image assay-storage:VERSION with the first of podman, buildah and docker; its arguments go to the build.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
compgen -G "dist/assay-storage_${version}-*.deb" >/dev/null || { echo "container: dist holds no .deb of $version; make packages writes it" >&2; exit 1; }
for program in podman buildah docker; do
    command -v "$program" >/dev/null && exec "$program" build --file Containerfile --tag "assay-storage:$version" "$@" .
done
echo "container: podman, buildah and docker are missing; install one of them (apt-get install buildah)" >&2
exit 1
