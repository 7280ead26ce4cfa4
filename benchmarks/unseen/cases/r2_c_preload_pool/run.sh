#!/bin/bash
cd "$(dirname "$0")"
export VENVS=${VENVS:-$(cd ../../venvs && pwd)}
export VENV=${VENV:-$VENVS/tf221}
mkdir -p build
[ -e build/libpoolalloc.so ] || gcc -O2 -fno-builtin -shared -fPIC -o build/libpoolalloc.so poolalloc.c
exec ${WRAP:-} env LD_PRELOAD=$PWD/build/libpoolalloc.so "$VENV/bin/python" main.py
