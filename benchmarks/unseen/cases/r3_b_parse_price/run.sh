#!/bin/bash
cd "$(dirname "$0")"
export VENVS=${VENVS:-$(cd ../../venvs && pwd)}
export VENV=${VENV:-$VENVS/tf221}
mkdir -p build
if [ ! -e build/pricing.so ]; then
    INC=$("$VENV/bin/python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
    gcc -O2 -shared -fPIC -I"$INC" pricing.c -o build/pricing.so || exit 1
fi
exec ${WRAP:-} "$VENV/bin/python" main.py
