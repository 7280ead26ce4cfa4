#!/bin/bash
# The cluster's "common" site directory: the packages of the old image.
set -e
src="$("$VENV/bin/python" -c 'import google.protobuf as p, os; print(os.path.dirname(os.path.dirname(p.__file__)))')"
mkdir -p build/common
cp -r "$src" build/common/google
cd build/common/google/protobuf
rm -rf __pycache__ runtime_version.py
sed -i "s/^__version__ = .*/__version__ = '3.20.3'/" __init__.py
touch __init__.py ../__init__.py
