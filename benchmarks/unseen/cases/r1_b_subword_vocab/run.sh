#!/bin/bash
cd "$(dirname "$0")"
export VENVS=${VENVS:-$(cd ../../venvs && pwd)}
export VENV=${VENV:-$VENVS/tf221}
mkdir -p build
[ -e build/libvocab.so ] || gcc -O2 -g -shared -fPIC vocab.c -o build/libvocab.so || exit 1
exec ${WRAP:-} "$VENV/bin/python" main.py
