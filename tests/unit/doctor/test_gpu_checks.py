"""The checks of GPUs over a recorded machine and variants of it."""

from __future__ import annotations

import stat
import time
from pathlib import Path

import msgspec
import pytest

import recorded_gpu
from faultlens.doctor.checks.gpu.cuda import Cuda, Surroundings
from faultlens.doctor.checks.gpu.gpus import GpusCheck
from faultlens.doctor.checks.gpu.variables import GpuVariables, what_cuda_sees
from faultlens.records.finding import Examination
from faultlens.system.gpus import AMD, NVIDIA, DeviceFile, Gpus, PciGpu, look, xids
from faultlens.system.nvidia_smi import Survey, ask, parse, survey
from faultlens.target_env.cuda_libraries import CudaLibraries, names_for
from faultlens.target_env.distributions import Distribution
from faultlens.target_env.target import TensorFlow
from faultlens.target_env.tensorflow_build import Build, build_info, read_build
from faultlens.target_env.xla_flags import FlagFault
from recorded_gpu import COMPAT, DRIVER, LIBRARY, LOG, UUID, XML

BUILD_INFO = """
import collections

build_info = collections.OrderedDict([('cuda_compute_capabilities', ['sm_60', 'sm_80', 'sm_89', 'compute_90']),
 ('cuda_version', '12.5.1'), ('cudnn_version', '9'), ('is_cuda_build', True), ('is_rocm_build', False)])
"""
METADATA = """Metadata-Version: 2.4
Name: tensorflow
Version: 2.21.0
Requires-Dist: numpy>=1.26.0
Requires-Dist: nvidia-cublas-cu12<13.0,>=12.5.3.2; extra == "and-cuda"
Requires-Dist: nvidia-cudnn-cu12<10.0,>=9.3.0.75; extra == "and-cuda"
"""
PIP = "python -m pip"
CPU = Build()
CUDA = Build(cuda="12.5.1", cudnn="9", cudnn_at_least="9.3.0", capabilities=("sm_60", "sm_80", "sm_89", "compute_90"))
ALL = CudaLibraries(found={name: f"/usr/lib/{name}" for name in names_for(12, "9")})


@pytest.fixture
def gpus(tmp_path: Path) -> Gpus:
    return recorded_gpu.machine(tmp_path / "machine")


@pytest.fixture
def tensorflow(tmp_path: Path) -> TensorFlow:
    """The few files of a GPU wheel that the check reads."""
    site = tmp_path / "site-packages"
    (site / "tensorflow/python/platform").mkdir(parents=True)
    (site / "tensorflow/python/platform/build_info.py").write_text(BUILD_INFO)
    (site / "tensorflow-2.21.0.dist-info").mkdir()
    (site / "tensorflow-2.21.0.dist-info/METADATA").write_text(METADATA)
    wheel = Distribution("tensorflow", "2.21.0", site, site / "tensorflow-2.21.0.dist-info")
    return TensorFlow(wheel, site / "tensorflow")


def changed(tmp_path: Path, old: str, new: str) -> Gpus:
    """The same machine, with nvidia-smi telling something else."""
    assert old in XML
    return recorded_gpu.machine(tmp_path / "changed", XML.replace(old, new))


def titles(examination: Examination) -> str:
    return "\n".join(f"{finding.severity}: {finding.title}" for finding in examination.findings)


# --------------------------------------------------------------------------------------------------- facts


def test_recorded_machine(gpus: Gpus) -> None:
    assert gpus.pci == (PciGpu("0000:00:06.0", NVIDIA, "nvidia"),)
    assert gpus.kernel_module == DRIVER
    assert gpus.driven
    assert [device.path for device in gpus.devices] == ["/dev/nvidia-uvm", "/dev/nvidia0", "/dev/nvidiactl"]
    assert gpus.survey is not None
    assert gpus.survey.driver == DRIVER and gpus.survey.cuda == "13.0"
    (card,) = gpus.survey.gpus
    assert (card.bus, card.name, card.architecture, card.uuid) == ("0000:00:06.0", "NVIDIA H200", "Hopper", UUID)
    assert card.memory == (143771 - 616) << 20
    assert (card.mig, card.uncorrected, card.remap_pending, card.recovery) == (False, 0, False, None)


