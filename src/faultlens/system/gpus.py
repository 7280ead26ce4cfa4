"""Which GPUs this machine has, and what drives them: read from /sys, /proc and /dev, nothing is loaded."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from faultlens.records.crash import Record
from faultlens.system.kernel_log import lines_with
from faultlens.system.nvidia_smi import Survey, survey
from faultlens.system.procfs import read_text
from faultlens.text.safe import one_line

ROOT = Path("/")
NVIDIA, AMD = "0x10de", "0x1002"
DISPLAY_CONTROLLER = "0x03"  # PCI class: VGA, 3D and other display controllers
XID = "NVRM: Xid"
_XID = re.compile(r"Xid \((?:PCI:)?(?P<bus>[^)]*)\): (?P<number>\d{1,9})")
_KERNEL_MODULE = re.compile(r"NVRM version:.*?\s(\d+\.\d+(?:\.\d+)?)\s")


class PciGpu(Record, frozen=True):
    bus: str
    vendor: str
    driver: str | None  # the kernel module bound to it: "nvidia", "nouveau", "vfio-pci", "amdgpu"


class DeviceFile(Record, frozen=True):
    path: str
    accessible: bool  # this user may read and write it


class Xid(Record, frozen=True):
    """An error that the driver wrote to the kernel log."""

    number: int
    bus: str
    line: str


class Gpus(Record, frozen=True):
    pci: tuple[PciGpu, ...] = ()
    devices: tuple[DeviceFile, ...] = ()  # /dev/nvidia…
    kernel_module: str | None = None  # version of the NVIDIA module that is loaded
    survey: Survey | None = None  # None: there is no nvidia-smi
    xids: tuple[Xid, ...] | None = ()  # since the machine was started; None: the kernel log may not be read
    kfd: DeviceFile | None = None  # /dev/kfd: what ROCm computes through
    wsl: bool = False  # Windows drives the GPU, and shows it in a way that is not looked at

    @property
    def nvidia(self) -> tuple[PciGpu, ...]:
        return tuple(gpu for gpu in self.pci if gpu.vendor == NVIDIA)

    @property
    def amd(self) -> tuple[PciGpu, ...]:
        return tuple(gpu for gpu in self.pci if gpu.vendor == AMD)

    @property
    def cards(self) -> tuple[DeviceFile, ...]:
        """The files of the cards themselves: /dev/nvidia0, …"""
        return tuple(each for each in self.devices if re.fullmatch(r".*/nvidia\d+", each.path))

    @property
    def driven(self) -> bool:
        """NVIDIA's driver serves at least one GPU to programs here."""
        return self.kernel_module is not None and bool(self.cards)


def look(variables: Mapping[str, str], root: Path = ROOT, answer: Survey | None = None) -> Gpus:
    """`root` and `answer` stand for another machine: its files, and what its nvidia-smi said."""
    module = _kernel_module(root)
    return Gpus(
        pci=tuple(_pci(root)),
        devices=tuple(_devices(root)),
        kernel_module=module,
        survey=answer if root != ROOT else survey(variables) if module else None,
        xids=xids(lines_with(XID)) if root == ROOT and module else (),
        kfd=_device(root / "dev/kfd", root) if (root / "dev/kfd").exists() else None,
        wsl=(root / "dev/dxg").exists(),
    )


def xids(lines: Iterable[str] | None) -> tuple[Xid, ...] | None:
    if lines is None:
        return None
    found = ((_XID.search(line), line) for line in lines)
    return tuple(Xid(int(match["number"]), match["bus"], one_line(line, 240)) for match, line in found if match)


def _pci(root: Path) -> Iterable[PciGpu]:
    try:
        folders = sorted((root / "sys/bus/pci/devices").iterdir())
    except OSError:
        return
    for folder in folders:
        vendor = (read_text(folder / "vendor") or "").strip()
        if vendor in (NVIDIA, AMD) and (read_text(folder / "class") or "").startswith(DISPLAY_CONTROLLER):
            try:
                driver: str | None = os.path.basename(os.readlink(folder / "driver"))
            except OSError:
                driver = None
            yield PciGpu(folder.name, vendor, driver)


def _kernel_module(root: Path) -> str | None:
    """/sys tells it in containers too; /proc is the driver's own word."""
    match = _KERNEL_MODULE.search(read_text(root / "proc/driver/nvidia/version") or "")
    return match[1] if match else (read_text(root / "sys/module/nvidia/version") or "").strip() or None


def _devices(root: Path) -> Iterable[DeviceFile]:
    try:
        names = sorted(name for name in os.listdir(root / "dev") if name.startswith("nvidia"))
    except OSError:
        return
    for name in names:
        # Mode setting and tools are not needed to compute; nvidia-caps is a folder.
        if re.fullmatch(r"nvidia(\d+|ctl|-uvm)", name):
            yield _device(root / "dev" / name, root)


def _device(path: Path, root: Path) -> DeviceFile:
    return DeviceFile(f"/{path.relative_to(root)}", os.access(path, os.R_OK | os.W_OK))
