#!/bin/bash
cd "$(dirname "$0")"
export VENVS=${VENVS:-$(cd ../../venvs && pwd)}
export VENV=${VENV:-$VENVS/tf221}
[ -e build/common/google/__init__.py ] || bash make_site.sh
exec ${WRAP:-} env PYTHONPATH=$PWD/build/common "$VENV/bin/python" main.py
