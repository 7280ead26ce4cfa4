#!/bin/bash
cd "$(dirname "$0")"
export VENVS=${VENVS:-$(cd ../../venvs && pwd)}
export VENV=${VENV:-$VENVS/tf221}
mkdir -p build
[ -e build/_geo_ops.so ] || g++ -O1 -shared -fPIC -w $("$VENV/bin/python" -c 'import tensorflow as tf; print(*tf.sysconfig.get_compile_flags())' 2>/dev/null) -D_GLIBCXX_USE_CXX11_ABI=0 -o build/_geo_ops.so geo_ops.cc $("$VENV/bin/python" -c 'import tensorflow as tf; print(*tf.sysconfig.get_link_flags())' 2>/dev/null)
exec ${WRAP:-} "$VENV/bin/python" main.py
