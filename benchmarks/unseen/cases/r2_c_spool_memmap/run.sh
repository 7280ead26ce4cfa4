#!/bin/bash
cd "$(dirname "$0")"
export VENVS=${VENVS:-$(cd ../../venvs && pwd)}
export VENV=${VENV:-$VENVS/tf221}
exec ${WRAP:-} unshare -m bash -c 'mkdir -p spool && mount -t tmpfs -o size=16m tmpfs spool && export SPOOL_DIR=$PWD/spool && exec "$VENV/bin/python" main.py' 
