#!/bin/bash
cd "$(dirname "$0")"
export VENVS=${VENVS:-$(cd ../../venvs && pwd)}
export VENV=${VENV:-$VENVS/tf221}
mkdir -p build
[ -e build/libaxpy.so ] || gcc -O2 -mavx -mfma4 -shared -fPIC -o build/libaxpy.so axpy.c
exec ${WRAP:-} "$VENV/bin/python" main.py
