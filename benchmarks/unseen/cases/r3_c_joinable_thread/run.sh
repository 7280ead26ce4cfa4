#!/bin/bash
cd "$(dirname "$0")"
export VENVS=${VENVS:-$(cd ../../venvs && pwd)}
export VENV=${VENV:-$VENVS/tf221}
mkdir -p build
[ -e build/libprefetch.so ] || g++ -O1 -g -shared -fPIC -pthread -o build/libprefetch.so prefetch.cc
exec ${WRAP:-} "$VENV/bin/python" main.py
