#!/bin/bash
cd "$(dirname "$0")"
export VENVS=${VENVS:-$(cd ../../venvs && pwd)}
export VENV=${VENV:-$VENVS/tf221}
mkdir -p build
[ -e build/libcalib.so ] || gcc -O2 -shared -fPIC calib.c -o build/libcalib.so || exit 1
exec ${WRAP:-} "$VENV/bin/python" main.py
