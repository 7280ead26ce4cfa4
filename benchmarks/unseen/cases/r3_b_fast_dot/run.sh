#!/bin/bash
cd "$(dirname "$0")"
export VENVS=${VENVS:-$(cd ../../venvs && pwd)}
export VENV=${VENV:-$VENVS/tf221}
mkdir -p build
[ -e build/libfastdot.so ] || gcc -O2 -mamx-tile -mamx-int8 -shared -fPIC fastdot.c -o build/libfastdot.so || exit 1
exec ${WRAP:-} "$VENV/bin/python" main.py
