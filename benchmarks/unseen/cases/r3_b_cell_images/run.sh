#!/bin/bash
cd "$(dirname "$0")"
export VENVS=${VENVS:-$(cd ../../venvs && pwd)}
export VENV=${VENV:-$VENVS/tf221}
mkdir -p build
[ -e build/libnormalise.so ] || gcc -O2 -shared -fPIC normalise.c -o build/libnormalise.so -lm || exit 1
exec ${WRAP:-} "$VENV/bin/python" main.py
