#!/bin/bash
cd "$(dirname "$0")"
export VENVS=${VENVS:-$(cd ../../venvs && pwd)}
export VENV=${VENV:-$VENVS/tf221}
mkdir -p build
if [ ! -e build/fanout.so ]; then
    INC=$("$VENV/bin/python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
    g++ -O2 -pthread -shared -fPIC -I"$INC" fanout.cc -o build/fanout.so || exit 1
fi
exec ${WRAP:-} "$VENV/bin/python" main.py
