#!/bin/bash
cd "$(dirname "$0")"
export VENVS=${VENVS:-$(cd ../../venvs && pwd)}
export VENV=${VENV:-$VENVS/tf221}
exec ${WRAP:-} unshare -m bash -c 'mkdir -p cache && mount -t tmpfs -o size=8m tmpfs cache && export MODEL_CACHE=$PWD/cache && exec "$VENV/bin/python" main.py' 
