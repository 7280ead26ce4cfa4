"""Records what the search for ops in flight reads of a dying program.

    python tools/record_kernels.py NAME 2.21 -- python train.py

The tests search the recorded memory again. Only the bytes that were read are kept, of stacks only what may be a pointer
or a return address, and made-up paths stand in the place of those of this machine."""

from __future__ import annotations

import argparse
import gzip
import re
import struct
import sys
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from faultlens import cli
from faultlens.inspection import inspect
from faultlens.inspection.memory import Memory
from faultlens.inspection.tensorflow import kernels
from faultlens.inspection.tensorflow.pages import PAGE, Pages
from faultlens.records import crash
from faultlens.records.crash import CppException, Fault, Frame, Thread

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))
from kernel_images import FOLDER, Image, encode

SECONDS = 20.0
LONGEST_FUNCTION = 300
STACK_WORD = struct.Struct("<Q")
MADE_UP = (
    (r"/[\w./-]*?/lib/(python[\d.]+/site-packages/)", r"/home/ada/venv/lib/\1"),
    (r"/[\w./-]*?/\.pyenv/versions/[\d.]+/", "/usr/local/"),
    (r"/(?:home|root|tmp|work|opt)/[\w./-]*/([\w.-]+)", r"/home/ada/project/\1"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("release", help="of the program's TensorFlow: 2.21")
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()

    def recording(*given: Any, **options: Any) -> kernels.Scan:
        scan, image = record(arguments.release, *given, **options)
        FOLDER.mkdir(exist_ok=True)
        path = FOLDER / f"{arguments.name}.json.gz"
        path.write_bytes(gzip.compress(encode(image), 9, mtime=0))
        return scan

    inspect.kernels_or_gap = recording
    cli.main(["run", "--no-save", "--quiet", "--", *arguments.command])


class RecordingMemory:
    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self.read_bytes: dict[int, bytes] = {}  # address -> bytes, as they were asked for

    def read(self, address: int, size: int) -> bytes:
        data = self._memory.read(address, size)
        if size != PAGE or address % PAGE:  # pages are noted by what is used of them
            self.read_bytes[address] = max(data, self.read_bytes.get(address, b""), key=len)
        return data


def record(
    release: str,
    memory: Memory,
    mappings: Sequence[crash.Mapping],
    threads: Sequence[Thread],
    registers: Mapping[int, Mapping[str, int]],
    fault: Fault | None,
    exceptions: Sequence[CppException],
    contents: bool,
) -> tuple[kernels.Scan, Image]:
    noted = RecordingMemory(memory)
    asked: dict[int, crash.Mapping] = {}
    words: set[int] = set()  # where a pointer was looked for

    class RecordingPages(Pages):
        def mapping(self, address: int) -> crash.Mapping | None:
            found = super().mapping(address)
            if found:
                asked[found.start] = found
            return found

        def mapping_near(self, address: int, reach: int) -> crash.Mapping | None:
            found = super().mapping_near(address, reach)
            return self.mapping(found.start) if found else None

        def word(self, address: int) -> int:
            words.add(address)
            return super().word(address)

        def read(self, address: int, size: int) -> bytes:
            data = super().read(address, size)
            noted.read_bytes[address] = max(data, noted.read_bytes.get(address, b""), key=len)
            return data

    kernels.Pages = RecordingPages
    scan = kernels.kernels_in_flight(noted, mappings, threads, registers, fault, exceptions, contents, SECONDS)
    stacks = [int(thread.stack_pointer) for thread in threads if thread.stack_pointer]
    memory_parts = _without_texts(noted.read_bytes, words, stacks, mappings)
    used = [
        replace(mapping, path=_made_up(mapping.path))
        for mapping in mappings
        if mapping.start in asked or any(mapping.start <= start < mapping.end for start, _ in memory_parts)
    ]
    return scan, Image(
        release=release,
        mappings=tuple(used),
        threads=tuple(_shortened(threads)),
        registers={
            thread: {name: int(value) for name, value in all_of.items()} for thread, all_of in registers.items()
        },
        fault=replace(fault, instruction=None) if fault else None,
        exceptions=tuple(replace(each, frames=tuple(map(_short_frame, each.frames))) for each in exceptions[:1]),
        memory={hex(start): data for start, data in memory_parts},
        kernels=scan.kernels,
    )


def _without_texts(
    read: Mapping[int, bytes], words: Container[int], stacks: Iterable[int], mappings: Sequence[crash.Mapping]
) -> list[tuple[int, bytes]]:
    """Memory holds fragments of texts and secrets: of stacks only what can be an address stays."""
    homes = [mapping for mapping in mappings if any(mapping.start <= each < mapping.end for each in stacks)]
    parts = []
    for start, data in sorted(read.items()):
        if len(data) > PAGE and any(home.start <= start < home.end for home in homes):
            all_words = (word for (word,) in STACK_WORD.iter_unpack(data[: len(data) & -8]))
            data = b"".join(STACK_WORD.pack(word if _is_mapped(word, mappings) else 0) for word in all_words)
        elif start in words and _is_fragment(data) and not _is_mapped(int.from_bytes(data, "little"), mappings):
            continue
        if data:
            parts.append((start, data))
    return parts


def _is_fragment(data: bytes) -> bool:
    """A word that was no pointer after all, but a piece of a path or of a variable of the environment."""
    letters = sum(0x20 <= byte < 0x7F for byte in data)
    return len(data) == STACK_WORD.size and letters >= len(data) - 3 and any(byte in b"/=" for byte in data)


def _is_mapped(word: int, mappings: Sequence[crash.Mapping]) -> bool:
    return any(mapping.start <= word < mapping.end for mapping in mappings)


def _shortened(threads: Sequence[Thread]) -> Iterator[Thread]:
    for thread in threads:
        frames = tuple(_short_frame(frame) for frame in thread.frames if frame.kind == "native")
        python = [Frame(kind="python", function="main")] if len(frames) < len(thread.frames) else []
        yield replace(thread, frames=(*frames, *python))


def _short_frame(frame: Frame) -> Frame:
    return replace(frame, function=frame.function[:LONGEST_FUNCTION], library=_made_up(frame.library), file=None)


def _made_up(path: str | None) -> str | None:
    for pattern, plain in MADE_UP if path else ():
        if re.match(pattern, path or ""):
            return re.sub(pattern, plain, path or "")
    return path


if __name__ == "__main__":
    main()
