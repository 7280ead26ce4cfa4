#!/bin/bash
cd "$(dirname "$0")"
export VENVS=${VENVS:-$(cd ../../venvs && pwd)}
export VENV=${VENV:-$VENVS/tf221}
mkdir -p build
[ -e build/libbatch.so ] || gcc -O2 -shared -fPIC batch.c -o build/libbatch.so || exit 1
exec ${WRAP:-} "$VENV/bin/python" main.py
