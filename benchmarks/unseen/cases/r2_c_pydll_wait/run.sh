#!/bin/bash
cd "$(dirname "$0")"
export VENVS=${VENVS:-$(cd ../../venvs && pwd)}
export VENV=${VENV:-$VENVS/tf221}
mkdir -p build
[ -e build/libreduce.so ] || gcc -O1 -g -shared -fPIC -pthread -o build/libreduce.so reduce.c
exec ${WRAP:-} "$VENV/bin/python" main.py
