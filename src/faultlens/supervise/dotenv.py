"""Secrets in the `.env` file beside a program: it loads them by itself, so no environment shows them."""

from __future__ import annotations

import re
from pathlib import Path

from faultlens.text.secrets import secret_values

MAX_BYTES = 64_000
_LINE = re.compile(r"^\s*(?:export\s+)?(?P<name>[A-Za-z_]\w*)\s*=\s*(?P<value>.*?)\s*$", re.M)


def secrets_beside(directory: str | None) -> set[str]:
    """Of the program's folder; empty where there is no such file."""
    path = Path(directory or ".", ".env")
    try:
        if not path.is_file():
            return set()
        with path.open("rb") as file:
            text = file.read(MAX_BYTES).decode(errors="replace")
    except OSError:
        return set()
    variables = {match["name"]: _unquoted(match["value"]) for match in _LINE.finditer(text)}
    return secret_values(variables)


def _unquoted(value: str) -> str:
    if value[:1] in ("'", '"'):
        return value[1:].partition(value[0])[0]
    return re.split(r"\s#", value)[0]
