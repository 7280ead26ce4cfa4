"""`faultlens op check`."""

from __future__ import annotations

import argparse
from typing import Any

from faultlens.errors import FaultlensError


def register(verbs: Any) -> None:
    parser = verbs.add_parser("check")
    parser.set_defaults(handler=handle)


def handle(_: argparse.Namespace) -> int:
    raise FaultlensError("Not written yet.")
