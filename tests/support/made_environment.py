"""Environments for tests: folders with the metadata that pip would have written, without the packages."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from faultlens.target_env.interpreter import Interpreter
from faultlens.target_env.target import Options, TargetEnvironment


def site_packages(tmp_path: Path) -> Path:
    folder = tmp_path / "env" / "lib" / "python3.11" / "site-packages"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def install(
    folder: Path,
    name: str,
    version: str,
    *,
    files: Mapping[str, bytes] | None = None,
    requires: Iterable[str] = (),
    tag: str = "py3-none-any",
) -> Path:
    """Writes the files and the metadata; gives the folder of the metadata."""
    metadata = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    metadata.mkdir(parents=True)
    lines = []
    for path, content in (files or {}).items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
        lines.append(f"{path},sha256={digest},{len(content)}")
    demands = "".join(f"Requires-Dist: {each}\n" for each in requires)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{demands}\n")
    (metadata / "RECORD").write_text("\n".join([*lines, f"{metadata.name}/RECORD,,"]) + "\n")
    (metadata / "WHEEL").write_text(f"Wheel-Version: 1.0\nTag: {tag}\n")
    return metadata


def tensorflow(folder: Path, version: str = "2.21.0", requires: Iterable[str] = (), **more: str) -> Path:
    files = {f"tensorflow/{name}": b"" for name in ("__init__.py", "python/__init__.py", "core/__init__.py")}
    return install(folder, "tensorflow-cpu", version, files=files, requires=requires, **more)


def target(
    tmp_path: Path,
    *,
    before: Iterable[Path] = (),
    variables: Mapping[str, str] | None = None,
    version: tuple[int, ...] = (3, 11, 7),
    deep: bool = False,
) -> TargetEnvironment:
    """`before`: folders that come first on the search path."""
    prefix = str(tmp_path / "env")
    interpreter = Interpreter(
        executable=f"{prefix}/bin/python",
        version=version,
        prefix=prefix,
        base_prefix="/usr",
        path=(*map(str, before), str(site_packages(tmp_path))),
    )
    directory = tmp_path / "work"
    directory.mkdir(exist_ok=True)
    return TargetEnvironment(interpreter, Options(deep=deep), dict(variables or {}), directory)
