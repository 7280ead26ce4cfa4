#!/bin/bash
cd "$(dirname "$0")"
export VENVS=${VENVS:-$(cd ../../venvs && pwd)}
export VENV=${VENV:-$VENVS/tf221}
mkdir -p build
[ -e build/libsolver.so ] || gcc -O2 -shared -fPIC solver.c -o build/libsolver.so || exit 1
exec ${WRAP:-} "$VENV/bin/python" main.py
