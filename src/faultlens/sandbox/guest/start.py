"""The first code of ours in the Python of the user's programs: python -B start.py MODULE.py ARGUMENTS…

The folder of the module becomes the package `faultlens_guest`, this one `faultlens_sandbox`. Neither is searched for
modules: the names in them are common ones, and the user's own come first. Calls `main()` of the module."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys


def package(name: str, folder: str) -> None:
    start = os.path.join(folder, "__init__.py")
    spec = importlib.util.spec_from_file_location(name, start, submodule_search_locations=[folder])
    assert spec is not None
    sys.modules[name] = importlib.util.module_from_spec(spec)


def start() -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != here]
    del sys.argv[0]
    folder, file = os.path.split(sys.argv[0])
    package("faultlens_sandbox", here)
    package("faultlens_guest", folder)
    importlib.import_module("faultlens_guest." + file[: -len(".py")]).main()


if __name__ == "__main__":
    start()
