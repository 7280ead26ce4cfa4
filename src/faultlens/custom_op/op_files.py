"""Whether a file can be a library of ops at all: told from its head, nothing is loaded."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from faultlens.custom_op.building import SOURCES
from faultlens.errors import FaultlensError
from faultlens.system import elf

_MAGIC = b"\x7fELF"
_EXECUTABLE = 2  # ET_EXEC
_INTERPRETER = 3  # PT_INTERP: what is started, not loaded, names its loader


def refuse_other_files(path: Path) -> None:
    """Raises FaultlensError for what is no library. A damaged one is: loading it says what is wrong with it."""
    try:
        with path.open("rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                raise FaultlensError(
                    f"{path} is neither C++ nor a library.",
                    f"Sources end in {', '.join(SOURCES)}; a library is an ELF file.",
                )
            is_program = _is_executable(file)
    except OSError as error:
        raise FaultlensError(f"Cannot read {path}: {error.strerror}.", "Name another file.") from error
    if is_program:
        raise FaultlensError(
            f"{path} is an executable, not a library of ops.", "Name the .so file that tf.load_op_library is given."
        )


def _is_executable(file: BinaryIO) -> bool:
    def read(offset: int, size: int) -> bytes:
        file.seek(offset)
        return file.read(size)

    try:
        header = elf.read_header(read)
        headers = elf.program_headers(read, header)
    except elf.ElfError:
        return False
    return header.type == _EXECUTABLE or any(each.type == _INTERPRETER for each in headers)
