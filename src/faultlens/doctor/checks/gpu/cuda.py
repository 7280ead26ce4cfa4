from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path

from faultlens.doctor.check import Check, fix
from faultlens.records.crash import Record
from faultlens.records.finding import Examination, Finding
from faultlens.system.gpus import Gpus
from faultlens.system.nvidia_smi import Gpu
from faultlens.target_env.cuda_libraries import CudaLibraries, cuda_libraries, names_for, numbers, version_of
from faultlens.target_env.target import TargetEnvironment, TensorFlow
from faultlens.target_env.tensorflow_build import Build, read_build

# The oldest driver for each CUDA: docs.nvidia.com/deploy/cuda-compatibility (minor version compatibility), and the
# release notes of the toolkits for the full numbers.
OLDEST_DRIVER: Mapping[int, str] = {11: "450.80.02", 12: "525.60.13", 13: "580.65.06"}
# Compute capabilities of each architecture, lowest and highest, times ten.
ARCHITECTURES: Mapping[str, tuple[int, int]] = {
    "Kepler": (30, 37), "Maxwell": (50, 53), "Pascal": (60, 62), "Volta": (70, 72), "Turing": (75, 75),
    "Ampere": (80, 87), "Ada Lovelace": (89, 89), "Hopper": (90, 90), "Blackwell": (100, 121),
}  # fmt: skip
UNKNOWN = (0, 1 << 16)  # could be anything: nothing is said about it


class Surroundings(Record, frozen=True):
    """What a CUDA build meets on this machine."""

    gpus: Gpus
    libraries: CudaLibraries | None = None  # None: the loading could not be followed
    elsewhere: tuple[str, ...] = ()  # folders of nvidia-* wheels that have missing ones, and that are not searched
    cudnn: str | None = None  # version of the cuDNN that would be loaded


