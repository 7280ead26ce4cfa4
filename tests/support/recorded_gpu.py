"""A machine with one NVIDIA H200 and driver 580.159.04, rebuilt as a folder from what was recorded there."""

from __future__ import annotations

from pathlib import Path

import places
from faultlens.system.gpus import Gpus, look
from faultlens.system.nvidia_smi import parse

FOLDER = places.RECORDED / "gpu"
DRIVER = "580.159.04"
UUID = "GPU-00000000-1111-2222-3333-444444444444"
LIBRARY = f"/usr/local/nvidia/lib64/libcuda.so.{DRIVER}"
COMPAT = "/usr/local/cuda/compat/libcuda.so.580.95.05"
XML = (FOLDER / "nvidia_smi.xml").read_text()
LOG = (FOLDER / "kernel_log.txt").read_text().splitlines()


def machine(root: Path, xml: str = XML) -> Gpus:
    """What the fact reader finds in the folder, with nvidia-smi answering `xml`."""
    files = {
        "proc/driver/nvidia/version": (FOLDER / "version").read_text(),
        "sys/module/nvidia/version": f"{DRIVER}\n",
        "sys/bus/pci/devices/0000:00:06.0/vendor": "0x10de\n",
        "sys/bus/pci/devices/0000:00:06.0/class": "0x030200\n",
        "sys/bus/pci/devices/0000:00:1f.0/vendor": "0x8086\n",
        "sys/bus/pci/devices/0000:00:1f.0/class": "0x060100\n",
        **dict.fromkeys(("dev/nvidia0", "dev/nvidiactl", "dev/nvidia-uvm", "dev/nvidia-uvm-tools", "dev/null"), ""),
    }
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (root / "sys/bus/pci/devices/0000:00:06.0/driver").symlink_to("../../../bus/pci/drivers/nvidia")
    (root / "dev/nvidia-caps").mkdir()
    return look({}, root, parse(xml.encode()))
