#!/bin/bash
cd "$(dirname "$0")"
export VENVS=${VENVS:-$(cd ../../venvs && pwd)}
export VENV=${VENV:-$VENVS/tf221}
mkdir -p build
[ -e build/libregions.so ] || gcc -O1 -g -shared -fPIC regions.c -o build/libregions.so || exit 1
exec ${WRAP:-} "$VENV/bin/python" main.py
