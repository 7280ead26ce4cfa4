#!/bin/bash
cd "$(dirname "$0")"
export VENVS=${VENVS:-$(cd ../../venvs && pwd)}
export VENV=${VENV:-$VENVS/tf221}
mkdir -p build
[ -e build/libnms.so ] || gcc -O1 -g -shared -fPIC -o build/libnms.so nms.c
exec ${WRAP:-} "$VENV/bin/python" main.py
