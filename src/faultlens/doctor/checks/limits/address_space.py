from __future__ import annotations

from collections.abc import Iterator, Mapping

from faultlens.doctor.check import Check, fix
from faultlens.doctor.checks.limits.threads import DEFAULT_STACK, expected_threads, minor_version
from faultlens.doctor.raising import raise_rlimit
from faultlens.knowledge import needs
from faultlens.knowledge.needs import Need, Threads, Version
from faultlens.records.crash import Limit
from faultlens.records.finding import Examination, Finding
from faultlens.system.allowance import Allowance
from faultlens.target_env.target import TargetEnvironment
from faultlens.text.sizes import KIB, in_words


class AddressSpace(Check):
    """
    `ulimit -v` (RLIMIT_AS), `ulimit -d` (RLIMIT_DATA) and a kernel that promises no more memory than there is
    (`vm.overcommit_memory` 2). They count what is mapped, not what is used, and TensorFlow maps much: its libraries,
    a stack for each thread, a buffer of OpenBLAS for each of its threads. So the need grows with the number of CPUs.

    Measured with RLIMIT_AS on 2 CPUs: the import ends with an ImportError or MemoryError with 963 MiB and works with
    986; training aborts ("pthread_create() failed") with 1.92 GiB and works with 1.94. As if on 64 CPUs: 3.4 and
    6.9 GiB.
    """

    name = "address-space"
    looks_at = "ulimit -v, ulimit -d and overcommit, against what TensorFlow maps"
    position = 72
    causes = ("address-space-limit",)

    def examine(self, target: TargetEnvironment) -> Examination:
        return self.judge(target.limits, target.allowance, expected_threads(target), minor_version(target))

    def judge(
        self, limits: Mapping[str, Limit], allowance: Allowance, threads: Threads, version: Version | None
    ) -> Examination:
        stack = limits.get("RLIMIT_STACK")
        per_thread = DEFAULT_STACK if stack is None or stack.soft is None else stack.soft
        mapped, written = (measure(threads, per_thread, version) for measure in (needs.address_space, needs.data))
        findings = [
            *self._rlimit(limits.get("RLIMIT_AS"), "RLIMIT_AS", "v", mapped, allowance.cpus),
            *self._rlimit(limits.get("RLIMIT_DATA"), "RLIMIT_DATA", "d", written, allowance.cpus),
            *self._commit(allowance, written),
        ]
        return self.judged(findings, _summary(limits, allowance, mapped), _details(limits, allowance, mapped))

    def _rlimit(self, limit: Limit | None, name: str, letter: str, need: Need, cpus: int) -> Iterator[Finding]:
        if limit is None or limit.soft is None or limit.soft >= need.training:
            return
        evidence = [
            (f"{name} is {in_words(limit.soft)}", "getrlimit"),
            (f"TensorFlow starts its threads for {cpus} CPUs", "sched_getaffinity"),
        ]
        option = name.removeprefix("RLIMIT_").lower()
        fixes = [raise_rlimit(limit, letter, option, None, KIB), _FEWER_CPUS]
        has = f"{name} (ulimit -{letter}) is {in_words(limit.soft)}"
        if limit.soft < need.importing:
            yield self.error(f"{has}: importing TensorFlow needs {in_words(need.importing)}", evidence, fixes[:1])
        else:
            yield self.warning(f"{has}: training a model needs {in_words(need.training)}", evidence, fixes)

    def _commit(self, allowance: Allowance, need: Need) -> Iterator[Finding]:
        room = allowance.commit
        if room is None or room.left >= need.importing:
            return
        yield self.warning(  # what it counts was not measured, only what RLIMIT_DATA counts
            f"the kernel promises only {in_words(max(room.left, 0))} more memory (vm.overcommit_memory 2): "
            f"importing TensorFlow needs about {in_words(need.importing)}",
            [(f"{in_words(room.used)} of {in_words(room.limit)} are promised", room.where)],
            [fix("let the kernel promise more than there is", "sudo sysctl vm.overcommit_memory=0", safe=False)],
        )


_FEWER_CPUS = fix(
    "let TensorFlow see fewer CPUs", "taskset -c 0 python …", "its pools have a thread for each CPU that it may use"
)


def _summary(limits: Mapping[str, Limit], allowance: Allowance, need: Need) -> str:
    limit = limits.get("RLIMIT_AS")
    if limit is None or limit.soft is None:
        return f"not limited; training maps about {in_words(need.training)} with {allowance.cpus} CPUs"
    return f"limited to {in_words(limit.soft)}; training maps about {in_words(need.training)}"


def _details(limits: Mapping[str, Limit], allowance: Allowance, need: Need) -> Iterator[str]:
    for name in ("RLIMIT_AS", "RLIMIT_DATA"):
        if (limit := limits.get(name)) is not None:
            yield f"{name}: {'unlimited' if limit.soft is None else in_words(limit.soft)}"
    yield f"TensorFlow maps {in_words(need.importing)} or more when imported, {in_words(need.training)} in training"
    if allowance.commit is not None:
        room = allowance.commit
        yield f"vm.overcommit_memory 2: {in_words(room.used)} of {in_words(room.limit)} are promised"
    if allowance.max_map_count is not None:
        seen = needs.MAPS.training
        yield f"vm.max_map_count is {allowance.max_map_count}; a small training was seen to have {seen} mappings"
