#!/bin/sh
set -e
# Bytecode belongs to this machine's Python. Some packages hold templates that are no Python, which is no failure.
/usr/bin/python@PYTHON@ -m compileall -q -j 0 /usr/lib/assay/lib >/dev/null 2>&1 || true
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload || true
fi
