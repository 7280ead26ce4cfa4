#!/bin/bash
cd "$(dirname "$0")"
export VENVS=${VENVS:-$(cd ../../venvs && pwd)}
export VENV=${VENV:-$VENVS/tf221}
mkdir -p build
if [ ! -e build/rescale.so ]; then
    INC=$("$VENV/bin/python" -c 'import tensorflow as tf; print(tf.sysconfig.get_include())' 2>/dev/null)
    LIB=$("$VENV/bin/python" -c 'import tensorflow as tf; print(tf.sysconfig.get_lib())' 2>/dev/null)
    g++ -std=c++17 -shared -fPIC -w -O2 -D_GLIBCXX_USE_CXX11_ABI=0 -DEIGEN_MAX_ALIGN_BYTES=64 -I"$INC" rescale.cc -o build/rescale.so -L"$LIB" -l:libtensorflow_framework.so.2 || exit 1
fi
exec ${WRAP:-} "$VENV/bin/python" main.py
