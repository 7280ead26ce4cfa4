"""The files of a script that calls an op."""

from __future__ import annotations

from collections.abc import Mapping

SCRIPT = "reproduce.py"

Files = Mapping[str, bytes]  # by path below the folder; SCRIPT is the one that is run
