#!/bin/bash
cd "$(dirname "$0")"
export VENVS=${VENVS:-$(cd ../../venvs && pwd)}
export VENV=${VENV:-$VENVS/tf221}
mkdir -p build
[ -e build/liblexicon.so ] || gcc -O2 -g -shared -fPIC lexicon.c -o build/liblexicon.so || exit 1
exec ${WRAP:-} "$VENV/bin/python" main.py
