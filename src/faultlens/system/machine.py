"""What machine this is, and how much memory is left."""

from __future__ import annotations

import os
import platform

from faultlens.records.crash import MachineState
from faultlens.system.cpu import emulator_named
from faultlens.system.procfs import read_fields, read_text


def machine_state() -> MachineState:
    memory = read_fields("/proc/meminfo", ":")
    cpu = _cpu()
    shm = _space("/dev/shm")
    return MachineState(
        memory_total=kilobytes(memory.get("MemTotal")),
        memory_available=kilobytes(memory.get("MemAvailable")),
        shm_size=shm[0],
        shm_free=shm[1],
        cpus=os.cpu_count(),
        cpu_model=cpu.get("model name"),
        cpu_flags=tuple(sorted(cpu.get("flags", "").split())),
        kernel=platform.release(),
        distribution=read_fields("/etc/os-release", "=").get("PRETTY_NAME", "").strip('"') or None,
    )


def own_emulator() -> str | None:
    """What stands in for the CPU where we run ourselves: /proc/cpuinfo then tells of another CPU."""
    try:  # qemu-user answers for /proc/self/exe with the program, but lets this one through
        return emulator_named(os.readlink("/proc/thread-self/exe"))
    except OSError:
        return None


def kilobytes(text: str | None) -> int | None:
    """ "1234 kB" -> bytes."""
    number = (text or "").removesuffix("kB").strip()
    return int(number) * 1024 if number.isdigit() else None


def _cpu() -> dict[str, str]:
    first = (read_text("/proc/cpuinfo") or "").split("\n\n", 1)[0]
    return {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in first.splitlines())}


def _space(path: str) -> tuple[int | None, int | None]:
    try:
        state = os.statvfs(path)
    except OSError:
        return None, None
    return state.f_blocks * state.f_frsize, state.f_bavail * state.f_frsize
