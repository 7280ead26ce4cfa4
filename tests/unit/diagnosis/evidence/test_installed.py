"""Advice for people who call an installed package: they cannot mend its code."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from faultlens.diagnosis.evidence.installed import distribution
from faultlens.diagnosis.rank import diagnose
from faultlens.records.crash import (
    Address,
    Crash,
    Fault,
    Frame,
    Instruction,
    Outcome,
    Package,
    Program,
    PythonInfo,
    Thread,
)

PACKAGES = "/home/ada/venv/lib/python3.11/site-packages"
INSIDE = Frame(kind="native", function="H5F_addr_decode", library=f"{PACKAGES}/h5py.libs/libhdf5-8c29085d.so.310.5.1")
LINE = Frame(kind="python", function="read", file="/home/ada/train.py", line=18)


def crash(number: int) -> Crash:
    fault = Fault(
        signal="SIGSEGV",
        code="SEGV_MAPERR",
        thread=number,
        address=Address(0x40),
        access="read",
        registers={"rax": Address(0)},
        instruction=Instruction(address=Address(0x7F0000001000), code="0fb67840"),
    )
    threads = (
        Thread(id=number, crashed=True, launched=True, frames=(INSIDE, LINE)),
        *((Thread(id=1, frames=(replace(LINE, function="<module>", line=30),)),) if number != 1 else ()),
    )
    python = PythonInfo(version="3.11.7", packages=(Package(name="h5py", version="3.14.0"),))
    return Crash(
        outcome=Outcome(kind="signal", signal="SIGSEGV"),
        method="agent",
        pid=1,
        fault=fault,
        threads=threads,
        program=Program(python=python),
    )


@pytest.mark.parametrize(
    ("number", "first"), [(7, "call h5py from one thread at a time"), (1, "update h5py (3.14.0 is")]
)
def test_whoever_calls_a_package_is_not_told_to_mend_its_code(number: int, first: str) -> None:
    found = diagnose(crash(number)).diagnoses[0]
    assert found.cause == "native-null-dereference"
    assert found.fixes[0].title.startswith(first)
    advice = " ".join(f"{fix.title} {fix.detail}" for fix in found.fixes)
    assert "train.py:18" in advice and "3.14.0" in advice
    assert not any(words in advice for words in ("check the pointer", "OP_REQUIRES", "return value", "rebuild"))


@pytest.mark.parametrize(
    ("library", "installed", "known"),
    [
        (
            f"{PACKAGES}/cv2/cv2.abi3.so",
            Package(name="opencv-python-headless", version="4.1"),
            "opencv-python-headless",
        ),
        (f"{PACKAGES}/PIL/_imaging.so", Package(name="Pillow", version="9"), "Pillow"),
        (f"{PACKAGES}/ml_dtypes/_x.so", Package(name="ml-dtypes", version="1"), "ml-dtypes"),
        (f"{PACKAGES}/unheard/_x.so", Package(name="ml-dtypes", version="1"), "unheard"),
    ],
)
def test_the_name_under_which_it_is_installed(library: str, installed: Package, known: str) -> None:
    found = replace(crash(1), program=Program(python=PythonInfo(version="3.11.7", packages=(installed,))))
    assert distribution(found, replace(INSIDE, library=library))[0] == known