class Cuda(Check):
    """
    Compares what the TensorFlow wheel was built for (`build_info.py`, read as data) with the NVIDIA driver, and with
    the CUDA libraries that the loader would find for it: LD_LIBRARY_PATH, the nvidia-* wheels, the system's.

    TensorFlow opens seven of them before it registers a GPU. If one is missing it goes on with the CPU and says so
    in one line of its log. Seen with TensorFlow 2.21.0 under a stand-in for the driver: with all libraries but one
    installed no GPU is listed, with all of them it is. The library that opens them is the one whose RUNPATH counts:
    that of 2.21.0 leaves out the folder of the nvidia-cusolver wheel, so `tensorflow[and-cuda]` alone is not enough.

    A driver that is too old for the CUDA of the build is an error, as NVIDIA's table has it. A cuDNN older than the
    wheel asks for fails at the first convolution ("Loaded runtime CuDNN library … but source was compiled with").
    For a GPU older than all code in the build there is no kernel that CUDA could run. One that is newer than all
    machine code works after a compilation at the first start, and is told as a detail. Without a GPU there is
    nothing to find. ROCm builds: only whether /dev/kfd can be used; untested on hardware.
    """

    name = "cuda"
    looks_at = "what TensorFlow was built for, against the GPU driver and the CUDA libraries"
    position = 60
    causes = ("gpu-driver-mismatch",)

    def examine(self, target: TargetEnvironment) -> Examination:
        tensorflow = target.tensorflow
        if tensorflow is None:
            return self.skipped("no TensorFlow is installed")
        build = read_build(tensorflow)
        if build is None:
            return self.skipped(f"TensorFlow {tensorflow.version} does not say how it was built")
        return self.judge(tensorflow, build, surroundings(target, build), target.interpreter.pip)

    def judge(self, tensorflow: TensorFlow, build: Build, here: Surroundings, pip: str) -> Examination:
        if build.rocm:
            return self._rocm(here.gpus)
        if build.cuda is None:
            return self.fine("a CPU build of TensorFlow: GPUs are not used", _unused(here.gpus))
        built = f"built for CUDA {build.cuda}"
        if here.gpus.wsl and not here.gpus.driven:
            return self.fine(f"{built}; the GPU of WSL is not looked at")
        if not here.gpus.driven:
            reason = "an NVIDIA GPU that no driver serves here" if here.gpus.nvidia else "no GPU here"
            return self.fine(f"{built}; {reason}: TensorFlow will use the CPU")
        findings = (
            *self._driver(build, here.gpus),
            *self._missing(tensorflow, here, pip),
            *self._cudnn(tensorflow, build, here, pip),
            *self._too_old(build, here.gpus),
        )
        details = [f"built for {', '.join(build.capabilities)}", *_compiled_first(build, here.gpus)]
        details += [f"{name}: {path}" for name, path in here.libraries.found.items()] if here.libraries else ()
        fit = "they fit" if here.libraries else "they fit; its libraries could not be followed"
        return self.judged(findings, f"{built}, driver {here.gpus.kernel_module}: {fit}", details)

    def _driver(self, build: Build, gpus: Gpus) -> Iterable[Finding]:
        oldest, driver = OLDEST_DRIVER.get(build.cuda_major), gpus.kernel_module
        if oldest and driver and numbers(driver) < numbers(oldest):
            yield self.error(
                f"the GPU driver {driver} is too old for CUDA {build.cuda}: it needs {oldest} or newer",
                [
                    (f"kernel module {driver}", "/proc/driver/nvidia/version"),
                    (f"TensorFlow was built for CUDA {build.cuda}", "tensorflow/python/platform/build_info.py"),
                ],
                [
                    fix("install a newer driver and restart the machine", "nvidia-smi", "shows it", safe=False),
                    fix("or hide the GPU and use the CPU", "export CUDA_VISIBLE_DEVICES=-1"),
                ],
            )

    def _missing(self, tensorflow: TensorFlow, here: Surroundings, pip: str) -> Iterable[Finding]:
        if here.libraries is None or not here.libraries.missing:
            return
        names = here.libraries.missing
        installed = f"{pip} install 'tensorflow[and-cuda]=={tensorflow.version}'"
        ways = [fix("install the CUDA libraries as wheels", installed)]
        if here.elsewhere:
            folders = shlex.quote(":".join(here.elsewhere))
            ways.insert(
                0, fix("name their folder", f"export LD_LIBRARY_PATH={folders}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}")
            )
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        yield self.warning(
            f"the GPU will not be used: TensorFlow finds no {names[0]}{more}",
            [
                *((f"{name} is not found by the loader", "search of the loader, followed") for name in names),
                *((f"{folder} has it, but is not searched", "folders of the wheels") for folder in here.elsewhere),
                ("TensorFlow opens all of them before it registers a GPU, else it uses the CPU", "measured"),
            ],
            ways,
            causes=(),
        )

    def _cudnn(self, tensorflow: TensorFlow, build: Build, here: Surroundings, pip: str) -> Iterable[Finding]:
        wanted, found = build.cudnn_at_least, here.cudnn
        if not wanted or not found or numbers(found)[:3] >= numbers(wanted):
            return
        path = here.libraries.found.get(f"libcudnn.so.{build.cudnn}", "") if here.libraries else ""
        yield self.warning(
            f"cuDNN {found} is older than TensorFlow {tensorflow.version} asks for ({wanted}): convolutions fail",
            [
                (f"{path} would be loaded", "search of the loader, followed"),
                (f"cuDNN {wanted}", "metadata of the wheel"),
            ],
            [
                fix(
                    "install the cuDNN that it asks for",
                    f"{pip} install 'nvidia-cudnn-cu{build.cuda_major}>={wanted},<{numbers(wanted)[0] + 1}'",
                    "and take the folder of the older one out of LD_LIBRARY_PATH, if it is named there",
                )
            ],
        )

    def _too_old(self, build: Build, gpus: Gpus) -> Iterable[Finding]:
        lowest = min(_capabilities(build), default=0)
        for gpu in gpus.survey.gpus if gpus.survey else ():
            if lowest and _capability(gpu)[1] < lowest:
                yield self.warning(
                    f"TensorFlow has no code for {gpu.name}: it was built for compute capability {lowest / 10} and up",
                    [
                        (f"{gpu.name} is of the architecture {gpu.architecture}", "nvidia-smi"),
                        (f"built for {', '.join(build.capabilities)}", "tensorflow/python/platform/build_info.py"),
                    ],
                    [fix("use a TensorFlow that still has code for it", "", "or the CPU", safe=False)],
                )

    def _rocm(self, gpus: Gpus) -> Examination:
        if not gpus.amd:
            return self.fine("built for ROCm; no AMD GPU here: TensorFlow will use the CPU")
        if gpus.kfd is None or gpus.kfd.accessible:
            reason = "/dev/kfd is not here" if gpus.kfd is None else "/dev/kfd can be used"
            return self.fine(f"built for ROCm; {len(gpus.amd)} AMD GPU(s), {reason}")
        return self.found([
            self.warning(
                "the GPU will not be used: this user may not open /dev/kfd",
                [("/dev/kfd is not readable and writable", "access(2)")],
                [fix("join the groups that own it", "sudo usermod -aG render,video $USER", "log in again", safe=False)],
                causes=(),
            )
        ])  # fmt: skip


