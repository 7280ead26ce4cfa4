#!/bin/bash
cd "$(dirname "$0")"
export VENVS=${VENVS:-$(cd ../../venvs && pwd)}
export VENV=${VENV:-$VENVS/tf221}
exec ${WRAP:-} bash -c 'ulimit -v 2400000; exec "$VENV/bin/python" main.py' 
