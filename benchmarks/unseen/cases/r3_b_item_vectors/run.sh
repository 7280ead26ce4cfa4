#!/bin/bash
cd "$(dirname "$0")"
export VENVS=${VENVS:-$(cd ../../venvs && pwd)}
export VENV=${VENV:-$VENVS/tf221}
mkdir -p build
if [ ! -e build/pool_vectors.so ]; then
    CFLAGS=$("$VENV/bin/python" -c 'import tensorflow as tf; print(*tf.sysconfig.get_compile_flags())' 2>/dev/null)
    LFLAGS=$("$VENV/bin/python" -c 'import tensorflow as tf; print(*tf.sysconfig.get_link_flags())' 2>/dev/null)
    g++ -shared -fPIC -w -O2 pool_vectors.cc -o build/pool_vectors.so $CFLAGS $LFLAGS || exit 1
fi
exec ${WRAP:-} "$VENV/bin/python" main.py
