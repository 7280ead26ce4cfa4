from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from faultlens.doctor.check import Check, fix
from faultlens.records.diagnosis import Fix
from faultlens.records.finding import Examination, Finding
from faultlens.system.gpus import Gpus
from faultlens.system.nvidia_smi import Gpu
from faultlens.target_env.cuda_libraries import driver_library, numbers, version_of
from faultlens.target_env.target import TargetEnvironment
from faultlens.target_env.tensorflow_build import read_build

# Errors of the hardware, in the words of NVIDIA's catalogue of Xids; all others are made by programs, or unclear.
HARDWARE_XIDS = {
    48: "an uncorrectable memory error", 62: "its microcontroller halted", 64: "memory that could not be remapped",
    74: "an error of NVLink", 79: "it has fallen off the bus", 92: "many corrected memory errors",
    94: "a contained memory error", 95: "an uncontained memory error", 119: "its system processor did not answer",
    120: "an error of its system processor", 140: "an unrecovered memory error",
}  # fmt: skip
RESET = fix("stop what uses the GPU and reset it", "sudo nvidia-smi --gpu-reset", "or restart the machine", safe=False)
REPLACE = fix("let the GPU be looked at", "nvidia-smi -q -d ECC,ROW_REMAPPER,PAGE_RETIREMENT", safe=False)


class GpusCheck(Check):
    """
    The NVIDIA GPUs of the machine: whether the driver's library (libcuda.so.1, as the loader would find it) has the
    version of the kernel module, whether this user may open /dev/nvidia*, and what nvidia-smi and the kernel log
    (Xid lines) tell of the cards' health.

    Measured on an H200 with driver 580.159.04: a libcuda 580.95.05 from the toolkit's `compat` folder, named in
    LD_LIBRARY_PATH, makes cuInit fail with error 803; the toolkit's stub taken for libcuda.so.1 with error 34; a
    /dev/nvidia0 or /dev/nvidiactl that may not be opened with error 100 (no device), /dev/nvidia-uvm with 999.
    A library from `compat` that is newer than the kernel module is what that folder is for, and no finding.

    Errors of the hardware (uncorrected ECC errors, memory that waits for a reset, Xids like 48, 79, 94, 95) are
    warnings. Xids that programs cause (13, 31, 43, 45), several models, and MIG are details: TensorFlow works with
    them. A TensorFlow without CUDA does not use the GPUs, so all of this is then a detail.
    """

    name = "gpus"
    looks_at = "the GPUs and their driver: versions, permissions, memory errors, Xids in the kernel log, MIG"
    position = 62
    causes = ("gpu-driver-mismatch",)

    def examine(self, target: TargetEnvironment) -> Examination:
        gpus = target.gpus
        build = read_build(target.tensorflow) if target.tensorflow else None
        library = driver_library(target) if gpus.kernel_module else None
        return self.judge(gpus, library, used=build is None or build.cuda is not None)

    def judge(self, gpus: Gpus, library: str | None, used: bool = True) -> Examination:
        if gpus.kernel_module is None:
            return self.fine(_without_nvidia(gpus))
        if not gpus.driven:  # a container that was given none of the machine's GPUs
            return self.fine(_summary(gpus))
        findings = [*self._library(gpus, library), *self._access(gpus)] or [*self._smi(gpus)]  # which suffers from both
        findings += self._xids(gpus)
        for gpu in gpus.survey.gpus if gpus.survey else ():
            findings += self._health(gpu)
        details = [*_details(gpus, library)]
        if not used:
            details = [*(finding.title for finding in findings), *details]
            return self.fine(f"{_summary(gpus)}; this TensorFlow does not use them", details)
        return self.judged(findings, _summary(gpus), details)

    def _library(self, gpus: Gpus, library: str | None) -> Iterable[Finding]:
        module = gpus.kernel_module
        if library is None or module is None:
            return
        there = [(f"kernel module {module}", "/proc/driver/nvidia/version"), (library, "libcuda.so.1 of the loader")]
        without = fix(
            "take the folder out of LD_LIBRARY_PATH", "unset LD_LIBRARY_PATH", "unless it names others you need"
        )
        version = version_of(library)
        if version is None:
            if "/stubs/" in library:
                yield self.error(f"libcuda.so.1 is the stub for linking, not the driver's: {library}", there, [without])
        elif numbers(version) != numbers(module) and not _forward_compatible(library, version, module):
            restart = fix("restart the machine, so that the kernel takes the new module", "sudo reboot", safe=False)
            yield self.error(
                f"the GPU driver's library is {version}, its kernel module {module}: CUDA refuses to start",
                there,
                [without, restart] if _is_compat(library) else [restart, without],
            )

    def _access(self, gpus: Gpus) -> Iterable[Finding]:
        for device in gpus.devices:
            if not device.accessible:
                yield self.error(
                    f"this user may not open {device.path}: CUDA finds no GPU",
                    [("not readable and writable", f"access(2) of {device.path}")],
                    [
                        fix(
                            "open it to users",
                            f"sudo chmod a+rw {device.path}",
                            "or join the group that owns it",
                            safe=False,
                        )
                    ],
                    causes=(),
                )

    def _smi(self, gpus: Gpus) -> Iterable[Finding]:
        if gpus.survey and gpus.survey.problem and gpus.cards:
            mismatch = "version mismatch" in gpus.survey.problem
            yield (self.error if mismatch else self.warning)(
                f"the GPU driver does not answer as it should: {gpus.survey.problem}",
                [(gpus.survey.problem, "nvidia-smi")],
                [
                    fix(
                        "see what the driver wrote to the kernel log",
                        "sudo dmesg | grep -i nvrm",
                        "then restart the machine",
                    )
                ],
                causes=self.causes if mismatch else (),
            )

    def _xids(self, gpus: Gpus) -> Iterable[Finding]:
        for number, count in sorted(Counter(xid.number for xid in gpus.xids or ()).items()):
            if number in HARDWARE_XIDS:
                last = [xid for xid in gpus.xids or () if xid.number == number][-1]
                times = f", {count} times" if count > 1 else ""
                yield self.warning(
                    f"GPU {last.bus}: {HARDWARE_XIDS[number]} (Xid {number}{times} since the machine was started)",
                    [(last.line, "kernel log")],
                    [RESET, REPLACE],
                    causes=(),
                )

    def _health(self, gpu: Gpu) -> Iterable[Finding]:
        troubles: list[tuple[bool, str, Fix]] = [
            (gpu.remap_failed, "damaged memory that could not be taken out of use", REPLACE),
            (gpu.remap_pending, "damaged memory is taken out of use only after a reset", RESET),
            (gpu.uncorrected > 0, f"{gpu.uncorrected} uncorrected ECC error(s) since the driver was loaded", RESET),
            (gpu.recovery is not None, f"the driver asks for recovery: {gpu.recovery}", RESET),
        ]
        for present, what, remedy in troubles:
            if present:
                yield self.warning(f"{gpu.name} ({gpu.bus}): {what}", [(what, "nvidia-smi -q")], [remedy], causes=())
        if gpu.compute_mode == "Prohibited":
            yield self.error(
                f"{gpu.name} ({gpu.bus}) is closed to programs: its compute mode is Prohibited",
                [("compute_mode Prohibited", "nvidia-smi -q")],
                [fix("open it", "sudo nvidia-smi --compute-mode=DEFAULT", safe=False)],
                causes=(),
            )
        if gpu.mig and not gpu.mig_devices:
            yield self.warning(
                f"{gpu.name} ({gpu.bus}) is in MIG mode and has no instances: CUDA does not see it",
                [("MIG enabled, no MIG devices", "nvidia-smi -q")],
                [
                    fix("make an instance of the whole GPU", "sudo nvidia-smi mig -cgi 0 -C", safe=False),
                    fix("or end MIG mode", "sudo nvidia-smi -mig 0", safe=False),
                ],
                causes=(),
            )