def test_machine_without_anything(tmp_path: Path) -> None:
    assert look({}, tmp_path) == Gpus()


def test_xids_are_read_from_the_log() -> None:
    found = xids(LOG)
    assert found is not None
    assert [(xid.number, xid.bus) for xid in found] == [(43, "0000:00:06"), (31, "0000:00:06")]
    assert xids(None) is None


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"No devices were found\n",
        b"\xff\xfe\x00garbage",
        XML[: len(XML) // 2].encode(),
        b'<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><nvidia_smi_log>&b;</nvidia_smi_log>',
        b"<?xml version='1.0' encoding='no-such'?><nvidia_smi_log/>",
    ],
    ids=["nothing", "words", "bytes", "cut", "entities", "encoding"],
)
def test_an_answer_that_is_not_xml_is_told(answer: bytes) -> None:
    assert parse(answer).problem
    assert not parse(answer).gpus


def test_xml_of_another_driver_has_other_tags() -> None:
    older = b"""<nvidia_smi_log><driver_version>418.67</driver_version><gpu id="00000000:3B:00.0">
      <product_name>Tesla K80</product_name><ecc_errors><volatile><double_bit><total>3</total></double_bit></volatile>
      </ecc_errors><retired_pages><pending_retirement>Yes</pending_retirement></retired_pages></gpu><gpu/></nvidia_smi_log>"""
    first, second = parse(older).gpus
    assert (first.bus, first.uncorrected, first.remap_pending, first.mig) == ("0000:3b:00.0", 3, True, False)
    assert second.name == "NVIDIA GPU"