def surroundings(target: TargetEnvironment, build: Build) -> Surroundings:
    """The loader is followed only where a GPU could be used."""
    tensorflow = target.tensorflow
    if build.cuda is None or not target.gpus.driven or tensorflow is None:
        return Surroundings(gpus=target.gpus)
    libraries = cuda_libraries(target, names_for(build.cuda_major, build.cudnn))
    if libraries is None:
        return Surroundings(gpus=target.gpus)
    wheels = tensorflow.folder.parent / "nvidia"
    elsewhere = {str(path.parent) for name in libraries.missing for path in sorted(wheels.glob(f"*/lib/{name}"))}
    path = libraries.found.get(f"libcudnn.so.{build.cudnn}")
    return Surroundings(
        gpus=target.gpus,
        libraries=libraries,
        elsewhere=tuple(sorted(elsewhere)),
        cudnn=_cudnn_version(target, path, build) if path else None,
    )


def _cudnn_version(target: TargetEnvironment, path: str, build: Build) -> str | None:
    """The system's has it in its name; the wheel's library has not, but the wheel has."""
    wheel = target.distribution(f"nvidia-cudnn-cu{build.cuda_major}")
    if wheel is not None and Path(path).is_relative_to((wheel.folder / "nvidia" / "cudnn").resolve()):
        return ".".join(wheel.version.split(".")[:3])
    return version_of(path)


def _capabilities(build: Build) -> list[int]:
    """ "sm_89" and "compute_90" as numbers; "sm_90a" too."""
    found = (re.search(r"_(\d+)", each) for each in build.capabilities)
    return [int(match[1]) for match in found if match]


def _capability(gpu: Gpu) -> tuple[int, int]:
    return ARCHITECTURES.get(gpu.architecture or "", UNKNOWN)


def _compiled_first(build: Build, gpus: Gpus) -> Iterable[str]:
    newest = max(_capabilities(build), default=0)
    for gpu in gpus.survey.gpus if gpus.survey else ():
        if newest and newest < _capability(gpu)[0]:
            yield (
                f"{gpu.name} is newer than the machine code in this TensorFlow (up to {newest / 10}): its kernels are "
                "compiled at the first start, which takes long"
            )


def _unused(gpus: Gpus) -> Iterable[str]:
    if gpus.driven:
        yield "this machine has an NVIDIA GPU; the wheel `tensorflow` would use it, `tensorflow-cpu` does not"
