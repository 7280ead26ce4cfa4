"""Writes where TensorFlow keeps its kernels, nodes and tensors in memory: python tools/tensorflow_layouts.py 2.22.0.

The numbers are the compiler's: tensorflow_layouts.cc is compiled with g++ against the headers inside the wheel and run;
nothing of TensorFlow itself is loaded. A release is downloaded; a wheel file, or a folder where TensorFlow is installed
(site-packages), will do as well. Releases with equal numbers share one table; those that are there already are kept."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

from faultlens.system import elf

TABLE = Path(__file__).parent.parent / "src" / "faultlens" / "inspection" / "tensorflow" / "layouts.json"
PROBE = Path(__file__).with_suffix(".cc")
PYTHON = "3.11"  # layouts do not depend on it, build ids do
LIBRARY = "tensorflow/libtensorflow_framework.so.2"
HEADERS = "tensorflow/include/"
# The language, the ABI and the defines are those of tf.sysconfig.get_compile_flags(). Symbols of TensorFlow are left
# undefined, because none of them is called.
FLAGS = (
    "-std=c++17 -D_GLIBCXX_USE_CXX11_ABI=1 -DEIGEN_MAX_ALIGN_BYTES=64 -DNDEBUG "
    "-fno-access-control -w -no-pie -Wl,--unresolved-symbols=ignore-all"
).split()


class Layout(NamedTuple):
    """What was found in one build of TensorFlow."""

    version: str
    build_id: str | None
    offsets: dict[str, int]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", nargs="+", help="a release (2.22.0), a wheel, or a folder with TensorFlow installed")
    for source in parser.parse_args().source:
        layout = find(source)
        table = json.loads(TABLE.read_text()) if TABLE.exists() else {"layouts": []}
        TABLE.write_text(json.dumps(add(table, layout), indent=1) + "\n")
        print(f"{layout.version}: {len(layout.offsets)} numbers, build id {layout.build_id}", flush=True)


def find(source: str) -> Layout:
    if Path(source).is_dir():
        return of_installed(Path(source))
    with tempfile.TemporaryDirectory() as folder:
        wheel = Path(source) if Path(source).is_file() else download(source, Path(folder))
        unpacked = Path(folder, "unpacked")
        with zipfile.ZipFile(wheel) as archive:
            wanted = [name for name in archive.namelist() if name.startswith((HEADERS, LIBRARY)) or "dist-info" in name]
            archive.extractall(unpacked, wanted)
        return of_installed(unpacked)


def download(version: str, folder: Path) -> Path:
    wanted = f"tensorflow-cpu=={version} --no-deps --only-binary :all: --python-version {PYTHON}".split()
    subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--dest", folder, *wanted], check=True)
    return next(folder.glob("*.whl"))


def of_installed(folder: Path) -> Layout:
    return Layout(version_of(folder), build_id(folder / LIBRARY), probe(folder / HEADERS))


def version_of(folder: Path) -> str:
    pattern = re.compile(r"tensorflow(?:_cpu)?-([^-]+)\.dist-info")
    return next(match[1] for path in folder.iterdir() if (match := pattern.fullmatch(path.name)))


def build_id(library: Path) -> str | None:
    with library.open("rb") as file:

        def read(offset: int, size: int) -> bytes:
            file.seek(offset)
            return file.read(size)

        return elf.build_id(read, elf.program_headers(read, elf.read_header(read)))


def probe(headers: Path) -> dict[str, int]:
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "probe")
        subprocess.run(["g++", *FLAGS, f"-I{headers}", PROBE, "-o", program], check=True)
        output = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    return {name: int(number) for name, number in map(str.split, output.splitlines())}


def add(table: dict[str, Any], new: Layout) -> dict[str, Any]:
    """The table with one more build, or with its new numbers if it was there."""
    layouts = []
    for layout in table["layouts"]:
        if layout["offsets"] == new.offsets:
            continue
        layout["versions"] = [version for version in layout["versions"] if version != new.version]
        layout["build_ids"] = [known for known in layout["build_ids"] if known != new.build_id]
        if layout["versions"]:
            layouts.append(layout)
    same = next((layout for layout in table["layouts"] if layout["offsets"] == new.offsets), None)
    versions = {new.version, *(same["versions"] if same else ())}
    build_ids = {*([new.build_id] if new.build_id else ()), *(same["build_ids"] if same else ())}
    layouts.append(
        {
            "versions": sorted(versions, key=version_key),
            "build_ids": sorted(build_ids),
            "offsets": new.offsets,
        }
    )
    return {"layouts": sorted(layouts, key=lambda layout: version_key(layout["versions"][0]))}


def version_key(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


if __name__ == "__main__":
    main()
