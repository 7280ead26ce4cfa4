"""What rules look for in the lines of the user's sources. A report keeps only such lines, and those near its frames."""

from __future__ import annotations

import re
from enum import Enum


class Wording(Enum):
    PINS_MEMORY = r"pin_memory|pinned|[Hh]ostAlloc|cudaMallocHost|alloc_pinned|PinnedMemory"
    TAKES_GPU_ADDRESS = (
        r"\bdata_ptr\(|\.data\.ptr\b|__cuda_array_interface__|unsafe_buffer_pointer|\.gpudata\b|device_pointer"
    )
    SENDS_ITSELF = (
        r"os\.kill\(\s*(?:os\.)?getpid\(\)|os\.killpg\(\s*(?:0|os\.getpg)|raise_signal\(|pthread_kill\(|os\.abort\("
        r"|faulthandler\._sig|\.raise_?\(\s*(?:signal\.)?SIG"
    )
    SETS_ALARM = r"signal\.alarm\(|setitimer\("
    SETS_TIMER = r"setitimer\("
    SETS_STACK_SIZE = r"threading\.stack_size\(\s*[^)\s]|\bstack_size\(\s*\d|pthread_attr_setstack"
    SETS_RECURSION_LIMIT = r"setrecursionlimit\("
    SETS_ADDRESS_SPACE = r"\bRLIMIT_AS\b"
    LOADS_NATIVE = r"\bload_op_library\(|\bctypes\b|\bCDLL\(|\bcffi\b|\bdlopen\("
    OPENS_TO_ALL = r"\bRTLD_GLOBAL\b"
    SETS_LIMIT = r"\bsetrlimit\("
    SETS_OPEN_FILES = r"RLIMIT_NOFILE"
    SAVES_MODEL = r"\.save\(|save_weights|ModelCheckpoint"
    FREES = r"free\b|\bfree_"
    FOREIGN_MEMORY = (
        r"\b(?:from_dlpack|frombuffer|ctypes|cffi|mmap|memmap|mmap_mode|as_strided|SharedMemory|from_buffer)\b"
    )
    MAPS = r"\bmmap\.mmap\(|\bmemmap\(|mmap_mode\s*=|SharedMemory\(|ShareableList\(|open_memmap\("
    SHARES_MEMORY = r"SharedMemory\("  # closes itself when it is collected
    CLOSES = r"_mmap\.close\(|\.close\(\)|\.__exit__\(|\bmunmap\b|\bunlink\(\)|\bdel\s"
    CLOSES_ON_PURPOSE = r"_mmap\.close\(|SharedMemory\("


ANY = re.compile("|".join(f"(?:{wording.value})" for wording in Wording))
