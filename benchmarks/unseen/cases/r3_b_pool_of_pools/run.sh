#!/bin/bash
cd "$(dirname "$0")"
export VENVS=${VENVS:-$(cd ../../venvs && pwd)}
export VENV=${VENV:-$VENVS/tf221}
exec ${WRAP:-} bash -c '
G=/sys/fs/cgroup/pids/unseen_pool_of_pools
mkdir -p $G && echo 40 > $G/pids.max && echo $$ > $G/cgroup.procs || exit 1
exec "$VENV/bin/python" main.py'
