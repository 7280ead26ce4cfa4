"""The map in docs/design.md leads to files that are there."""

from __future__ import annotations

import re

import places

SOURCE = places.ROOT / "src" / "faultlens"
PAGE = (places.ROOT / "docs" / "design.md").read_text()
MAP = PAGE[PAGE.index("## Where is it?") : PAGE.index("## Capture, and why so")]
PATH = re.compile(r"`([\w./-]+(?:\.(?:py|c|h|json|md)|/))`")


def test_every_path_of_the_map_is_there() -> None:
    missing = []
    for row in MAP.splitlines():
        folder = SOURCE
        for name in PATH.findall(row):
            path = next((base / name for base in (folder, SOURCE, places.ROOT) if (base / name).exists()), None)
            if path is None:
                missing.append(f"{name} in: {row[:80]}")
                continue
            folder = path if path.is_dir() else path.parent
    assert not missing, "\n".join(missing)


def test_every_package_is_on_the_page() -> None:
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert not {name for name in packages if f"`{name}/" not in PAGE}
