#!/bin/bash
cd "$(dirname "$0")"
export VENVS=${VENVS:-$(cd ../../venvs && pwd)}
export VENV=${VENV:-$VENVS/tf221}
mkdir -p build
if [ ! -e build/layertag.so ]; then
    INC=$("$VENV/bin/python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
    gcc -O1 -fstack-protector-strong -shared -fPIC -I"$INC" layertag.c -o build/layertag.so || exit 1
fi
exec ${WRAP:-} "$VENV/bin/python" main.py
