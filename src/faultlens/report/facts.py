"""Everything that was recorded of a crash, as names and values: what the text and the page both show."""

from __future__ import annotations

from collections import Counter

from faultlens.diagnosis.evidence.addresses import mapping_at
from faultlens.diagnosis.evidence.held import moment
from faultlens.diagnosis.evidence.leaks import in_full
from faultlens.records.crash import CgroupState, CppException, Crash, Fault, FileState, Limit
from faultlens.text.quantities import count, duration
from faultlens.text.safe import one_line
from faultlens.text.sizes import in_words as size

Pairs = list[tuple[str, str]]

_BYTES_IN_CGROUP = frozenset({"memory_limit", "memory_used", "memory_peak"})
_COUNTED = frozenset({"RLIMIT_CPU", "RLIMIT_NPROC", "RLIMIT_NOFILE"})


def signal(fault: Fault) -> str:
    """ "SIGSEGV, SEGV_MAPERR, thread 4251, address 0x0, read, trap 14, error 0x4"."""
    parts = [fault.signal, fault.code, f"thread {fault.thread}"]
    if fault.address is not None:
        parts.append(f"address {fault.address!r}")
    if fault.access:
        parts.append(fault.access)
    if fault.trap is not None:
        parts.append(f"trap {fault.trap}")
    if fault.error is not None:
        parts.append(f"error {fault.error:#x}")
    if fault.sender_pid is not None:
        parts.append(f"sent by process {fault.sender_pid}, user {fault.sender_uid}")
    return ", ".join(parts)


def faulting_mapping(fault: Fault, crash: Crash) -> str | None:
    mapping = mapping_at(crash, fault.address) if fault.address is not None else None
    if mapping is None:
        return None
    return f"{mapping.start!r}-{mapping.end!r} {mapping.permissions} {mapping.path or 'anonymous'}"


def code(fault: Fault) -> Pairs:
    """The faulting instruction."""
    instruction = fault.instruction
    if instruction is None:
        return []
    facts = [("instruction", instruction.text), ("bytes", instruction.code)]
    place = repr(instruction.address) + (f" = {instruction.library}" if instruction.library else "")
    facts.append(("address", place + (f"+{instruction.offset!r}" if instruction.offset is not None else "")))
    if instruction.cpu_features:
        facts.append(("needs", ", ".join(instruction.cpu_features)))
    for operand in instruction.operands:
        access = f"{operand.expression}: {operand.access} of {count(operand.size, 'byte')}"
        at = f" at {operand.address!r}" if operand.address is not None else ""
        facts.append(("operand", access + at))
    return facts


def thrown(exception: CppException) -> tuple[str, str]:
    """What was thrown; and when, on which thread."""
    alone = exception.message in (None, exception.type)
    what = exception.type if alone else f"{exception.type}: {exception.message}"
    return what, f"{duration(exception.seconds_before)} before the end, thread {exception.thread}"


def mappings(crash: Crash) -> list[str]:
    """How many mappings there are, and what takes the room."""
    if not crash.mappings:
        return []
    total = sum(mapping.end - mapping.start for mapping in crash.mappings)
    files = {mapping.path for mapping in crash.mappings if mapping.path and mapping.path.startswith("/")}
    kinds: Counter[str] = Counter()
    for mapping in crash.mappings:
        kinds[_kind(mapping.path, mapping.permissions)] += mapping.end - mapping.start
    by_kind = ", ".join(f"{kind} {size(amount)}" for kind, amount in kinds.most_common())
    return [f"{count(len(crash.mappings), 'mapping')}, {size(total)}, {count(len(files), 'file')}", by_kind]


def _kind(path: str | None, permissions: str) -> str:
    if permissions.startswith("---"):
        return "reserved"
    if path is None or path.startswith("["):
        return "anonymous"
    return "code" if "x" in permissions else "files"


