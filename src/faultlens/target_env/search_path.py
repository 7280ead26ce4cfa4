"""Where a Python looks for packages, told from its folders: for one that cannot be asked any more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from faultlens.system.procfs import read_fields, read_text


def search_path(root: Path, version: str, variables: Mapping[str, str]) -> tuple[str, ...]:
    """What it finds by itself, first match first, the standard library left out; `root` is its `sys.prefix`."""
    settings = read_fields(root / "pyvenv.cfg", "=")
    folders = _packages_of(root, version)
    sees_system = settings.get("include-system-site-packages", "").lower() == "true"
    if "home" not in settings or sees_system:
        base = Path(settings["home"]).parent if sees_system else root
        folders = [*(folders if sees_system else ()), *_packages_of_user(version, variables)]
        folders += _packages_of(base, version)
    named = [entry for entry in variables.get("PYTHONPATH", "").split(":") if entry]
    return with_links(named, folders)


def with_links(path: Iterable[str], folders: Iterable[str]) -> tuple[str, ...]:
    """The folders of packages, and those that their .pth files name. Lines of code in these are left out."""
    given = dict.fromkeys(path)
    found = dict(given)
    for folder in folders:
        found[folder] = None
        for file in sorted(Path(folder).glob("[!.]*.pth")):
            lines = [line.rstrip() for line in (read_text(file) or "").lstrip("\ufeff").splitlines()]
            named = [line for line in lines if line and not line.startswith(("#", "import ", "import\t"))]
            found |= dict.fromkeys(str(Path(folder, line)) for line in named if "\0" not in line)
    return tuple(entry for entry in found if entry in given or Path(entry).exists())


def _packages_of(root: Path, version: str) -> list[str]:
    own = [f"{root}/{library}/python{version}/site-packages" for library in ("lib", "lib64")]
    if str(root) == "/usr":  # Debian's Python, which leaves site-packages to Pythons that are built by hand
        own = [f"/usr/local/lib/python{version}/dist-packages", "/usr/lib/python3/dist-packages", *own]
    return own


def _packages_of_user(version: str, variables: Mapping[str, str]) -> list[str]:
    base = variables.get("PYTHONUSERBASE") or (f"{variables['HOME']}/.local" if variables.get("HOME") else "")
    return [f"{base}/lib/python{version}/site-packages"] if base and not variables.get("PYTHONNOUSERSITE") else []
