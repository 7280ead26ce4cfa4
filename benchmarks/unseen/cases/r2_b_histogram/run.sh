#!/bin/bash
cd "$(dirname "$0")"
export VENVS=${VENVS:-$(cd ../../venvs && pwd)}
export VENV=${VENV:-$VENVS/tf221}
mkdir -p build
[ -e build/libhist.so ] || gcc -O2 -shared -fPIC hist.c -o build/libhist.so || exit 1
exec ${WRAP:-} "$VENV/bin/python" main.py
