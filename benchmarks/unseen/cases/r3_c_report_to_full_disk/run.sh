#!/bin/bash
cd "$(dirname "$0")"
export VENVS=${VENVS:-$(cd ../../venvs && pwd)}
export VENV=${VENV:-$VENVS/tf221}
exec ${WRAP:-} bash -c 'exec env -u PYTHONUNBUFFERED "$VENV/bin/python" main.py > /dev/full' 
