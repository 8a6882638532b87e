#!/bin/sh
set -e
# dpkg says remove, upgrade or deconfigure; rpm says how many versions stay, and has installed the new one already.
case "$1" in
1) exit 0 ;;
remove | 0)
    if [ -d /run/systemd/system ]; then
        systemctl disable --now assay-record.service >/dev/null 2>&1 || true
    fi
    ;;
esac
find /usr/lib/assay -name __pycache__ -type d -prune -exec rm -rf {} +
