"""Everything that was recorded of a crash, as text: the part of the report behind -v."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rich.text import Text

from faultlens.crash import CgroupState, Crash, Fault, Limit
from faultlens.report.page import PATH_LIMIT, QUIET, Section, fixed, pairs, unbroken, words
from faultlens.report.quantities import count, duration, size
from faultlens.safe_text import last_lines, one_line
from faultlens.report.sparkline import sparkline
from faultlens.report.threads import whole_stack
from faultlens.report.words import fault_in_words, mapping_at

_REGISTER_WIDTH = 27
_OUTPUT_LINES = 40
_BYTES_IN_CGROUP = frozenset({"memory_limit", "memory_used", "memory_peak"})
_COUNTED = frozenset({"RLIMIT_CPU", "RLIMIT_NPROC", "RLIMIT_NOFILE"})


def sections(crash: Crash, width: int) -> Iterator[Section]:
    if crash.fault:
        yield Section("signal", _signal(crash.fault, crash))
        yield Section("code", _code(crash.fault, width), spaced=False)
        yield Section("register", _registers(crash.fault, width))
    for fault in crash.also_faulted:
        yield Section("also", [words(f"thread {fault.thread}: {fault_in_words(fault, crash)}")])
    for index, thread in enumerate(crash.threads):
        yield Section("threads" if index == 0 else "", whole_stack(thread, crash))
    yield Section("maps", _mappings(crash))
    yield Section("files", _files(crash))
    yield Section("library", _libraries(crash))
    yield Section("usage", _usage(crash, width))
    yield Section("time", _timeline(crash, width))
    yield Section("limits", pairs([(name, _limit(name, crash.limits[name])) for name in crash.limits], width))
    yield Section("cgroup", _cgroup(crash.cgroup_before, crash.cgroup, width))
    yield Section("machine", _machine(crash, width))
    yield Section("program", _program(crash, width))
    yield Section("packages", _packages(crash))
    yield Section("env", pairs(sorted(crash.program.environment.items()), width))
    yield Section("kernel", [words(line) for line in crash.kernel_log])
    yield Section("stdout", _tail(crash.output.stdout))
    yield Section("stderr", _tail(crash.output.stderr))


def _signal(fault: Fault, crash: Crash) -> list[Text]:
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
    rows = [words(", ".join(parts)), words(f"seen: {fault.seen}, captured by: {crash.method}", QUIET)]
    mapping = mapping_at(fault.address, crash) if fault.address is not None else None
    if mapping:
        where = f"{mapping.start!r}-{mapping.end!r} {mapping.permissions} {mapping.path or 'anonymous'}"
        rows.append(words(f"address lies in {where}"))
    return rows


def _code(fault: Fault, width: int) -> list[Text]:
    code = fault.instruction
    if code is None:
        return []
    facts = [("instruction", code.text), ("bytes", code.code)]
    place = repr(code.address) + (f" = {code.library}" if code.library else "")
    facts.append(("address", place + (f"+{code.offset!r}" if code.offset is not None else "")))
    if code.cpu_features:
        facts.append(("needs", ", ".join(code.cpu_features)))
    for operand in code.operands:
        access = f"{operand.expression}: {operand.access} of {count(operand.size, 'byte')}"
        at = f" at {operand.address!r}" if operand.address is not None else ""
        facts.append(("operand", access + at))
    return pairs(facts, width)


def _registers(fault: Fault, width: int) -> list[Text]:
    cells = [f"{name:<7}{value:#018x}" for name, value in fault.registers.items()]
    per_row = max(width // _REGISTER_WIDTH, 1)
    rows = (cells[start : start + per_row] for start in range(0, len(cells), per_row))
    return [unbroken(words("  ".join(row))) for row in rows]


def _mappings(crash: Crash) -> list[Text]:
    if not crash.mappings:
        return []
    total = sum(mapping.end - mapping.start for mapping in crash.mappings)
    files = {mapping.path for mapping in crash.mappings if mapping.path and mapping.path.startswith("/")}
    kinds: Counter[str] = Counter()
    for mapping in crash.mappings:
        kinds[_kind(mapping.path, mapping.permissions)] += mapping.end - mapping.start
    by_kind = ", ".join(f"{kind} {size(amount)}" for kind, amount in kinds.most_common())
    return [
        words(f"{count(len(crash.mappings), 'mapping')}, {size(total)}, {count(len(files), 'file')}"),
        words(by_kind, QUIET),
    ]


def _kind(path: str | None, permissions: str) -> str:
    if permissions.startswith("---"):
        return "reserved"
    if path is None or path.startswith("["):
        return "anonymous"
    return "code" if "x" in permissions else "files"


def _files(crash: Crash) -> list[Text]:
    rows = []
    for file in crash.files:
        facts: list[str] = [file.state] if file.state != "same" else []
        facts += [size(file.size)] if file.size is not None else []
        facts += [f"{size(file.disk_free)} free on its disk"] if file.disk_free is not None else []
        rows.append(words(f"{file.path}: {', '.join(facts) or 'same'}"))
    return rows


def _libraries(crash: Crash) -> list[Text]:
    return [
        unbroken(words(library.path, limit=PATH_LIMIT), words(f"  {library.build_id or ''}", QUIET))
        for library in crash.libraries
    ]


def _usage(crash: Crash, width: int) -> list[Text]:
    memory = crash.memory
    if memory is None:
        return []
    facts = []
    for name in memory.__struct_fields__:
        value = getattr(memory, name)
        if value is not None:
            shown = f"{value:,}" if name in ("threads", "open_files") else size(value)
            facts.append((name.replace("_", " "), shown))
    return pairs(facts, width)


def _timeline(crash: Crash, width: int) -> list[Text]:
    samples = [sample for sample in crash.timeline if sample.rss_anonymous is not None]
    if len(samples) < 2:
        return []
    values = [sample.rss_anonymous or 0 for sample in samples]
    span = duration(samples[-1].seconds - samples[0].seconds)
    course = f"from {size(values[0])} to {size(values[-1])}, at most {size(max(values))}"
    return [fixed(words(sparkline(values, width))), words(f"anonymous memory over {span}: {course}", QUIET)]


def _limit(name: str, limit: Limit) -> str:
    soft, hard = (_amount(name, value) for value in (limit.soft, limit.hard))
    return soft if soft == hard else f"{soft} (may be raised to {hard})"


def _amount(name: str, value: int | None) -> str:
    if value is None:
        return "unlimited"
    return f"{value:,}" if name in _COUNTED else size(value)


def _cgroup(before: CgroupState | None, after: CgroupState | None, width: int) -> list[Text]:
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
    return pairs(facts, width)


def _machine(crash: Crash, width: int) -> list[Text]:
    machine = crash.machine
    if machine is None:
        return []
    facts = [
        ("cpu", machine.cpu_model or ""),
        ("cores", str(machine.cpus or "")),
        ("memory", _of(machine.memory_available, machine.memory_total)),
        ("/dev/shm", _of(machine.shm_free, machine.shm_size)),
        ("kernel", machine.kernel or ""),
        ("system", machine.distribution or ""),
    ]
    return pairs([(name, value) for name, value in facts if value], width)


def _of(free: int | None, total: int | None) -> str:
    if free is None or total is None:
        return ""
    return f"{size(free)} free of {size(total)}"


def _program(crash: Crash, width: int) -> list[Text]:
    program = crash.program
    python = program.python
    facts = [
        ("command", " ".join(program.command)),
        ("directory", program.directory or ""),
        ("executable", program.executable or ""),
        ("python", f"{python.version or '?'} at {python.executable or '?'}" if python else ""),
        ("process", str(crash.pid) if crash.pid is not None else ""),
        ("parent", str(crash.parent_pid) if crash.parent_pid is not None else ""),
        ("ran for", duration(crash.seconds) if crash.seconds is not None else ""),
        ("handed on", ", ".join(crash.handed_on)),
        ("exiting", "it had begun to shut down" if crash.exiting else ""),
    ]
    return pairs([(name, value) for name, value in facts if value], width)


def _packages(crash: Crash) -> list[Text]:
    python = crash.program.python
    if python is None or not python.packages:
        return []
    names = sorted(f"{package.name} {package.version}" for package in python.packages)
    return [words(", ".join(one_line(name, 80) for name in names), limit=20_000)]


def _tail(text: str | None) -> list[Text]:
    return [words(line) for line in last_lines(text or "", _OUTPUT_LINES)]
