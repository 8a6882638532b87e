#!/usr/bin/env bash
# Installs what the laboratory of virtual machines needs, and makes its kernel and initrd under target/lab.
# Safe to run again: it installs, fetches and builds only what is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf 'set-up-lab: %s\n' "$*"; }
fail() { printf 'set-up-lab: %s\n' "$*" >&2; exit 1; }

packages=(qemu-system-x86 nbdkit busybox-static kmod cpio e2fsprogs xfsprogs dmsetup mdadm lvm2 cryptsetup-bin open-iscsi multipath-tools tgt nbd-client fdisk fio nvme-cli smartmontools xz-utils)
lab=target/lab
kernel=$lab/kernel
# What the initrd needs to reach the host's files; all other modules are loaded from there.
modules=(virtio_pci 9p 9pnet_virtio overlay)

missing=()
for package in "${packages[@]}"; do
    [ "$(dpkg-query --show --showformat '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
    command -v apt-get >/dev/null && [ "$(id -u)" -eq 0 ] || fail "packages are missing: sudo apt-get install ${missing[*]}"
    say "installing Debian packages: ${missing[*]}"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update --quiet=2 </dev/null
    apt-get install --yes --quiet=2 --no-install-recommends "${missing[@]}" </dev/null >/dev/null
fi

if ! compgen -G "$kernel/boot/vmlinuz-*" >/dev/null; then
    package=$(apt-cache depends --important linux-image-amd64 2>/dev/null | sed -n 's/^ *Depends: //p')
    [ -n "$package" ] || fail "linux-image-amd64 is unknown to apt: run apt-get update, on Debian for amd64"
    say "unpacking $package into $kernel (it is not installed)"
    download=$(mktemp --directory)
    trap 'rm -rf "$download"' EXIT
    (cd "$download" && apt-get download --quiet=2 -o APT::Sandbox::User=root "$package")
    rm -rf "$kernel.new"
    mkdir -p "$kernel.new"
    dpkg -x "$download"/*.deb "$kernel.new"
    # Newer packages compress modules; busybox in the initrd loads none of these.
    find "$kernel.new" -name '*.ko.xz' -exec xz --decompress {} +
    rm -rf "$kernel"
    mv "$kernel.new" "$kernel"
fi
version=$(basename "$kernel"/lib/modules/*)
PATH=$PATH:/usr/sbin:/sbin
[ -s "$kernel/lib/modules/$version/modules.dep.bin" ] || depmod --basedir "$kernel" "$version"

say "building the initrd of Linux $version"
tree=$(mktemp --directory)
trap 'rm -rf "$tree" "${download:-}"' EXIT
mkdir -p "$tree"/{bin,modules,proc,sys,dev,host,layers,root}
cp "$(command -v busybox)" "$tree/bin/busybox"
cp lab/init.sh "$tree/init"
chmod 755 "$tree/init" "$tree/bin/busybox"
for module in "${modules[@]}"; do
    modprobe --dirname "$kernel" --set-version "$version" --show-depends "$module" | sed -n 's/^insmod //p'
done | awk '!seen[$1]++ { print $1 }' | while read -r path; do
    cp "$path" "$tree/modules/"
    basename "$path" >>"$tree/modules/order"
done
(cd "$tree" && find . | cpio --quiet --create --format newc | gzip) >"$lab/initrd.new"
mv "$lab/initrd.new" "$lab/initrd"
say "ready: Linux $version, $(qemu-system-x86_64 --version | head --lines=1)"