def file_state(file: FileState) -> str:
    facts: list[str] = [file.state] if file.state != "same" else []
    facts += [size(file.size)] if file.size is not None else []
    facts += [f"{size(file.disk_free)} free on its disk"] if file.disk_free is not None else []
    return ", ".join(facts) or "same"


def usage(crash: Crash) -> Pairs:
    memory = crash.memory
    facts = []
    for name in memory.__struct_fields__ if memory else ():
        value = getattr(memory, name)
        if value is not None:
            shown = f"{value:,}" if name in ("threads", "open_files") else size(value)
            facts.append((name.replace("_", " "), shown))
    return facts


def growth(crash: Crash) -> Pairs:
    """What grew steadily, and what held it."""
    facts = []
    for each in crash.growth:
        facts.append((str(each.what), in_full(each)))
        facts += [("", holder.text) for holder in each.holders]
    return facts


def held(crash: Crash) -> Pairs:
    """What held the memory when the program was last looked at."""
    if crash.held is None or not crash.held.holders:
        return []
    return [("", moment(crash.held, crash.seconds)), *((each.kind, each.text) for each in crash.held.holders)]


def limits(crash: Crash) -> Pairs:
    return [(name, _limit(name, limit)) for name, limit in crash.limits.items()]


def _limit(name: str, limit: Limit) -> str:
    soft, hard = (_amount(name, value) for value in (limit.soft, limit.hard))
    return soft if soft == hard else f"{soft} (may be raised to {hard})"


def _amount(name: str, value: int | None) -> str:
    if value is None:
        return "unlimited"
    return f"{value:,}" if name in _COUNTED else size(value)


def cgroup(before: CgroupState | None, after: CgroupState | None) -> Pairs:
    """Limits and counters of the control group, with what changed while the program ran."""
    state = after or before
    if state is None:
        return []
    facts = [("version", str(state.version)), ("path", state.path)]
    for name in state.__struct_fields__:
        if name in ("version", "path"):
            continue
        values = [getattr(each, name) for each in (before, after) if each]
        known = [value for value in values if value is not None]
        told = [size(value) if name in _BYTES_IN_CGROUP else f"{value:,}" for value in known]
        if told:
            facts.append((name.replace("_", " "), " → ".join(dict.fromkeys(told))))
    return facts


def machine(crash: Crash) -> Pairs:
    found = crash.machine
    if found is None:
        return []
    facts = [
        ("cpu", found.cpu_model or ""),
        ("cores", str(found.cpus or "")),
        ("memory", _of(found.memory_available, found.memory_total)),
        ("/dev/shm", _of(found.shm_free, found.shm_size)),
        ("kernel", found.kernel or ""),
        ("system", found.distribution or ""),
    ]
    return [(name, value) for name, value in facts if value]


def _of(free: int | None, total: int | None) -> str:
    if free is None or total is None:
        return ""
    return f"{size(free)} free of {size(total)}"


def program(crash: Crash) -> Pairs:
    python = crash.program.python
    facts = [
        ("command", " ".join(crash.program.command)),
        ("directory", crash.program.directory or ""),
        ("executable", crash.program.executable or ""),
        ("python", f"{python.version or '?'} at {python.executable or '?'}" if python else ""),
        ("process", str(crash.pid) if crash.pid is not None else ""),
        ("parent", str(crash.parent_pid) if crash.parent_pid is not None else ""),
        ("ran for", duration(crash.seconds) if crash.seconds is not None else ""),
        ("handed on", ", ".join(crash.handed_on)),
        ("exiting", "it had begun to shut down" if crash.exiting else ""),
    ]
    return [(name, value) for name, value in facts if value]


def packages(crash: Crash) -> list[str]:
    python = crash.program.python
    return sorted(one_line(f"{package.name} {package.version}", 80) for package in (python.packages if python else ()))


def environment(crash: Crash) -> Pairs:
    return sorted(crash.program.environment.items())
