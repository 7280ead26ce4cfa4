#!/bin/bash
cd "$(dirname "$0")"
export VENVS=${VENVS:-$(cd ../../venvs && pwd)}
export VENV=${VENV:-$VENVS/tf221}
exec ${WRAP:-} bash -c '
G=/sys/fs/cgroup/memory/unseen_epoch_history
mkdir -p $G && echo 900M > $G/memory.limit_in_bytes && echo $$ > $G/cgroup.procs || exit 1
exec "$VENV/bin/python" main.py'