def script(folder: Path, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "nvidia-smi"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_nvidia_smi_is_asked(tmp_path: Path) -> None:
    program = script(tmp_path / "bin", f"cat '{recorded_gpu.FOLDER}/nvidia_smi.xml'")
    answer = survey({"PATH": f"{program.parent}:/usr/bin:/bin"})
    assert answer == parse(XML.encode())
    assert survey({"PATH": str(tmp_path / "empty")}) is None


def test_nvidia_smi_that_fails_is_quoted(tmp_path: Path) -> None:
    said = "Failed to initialize NVML: Driver/library version mismatch"
    program = script(tmp_path, f"echo '{said}'; exit 18")
    assert ask([str(program)], {"PATH": "/usr/bin:/bin"}).problem == said
    assert "cannot be run" in (ask([str(tmp_path / "none")], {}).problem or "")


def test_nvidia_smi_that_hangs_is_left_alone(tmp_path: Path) -> None:
    program = script(tmp_path, "exec sleep 60")
    before = time.monotonic()
    answer = ask([str(program)], {"PATH": "/usr/bin:/bin"}, seconds=0.2)
    assert answer.problem == "nvidia-smi gave no answer within 0.2 s"
    assert time.monotonic() - before < 30


# ---------------------------------------------------------------------------------------------------- GPUs


def test_healthy_gpu_is_green(gpus: Gpus) -> None:
    seen = GpusCheck().judge(msgspec.structs.replace(gpus, xids=xids(LOG)), LIBRARY)
    assert (seen.mark, seen.summary) == ("ok", "NVIDIA H200, driver 580.159.04")
    assert any("Xid 31" in detail for detail in seen.details)  # a program's error, worth knowing


def test_library_of_another_version_is_an_error(gpus: Gpus) -> None:
    """Recorded: error 803, "system has unsupported display driver / cuda driver combination"."""
    seen = GpusCheck().judge(gpus, COMPAT)
    assert titles(seen) == (
        "error: the GPU driver's library is 580.95.05, its kernel module 580.159.04: CUDA refuses to start"
    )
    assert seen.findings[0].causes == ("gpu-driver-mismatch",)
    assert "LD_LIBRARY_PATH" in seen.findings[0].fixes[0].command
    upgraded = GpusCheck().judge(gpus, "/usr/lib/x86_64-linux-gnu/libcuda.so.590.44.01")
    assert "reboot" in upgraded.findings[0].fixes[0].command


def test_forward_compatibility_is_no_finding(gpus: Gpus) -> None:
    seen = GpusCheck().judge(gpus, "/usr/local/cuda-14/compat/libcuda.so.600.10.01")
    assert seen.mark == "ok"
    assert any("forward compatibility" in detail for detail in seen.details)


def test_stub_in_place_of_the_library(gpus: Gpus) -> None:
    """Measured: cuInit gives error 34."""
    assert GpusCheck().judge(gpus, "/usr/local/cuda/lib64/stubs/libcuda.so.1").mark == "error"
    assert GpusCheck().judge(gpus, "/usr/lib/wsl/lib/libcuda.so.1").mark == "ok"


@pytest.mark.parametrize("name", ["nvidia0", "nvidiactl", "nvidia-uvm"])
def test_device_that_may_not_be_opened(gpus: Gpus, name: str) -> None:
    devices = tuple(DeviceFile(each.path, each.path != f"/dev/{name}") for each in gpus.devices)
    seen = GpusCheck().judge(msgspec.structs.replace(gpus, devices=devices), LIBRARY)
    assert titles(seen) == f"error: this user may not open /dev/{name}: CUDA finds no GPU"


@pytest.mark.parametrize(
    ("old", "new", "title"),
    [
        ("<dram_uncorrectable>0", "<dram_uncorrectable>2", "2 uncorrected ECC error(s)"),
        ("<remapped_row_pending>No", "<remapped_row_pending>Yes", "only after a reset"),
        ("<remapped_row_failure>No", "<remapped_row_failure>Yes", "could not be taken out of use"),
        ("<gpu_recovery_action>None", "<gpu_recovery_action>GPU Reset", "asks for recovery: GPU Reset"),
        ("<current_mig>Disabled", "<current_mig>Enabled", "is in MIG mode and has no instances"),
        ("<compute_mode>Default", "<compute_mode>Prohibited", "compute mode is Prohibited"),
    ],
)
def test_troubles_of_a_card(tmp_path: Path, old: str, new: str, title: str) -> None:
    seen = GpusCheck().judge(changed(tmp_path, old, new), LIBRARY)
    assert title in titles(seen)
    assert "H200 (0000:00:06.0)" in seen.summary
    assert all(finding.fixes[0].command for finding in seen.findings)


def test_mig_with_instances_is_a_detail(tmp_path: Path) -> None:
    instances = "<mig_devices><mig_device/><mig_device/></mig_devices>"
    text = XML.replace("<current_mig>Disabled", "<current_mig>Enabled")
    before, _, rest = text.partition("<mig_devices>")
    gpus = recorded_gpu.machine(tmp_path / "mig", before + instances + rest.partition("</mig_devices>")[2])
    seen = GpusCheck().judge(gpus, LIBRARY)
    assert seen.mark == "ok"
    assert any("2 MIG instance(s)" in detail for detail in seen.details)
    assert what_cuda_sees("MIG-1234", gpus).wrong is None


def test_errors_of_old_are_a_detail(tmp_path: Path) -> None:
    head, aggregate = XML.split("<aggregate>", 1)
    aged = f"{head}<aggregate>{aggregate.replace('<dram_uncorrectable>0', '<dram_uncorrectable>5', 1)}"
    seen = GpusCheck().judge(recorded_gpu.machine(tmp_path / "aged", aged), LIBRARY)
    assert seen.mark == "ok"
    assert any("5 uncorrected ECC error(s) in its life" in detail for detail in seen.details)


def test_hardware_xids_are_a_warning(gpus: Gpus) -> None:
    fallen = "NVRM: Xid (PCI:0000:00:06): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
    seen = GpusCheck().judge(msgspec.structs.replace(gpus, xids=xids([*LOG, fallen, fallen])), LIBRARY)
    assert titles(seen) == (
        "warning: GPU 0000:00:06: it has fallen off the bus (Xid 79, 2 times since the machine was started)"
    )
    assert seen.findings[0].evidence[0].fact == fallen


def test_driver_that_answers_with_an_error(gpus: Gpus) -> None:
    said = "Failed to initialize NVML: Driver/library version mismatch NVML library version: 580.159"
    seen = GpusCheck().judge(msgspec.structs.replace(gpus, survey=Survey(problem=said)), LIBRARY)
    assert seen.mark == "error"
    assert "version mismatch" in seen.summary
    silent = msgspec.structs.replace(gpus, survey=Survey(problem="nvidia-smi gave no answer within 8 s"))
    assert GpusCheck().judge(silent, LIBRARY).mark == "warning"
    assert len(GpusCheck().judge(silent, COMPAT).findings) == 1  # what explains the silence is enough


def test_container_without_gpus(gpus: Gpus) -> None:
    """The kernel module of the machine shows through; the image may bring a libcuda of its own."""
    seen = GpusCheck().judge(msgspec.structs.replace(gpus, devices=(), survey=None), COMPAT)
    assert (seen.mark, seen.summary) == ("ok", "no GPU is given to this place, driver 580.159.04")


def test_a_cpu_build_is_not_troubled_by_gpus(gpus: Gpus) -> None:
    seen = GpusCheck().judge(gpus, COMPAT, used=False)
    assert seen.mark == "ok"
    assert any("580.95.05" in detail for detail in seen.details)


@pytest.mark.parametrize(
    ("pci", "summary"),
    [
        ((), "no GPU here"),
        ((PciGpu("0000:01:00.0", NVIDIA, "nouveau"),), "driven by nouveau, not by NVIDIA's driver"),
        ((PciGpu("0000:01:00.0", AMD, "amdgpu"),), "1 AMD GPU(s), driver amdgpu"),
    ],
)
def test_machines_without_nvidias_driver(pci: tuple[PciGpu, ...], summary: str) -> None:
    seen = GpusCheck().judge(Gpus(pci=pci), None)
    assert seen.mark == "ok"
    assert summary in seen.summary


# ---------------------------------------------------------------------------------------------------- CUDA


def test_build_is_read_from_the_wheel(tensorflow: TensorFlow) -> None:
    assert read_build(tensorflow) == CUDA


@pytest.mark.parametrize(
    "text",
    [
        "",
        "build_info = ",
        "build_info = __import__('os').system('true')",
        "build_info = f(1)",
        "x = {}",
        "\0",
        "(" * 9999,
    ],
)
def test_build_info_of_another_shape_is_no_answer(tmp_path: Path, text: str) -> None:
    (tmp_path / "build_info.py").write_text(text)
    assert build_info(tmp_path / "build_info.py") is None
    assert build_info(tmp_path / "absent.py") is None


def test_cuda_build_that_fits(tensorflow: TensorFlow, gpus: Gpus) -> None:
    seen = Cuda().judge(tensorflow, CUDA, Surroundings(gpus, ALL, cudnn="9.14.0"), PIP)
    assert (seen.mark, seen.summary) == ("ok", "built for CUDA 12.5.1, driver 580.159.04: they fit")


def test_without_a_gpu_nothing_is_wrong(tensorflow: TensorFlow) -> None:
    seen = Cuda().judge(tensorflow, CUDA, Surroundings(Gpus()), PIP)
    assert (seen.mark, seen.summary) == ("ok", "built for CUDA 12.5.1; no GPU here: TensorFlow will use the CPU")
    undriven = Gpus(pci=(PciGpu("0000:01:00.0", NVIDIA, "nouveau"),))
    assert Cuda().judge(tensorflow, CUDA, Surroundings(undriven), PIP).mark == "ok"


def test_windows_drives_the_gpu(tmp_path: Path, tensorflow: TensorFlow) -> None:
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/dxg").touch()
    gpus = look({}, tmp_path)
    assert "not looked at" in Cuda().judge(tensorflow, CUDA, Surroundings(gpus), PIP).summary
    assert "not looked at" in GpusCheck().judge(gpus, None).summary


def test_cpu_build_on_a_machine_with_a_gpu(tensorflow: TensorFlow, gpus: Gpus) -> None:
    seen = Cuda().judge(tensorflow, CPU, Surroundings(gpus), PIP)
    assert (seen.mark, seen.summary) == ("ok", "a CPU build of TensorFlow: GPUs are not used")
    assert seen.details


@pytest.mark.parametrize(
    ("driver", "cuda", "fits"),
    [
        ("470.57.02", "12.5.1", False),
        ("525.60.13", "12.5.1", True),
        ("535.104.05", "12.5.1", True),
        ("470.57.02", "11.8", True),
        ("440.33.01", "11.8", False),
        ("570.86.10", "13.0", False),
        ("580.159.04", "unknown", True),
    ],
)
def test_driver_against_cuda(tensorflow: TensorFlow, gpus: Gpus, driver: str, cuda: str, fits: bool) -> None:
    here = Surroundings(msgspec.structs.replace(gpus, kernel_module=driver), ALL)
    seen = Cuda().judge(tensorflow, msgspec.structs.replace(CUDA, cuda=cuda), here, PIP)
    assert seen.mark == ("ok" if fits else "error")
    if not fits:
        assert f"driver {driver} is too old for CUDA {cuda}" in seen.summary


def test_missing_library_means_no_gpu(tensorflow: TensorFlow, gpus: Gpus) -> None:
    libraries = CudaLibraries(found={}, missing=("libcusolver.so.11",))
    seen = Cuda().judge(tensorflow, CUDA, Surroundings(gpus, libraries), PIP)
    assert titles(seen) == "warning: the GPU will not be used: TensorFlow finds no libcusolver.so.11"
    assert seen.findings[0].fixes[0].command == "python -m pip install 'tensorflow[and-cuda]==2.21.0'"
    installed = Surroundings(gpus, libraries, elsewhere=("/site-packages/nvidia/cusolver/lib",))
    first = Cuda().judge(tensorflow, CUDA, installed, PIP).findings[0].fixes[0]
    assert first.command.startswith("export LD_LIBRARY_PATH=/site-packages/nvidia/cusolver/lib")


@pytest.mark.parametrize(("found", "mark"), [("9.1.0", "warning"), ("9.3.0", "ok"), ("9.14.0", "ok"), (None, "ok")])
def test_cudnn_against_what_the_wheel_asks_for(
    tensorflow: TensorFlow, gpus: Gpus, found: str | None, mark: str
) -> None:
    seen = Cuda().judge(tensorflow, CUDA, Surroundings(gpus, ALL, cudnn=found), PIP)
    assert seen.mark == mark
    if mark == "warning":
        assert "cuDNN 9.1.0 is older than TensorFlow 2.21.0 asks for (9.3.0)" in seen.summary
        assert seen.findings[0].fixes[0].command.endswith("'nvidia-cudnn-cu12>=9.3.0,<10'")


@pytest.mark.parametrize(
    ("architecture", "mark", "detail"),
    [
        ("Maxwell", "warning", ""),
        ("Pascal", "ok", ""),
        ("Blackwell", "ok", "compiled at the first start"),
        ("Rubin", "ok", ""),
    ],
)
def test_architecture_against_the_code_in_the_build(
    tmp_path: Path, tensorflow: TensorFlow, architecture: str, mark: str, detail: str
) -> None:
    gpus = changed(tmp_path, "<product_architecture>Hopper", f"<product_architecture>{architecture}")
    seen = Cuda().judge(tensorflow, CUDA, Surroundings(gpus, ALL), PIP)
    assert seen.mark == mark
    assert any(detail in each for each in seen.details)
    assert any("compiled" in each for each in seen.details) == bool(detail)


def test_rocm_build(tensorflow: TensorFlow) -> None:
    rocm = Build(rocm=True)
    card = (PciGpu("0000:03:00.0", AMD, "amdgpu"),)
    shut = Gpus(pci=card, kfd=DeviceFile("/dev/kfd", accessible=False))
    assert Cuda().judge(tensorflow, rocm, Surroundings(Gpus()), PIP).mark == "ok"
    assert Cuda().judge(tensorflow, rocm, Surroundings(Gpus(pci=card)), PIP).mark == "ok"
    assert "may not open /dev/kfd" in Cuda().judge(tensorflow, rocm, Surroundings(shut), PIP).summary


# ----------------------------------------------------------------------------------------------- variables


@pytest.mark.parametrize(
    ("value", "count"),
    [
        # Each was measured on the recorded machine: how many GPUs cuDeviceGetCount gave.
        ("0", 1), ("0,7", 1), ("7,0", 0), ("0,-1,0", 1), (" 0", 1), ("0 ", 1), ("00", 1), ("0x0", 1), ("abc", 0),
        ("0abc", 1), (UUID, 1), (UUID[:8], 1), ("GPU-", 0), ("gpu-x", 0), ("0;1", 1), ("+0", 1), ("1,0", 0),
        ("MIG-x", 0), (f"0,{UUID}", 1), ('"0"', 0), ("all", 0), ("", 0), ("-1", 0), ("none", 0), ("NoDevFiles", 0),
        (f"{UUID},0", 1), (f"0,{UUID},7", 1), (",0", 0), ("0,", 1), (" ", 0), ("0, 1", 1),
    ],
)  # fmt: skip
def test_what_cuda_sees(gpus: Gpus, value: str, count: int) -> None:
    assert len(what_cuda_sees(value, gpus).seen) == count


@pytest.mark.parametrize("value", ["0", "", "-1", "none", "NoDevFiles", "0,-1", UUID, " 0", "0,"])
def test_lists_that_are_meant_so(gpus: Gpus, value: str) -> None:
    assert GpuVariables().judge({"CUDA_VISIBLE_DEVICES": value}, gpus, ()).mark == "ok"


@pytest.mark.parametrize(
    ("value", "title"),
    [
        ("7", "warning: CUDA_VISIBLE_DEVICES=7: there is no GPU '7', no GPU will be seen"),
        ("0,7", "warning: CUDA_VISIBLE_DEVICES=0,7: there is no GPU '7', only 0 will be seen"),
        (
            "GPU-deadbeef",
            "warning: CUDA_VISIBLE_DEVICES=GPU-deadbeef: there is no GPU 'GPU-deadbeef', no GPU will be seen",
        ),
        ("0,0", "error: CUDA_VISIBLE_DEVICES=0,0 names GPU 0 twice: CUDA refuses to start"),
        ("0,00", "error: CUDA_VISIBLE_DEVICES=0,00 names GPU 0 twice: CUDA refuses to start"),
    ],
)
def test_lists_that_name_no_gpu(gpus: Gpus, value: str, title: str) -> None:
    seen = GpuVariables().judge({"CUDA_VISIBLE_DEVICES": value}, gpus, ())
    assert titles(seen) == title
    assert seen.findings[0].fixes[0].command == "export CUDA_VISIBLE_DEVICES=0"


def test_without_nvidia_smi_the_files_are_counted(gpus: Gpus) -> None:
    silent = msgspec.structs.replace(gpus, survey=None)
    assert what_cuda_sees("1", silent).wrong == "1"
    assert what_cuda_sees("GPU-deadbeef", silent).wrong is None
    assert what_cuda_sees("9" * 5000, silent).wrong


def test_lists_do_not_matter_without_a_gpu() -> None:
    assert GpuVariables().judge({"CUDA_VISIBLE_DEVICES": "0,1"}, Gpus(), ()).mark == "ok"


def test_growth_is_a_word(gpus: Gpus) -> None:
    assert GpuVariables().judge({"TF_FORCE_GPU_ALLOW_GROWTH": "true"}, gpus, ()).mark == "ok"
    assert GpuVariables().judge({"TF_FORCE_GPU_ALLOW_GROWTH": "1"}, Gpus(), ()).mark == "ok"
    seen = GpuVariables().judge({"TF_FORCE_GPU_ALLOW_GROWTH": "1"}, gpus, ())
    assert seen.mark == "warning"
    assert seen.findings[0].fixes[0].command == "export TF_FORCE_GPU_ALLOW_GROWTH=true"


def test_flags_are_left_out_together() -> None:
    value = "--one=1 --good=2 --two"
    wrong = [FlagFault("XLA_FLAGS", flag, "is not a flag of this TensorFlow") for flag in ("--one=1", "--two")]
    seen = GpuVariables().judge({"XLA_FLAGS": value}, Gpus(), wrong)
    assert [finding.fixes[0].command for finding in seen.findings] == ["export XLA_FLAGS=--good=2"] * 2
    assert seen.mark == "warning"  # only what compiles with XLA dies of it
    assert GpuVariables().judge({"TF_XLA_FLAGS": "-x"}, Gpus(), [FlagFault("TF_XLA_FLAGS", "-x", "")]).mark == "error"


def test_flag_in_a_file_is_looked_for_there() -> None:
    seen = GpuVariables().judge({"XLA_FLAGS": "my flags"}, Gpus(), [FlagFault("XLA_FLAGS", "--one", "is no flag")])
    assert seen.findings[0].fixes[0].command == "grep -n -e --one 'my flags'"
