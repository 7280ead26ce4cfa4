"""The most anonymous memory that this process has had, exactly: the kernel keeps the highest resident size for us."""

from __future__ import annotations

RESET_PEAK = "5"  # see proc(5), clear_refs


def fields() -> dict[str, int]:
    """Bytes, by the names of /proc/self/status."""
    with open("/proc/self/status") as file:
        rows = [line.partition(":") for line in file]
    return {name: int(value.split()[0]) * 1024 for name, _, value in rows if name.startswith(("Rss", "Vm"))}


def now() -> int:
    found = fields()
    return found["RssAnon"] + found["RssShmem"]


def peak() -> int:
    """Since the last `reset`. Files that are mapped count for the kernel, and hardly change: they are taken away."""
    found = fields()
    return found["VmHWM"] - found["RssFile"]


def reset() -> bool:
    """False where the kernel cannot: then the peak is that of all that was before, too."""
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write(RESET_PEAK)
        return True
    except OSError:
        return False
