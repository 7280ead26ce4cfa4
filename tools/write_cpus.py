"""Writes which CPU has which features: python tools/write_cpus.py [--compiler clang-19].

Two sources: QEMU's CPU models, asked with the instruction `cpuid` under `qemu-x86_64 -cpu MODEL` (what QEMU cannot
emulate it says itself: "TCG doesn't support requested feature"), and a compiler's -march names, asked for their macros.
A CPU has what any source gives it: versions of a QEMU model, which only add what earlier ones forgot, count as one.
Needs qemu-user, gcc, and the compiler whose names are wanted."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from faultlens.knowledge.cpu_features import FLAGS
from faultlens.knowledge.cpus import TABLE, plain_name

# (leaf, register) of cpuid, and the bits there; names as in /proc/cpuinfo.
BITS = {
    (0x1, "ecx"): {
        0: "pni", 1: "pclmulqdq", 9: "ssse3", 12: "fma", 19: "sse4_1", 20: "sse4_2", 22: "movbe", 23: "popcnt",
        25: "aes", 28: "avx", 29: "f16c", 30: "rdrand",
    },
    (0x7, "ebx"): {
        3: "bmi1", 5: "avx2", 8: "bmi2", 16: "avx512f", 17: "avx512dq", 18: "rdseed", 19: "adx", 21: "avx512ifma",
        28: "avx512cd", 29: "sha_ni", 30: "avx512bw", 31: "avx512vl",
    },
    (0x7, "ecx"): {
        1: "avx512vbmi", 6: "avx512_vbmi2", 8: "gfni", 9: "vaes", 10: "vpclmulqdq", 11: "avx512_vnni",
        12: "avx512_bitalg", 14: "avx512_vpopcntdq",
    },
    (0x7, "edx"): {8: "avx512_vp2intersect", 22: "amx_bf16", 23: "avx512_fp16", 24: "amx_tile", 25: "amx_int8"},
    (0x70001, "eax"): {4: "avx_vnni", 5: "avx512_bf16", 21: "amx_fp16", 23: "avx_ifma"},
    (0x80000001, "ecx"): {5: "abm", 6: "sse4a", 11: "xop", 16: "fma4"},
}  # fmt: skip
PROGRAM = r"""
#include <cpuid.h>
#include <stdio.h>
static void leaf(unsigned name, unsigned number, unsigned sub) {
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid_count(number, sub, &a, &b, &c, &d))
        printf("%x %x %x %x %x\n", name, a, b, c, d);
}
int main(void) {
    leaf(0x1, 1, 0);
    leaf(0x7, 7, 0);
    leaf(0x70001, 7, 1);
    leaf(0x80000001, 0x80000001, 0);
}
"""
LEFT_OUT = re.compile(r"CPUID\.([0-9A-F]+)H:(E[A-D]X)\.\S+ \[bit (\d+)\]")
# Macros of compilers that are not the name of the feature without its underscores.
MACROS = {"BMI1": "BMI", "RDRAND": "RDRND", "PCLMULQDQ": "PCLMUL"}
NO_64_BIT = ("486", "athlon", "coreduo", "kvm32", "n270", "pentium", "pentium2", "pentium3", "qemu32", "base", "max")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--compiler", default="clang-19")
    compiler = arguments.parse_args().compiler
    cpus: dict[str, set[str]] = {}
    for name, flags in (*compiler_targets(compiler), *qemu_models()):
        cpus.setdefault(plain_name(name), set()).update(flags)
    rows = [f"  {json.dumps(name)}: {json.dumps(' '.join(sorted(flags)))}" for name, flags in sorted(cpus.items())]
    TABLE.write_text("{\n" + ",\n".join(rows) + "\n}\n")
    print(f"{len(cpus)} CPUs in {TABLE}")


def qemu_models() -> Iterator[tuple[str, set[str]]]:
    listed = subprocess.run(["qemu-x86_64", "-cpu", "help"], capture_output=True, text=True).stdout
    names = re.findall(r"^x86 (\S+)", listed.partition("Recognized")[0], re.MULTILINE)
    with tempfile.TemporaryDirectory() as folder:
        program = str(Path(folder) / "leaves")
        subprocess.run(["gcc", "-x", "c", "-", "-o", program], input=PROGRAM, text=True, check=True)
        for name in names:
            if plain_name(name) not in NO_64_BIT:
                done = subprocess.run(
                    ["qemu-x86_64", "-cpu", name, program], capture_output=True, text=True, check=True
                )
                yield name, set(told(done.stdout)) | set(left_out(done.stderr))


def told(output: str) -> Iterator[str]:
    for line in output.splitlines():
        leaf, *values = (int(word, 16) for word in line.split())
        for register, value in zip(("eax", "ebx", "ecx", "edx"), values, strict=True):
            yield from (flag for bit, flag in BITS.get((leaf, register), {}).items() if value >> bit & 1)


def left_out(warnings: str) -> Iterator[str]:
    """Features of the model that the emulator lacks."""
    for number, register, bit in LEFT_OUT.findall(warnings):
        leaf = int(number, 16)
        if (leaf, register) == (7, "EAX"):  # only its second part has features there
            leaf = 0x70001
        flag = BITS.get((leaf, register.lower()), {}).get(int(bit))
        if flag:
            yield flag


def compiler_targets(compiler: str) -> Iterator[tuple[str, set[str]]]:
    said = subprocess.run([compiler, "-march=?", "-E", "-"], input="", capture_output=True, text=True).stderr
    names = re.search(r"valid (?:target CPU values are: |arguments to .-march=. switch are: )(.*?)(?:;|$)", said, re.M)
    for name in re.findall(r"[\w-]+", names[1] if names else ""):
        if name != "native":
            yield name, enabled(compiler, name)


def enabled(compiler: str, name: str) -> set[str]:
    command = [compiler, f"-march={name}", "-dM", "-E", "-"]
    macros = subprocess.run(command, input="", capture_output=True, text=True, check=True).stdout
    defined = {word.replace("_", "") for word in re.findall(r"#define __(\w+)__ 1", macros)}
    return {flag for feature, flag in FLAGS.items() if MACROS.get(feature, feature).replace("_", "") in defined}


if __name__ == "__main__":
    main()
