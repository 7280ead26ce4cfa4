#!/bin/bash
cd "$(dirname "$0")"
export VENVS=${VENVS:-$(cd ../../venvs && pwd)}
export VENV=${VENV:-$VENVS/tf221}
mkdir -p build
[ -e build/libmesh.so ] || g++ -O2 -shared -fPIC mesh.cc -o build/libmesh.so || exit 1
exec ${WRAP:-} "$VENV/bin/python" main.py
