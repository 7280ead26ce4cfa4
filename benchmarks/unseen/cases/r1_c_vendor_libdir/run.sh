#!/bin/bash
cd "$(dirname "$0")"
export VENVS=${VENVS:-$(cd ../../venvs && pwd)}
export VENV=${VENV:-$VENVS/tf221}
mkdir -p build/sdk
[ -e build/sdk/libstdc++.so.6 ] || gcc -shared -fPIC -Wl,-soname,libstdc++.so.6 -o build/sdk/libstdc++.so.6 vendor/stdcxx_stub.c
exec ${WRAP:-} env LD_LIBRARY_PATH=$PWD/build/sdk "$VENV/bin/python" main.py
