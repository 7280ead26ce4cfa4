#!/bin/bash
cd "$(dirname "$0")"
export VENVS=${VENVS:-$(cd ../../venvs && pwd)}
export VENV=${VENV:-$VENVS/tf221}
exec ${WRAP:-} unshare -m bash -c 'mount -t tmpfs -o size=64m tmpfs /dev/shm && exec "$VENV/bin/python" main.py'