def _forward_compatible(library: str, version: str, module: str) -> bool:
    return _is_compat(library) and numbers(version) > numbers(module)


def _is_compat(library: str) -> bool:
    return "/compat/" in library


def _without_nvidia(gpus: Gpus) -> str:
    if gpus.nvidia:
        bound = gpus.nvidia[0].driver
        reason = f"driven by {bound}, not by NVIDIA's driver" if bound else "no driver is loaded for it"
        return f"an NVIDIA GPU at {gpus.nvidia[0].bus}: {reason}"
    if gpus.amd:
        return f"{len(gpus.amd)} AMD GPU(s), driver {gpus.amd[0].driver or 'not loaded'}"
    return "the GPU of WSL is not looked at" if gpus.wsl else "no GPU here"


def _summary(gpus: Gpus) -> str:
    surveyed = gpus.survey.gpus if gpus.survey else ()
    models = Counter(gpu.name for gpu in surveyed)
    names = ", ".join(f"{count} x {name}" if count > 1 else name for name, count in models.items())
    if not names:
        names = f"{len(gpus.cards)} NVIDIA GPU(s)" if gpus.cards else "no GPU is given to this place"
    return f"{names}, driver {gpus.kernel_module}"


def _details(gpus: Gpus, library: str | None) -> Iterable[str]:
    if library:
        yield f"libcuda.so.1: {library}"
    version = version_of(library or "")
    if library and version and gpus.kernel_module and _forward_compatible(library, version, gpus.kernel_module):
        yield "CUDA's forward compatibility: a newer library over an older kernel module, for data-centre GPUs only"
    surveyed = gpus.survey.gpus if gpus.survey else ()
    if len({gpu.name for gpu in surveyed}) > 1:
        yield "GPUs of several models: fine, but the slowest sets the pace of a MirroredStrategy"
    for gpu in surveyed:
        if gpu.mig and gpu.mig_devices:
            yield f"{gpu.name}: {gpu.mig_devices} MIG instance(s); a program uses one, named in CUDA_VISIBLE_DEVICES"
        if gpu.uncorrected_ever and not gpu.uncorrected:
            yield f"{gpu.name}: {gpu.uncorrected_ever} uncorrected ECC error(s) in its life, none since the last start"
    if gpus.xids is None:
        yield "the kernel log may not be read: Xids are not seen"
    for number, count in sorted(Counter(xid.number for xid in gpus.xids or ()).items()):
        if number not in HARDWARE_XIDS:
            yield f"Xid {number} in the kernel log, {count} time(s): mostly an error of a program"
