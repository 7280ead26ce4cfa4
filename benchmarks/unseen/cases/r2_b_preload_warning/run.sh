#!/bin/bash
cd "$(dirname "$0")"
export VENVS=${VENVS:-$(cd ../../venvs && pwd)}
export VENV=${VENV:-$VENVS/tf221}
exec ${WRAP:-} env LD_PRELOAD=/opt/gperftools/lib/libtcmalloc.so.4 TF_ENABLE_ONEDNN_OPTS=0 "$VENV/bin/python" main.py
