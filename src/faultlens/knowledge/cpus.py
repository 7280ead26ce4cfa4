"""Which features a CPU of a given name has: models of QEMU, -march names of compilers, levels of x86-64.

`cpus.json` is made by tools/write_cpus.py from QEMU 7.2 and clang 19; gcc gives its targets the same names."""

from __future__ import annotations

import difflib
import json
import re
from functools import cache
from pathlib import Path

from faultlens.errors import FaultlensError

TABLE = Path(__file__).with_name("cpus.json")
# Variants of a QEMU model that differ in what a program's instructions do not need.
_VARIANT = re.compile(r"(-(notsx|ibrs|ibpb|v\d+))+$")
# Server generations that are known by another name than the compilers'.
_ALSO = {
    "x86-64-v1": "x86-64", "naples": "znver1", "rome": "znver2", "milan": "znver3", "genoa": "znver4",
    "epyc-naples": "znver1", "epyc-genoa": "znver4", "turin": "znver5", "epyc-turin": "znver5",
}  # fmt: skip


def plain_name(name: str) -> str:
    """ "Haswell-noTSX-IBRS" -> "haswell"."""
    plain = re.sub(r"[\s_]+", "-", name.strip().lower())
    return plain if plain.startswith("x86-64") else _VARIANT.sub("", plain)


def cpu_flags(name: str) -> frozenset[str]:
    """Its features, as far as programs need them, by their names in /proc/cpuinfo."""
    plain = plain_name(name)
    plain = _ALSO.get(plain, plain)
    cpus = _cpus()
    if plain not in cpus:
        raise FaultlensError(f"No CPU called {name} is known.", _advice(plain))
    return frozenset(cpus[plain].split())


def _advice(plain: str) -> str:
    names = sorted({*_cpus(), *_ALSO})
    near = difflib.get_close_matches(plain, names, 5, 0.5)
    near += [name for name in names if (plain in name or name in plain) and name not in near][:5]
    levels = "x86-64-v2, nehalem, sandybridge, haswell, skylake-server, epyc-milan"
    return f"Near: {', '.join(near)}." if near else f"Known are QEMU's models and -march names: {levels}, …"


@cache
def _cpus() -> dict[str, str]:
    table: dict[str, str] = json.loads(TABLE.read_text())
    return table


def level(flags: frozenset[str]) -> str:
    """The highest level of x86-64 that a CPU with these flags fulfils: what to compile for."""
    levels = ("x86-64-v4", "x86-64-v3", "x86-64-v2")
    return next((name for name in levels if cpu_flags(name) <= flags), "x86-64")
