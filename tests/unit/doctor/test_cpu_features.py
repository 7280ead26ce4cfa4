"""What a library needs of the CPU when it is loaded, read from its code; and which CPU has what."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from faultlens.doctor.checks.cpu.cpu import Cpu, CpuFeatures, Library, Package
from faultlens.errors import FaultlensError
from faultlens.knowledge.cpu_features import FLAGS, lacking, spoken
from faultlens.knowledge.cpus import cpu_flags, level
from faultlens.system.binary import Binary
from faultlens.system.elf import ElfError
from faultlens.target_env.distributions import Distribution
from faultlens.target_env.interpreter import Interpreter
from faultlens.target_env.numpy_baseline import flags_of, numpy_baseline
from faultlens.target_env.startup_code import Need, certain_needs, startup_needs
from faultlens.target_env.target import Options, TargetEnvironment

AVX = "c5f857c0"  # vxorps xmm0, xmm0, xmm0
AVX512 = "62f17d48efc0"  # vpxord zmm0, zmm0, zmm0
RETURN = "c3"
START = 0x1000


def needed(*functions: str) -> set[str]:
    """What the first of the functions needs for certain; the next begin at 0x1100, 0x1200, …"""
    image = b"".join(bytes.fromhex(code).ljust(0x100, b"\xcc") for code in functions)
    read = lambda address, size: image[address - START :][:size] if address >= START else b""
    return {flag for need in certain_needs(read, [START]) for flag in need.flags}


# ------------------------------------------------------------------------------------------- which code is certain


def test_code_before_any_branch_runs() -> None:
    assert needed(AVX + RETURN) == {"avx"}
    assert needed("9090" + AVX512 + RETURN) == {"avx512f"}
    assert needed(RETURN + AVX) == set()


def test_code_that_a_branch_can_skip_is_no_need() -> None:
    skip = "74" + "04"  # je over the next four bytes
    assert needed(skip + AVX + RETURN) == set()
    assert needed(skip + "90909090" + AVX + RETURN) == {"avx"}  # both ways meet again


def test_code_behind_a_way_out_is_no_need() -> None:
    assert needed("7401" + RETURN + AVX + RETURN) == set()  # one way returns
    assert needed("0f84" + "00000100" + AVX + RETURN) == set()  # one way leaves for far away
    assert needed("ffe0" + AVX) == set()  # jmp rax
    assert needed("0f0b" + AVX) == set()  # ud2


def test_an_inner_jump_keeps_the_longest_way_open() -> None:
    """if (cpu has it) {AVX} else {nop}: je else; AVX; jmp end; else: nop; end: AVX512."""
    assert needed("7406" + AVX + "eb01" + "90" + AVX512 + RETURN) == {"avx512f"}


def test_functions_that_are_called_for_certain_count() -> None:
    call_next = "e8fb000000"  # to START + 0x100
    assert needed(call_next + RETURN, AVX + RETURN) == {"avx"}
    assert needed("7405" + call_next + RETURN, AVX + RETURN) == set()
    assert needed("e9fb000000", AVX + RETURN) == {"avx"}  # a tail call
    assert needed("ff1500000000" + AVX + RETURN) == {"avx"}  # an indirect call comes back


def test_a_function_that_calls_itself_ends_the_walk() -> None:
    assert needed("e8fbffffff" + AVX + RETURN) == {"avx"}


def test_a_system_call_goes_on() -> None:
    assert needed("0f05" + AVX + RETURN) == {"avx"}


def test_older_cpus_execute_lzcnt_and_tzcnt_as_something_else() -> None:
    assert needed("f30fbdc0" + "f30fbcc0" + RETURN) == set()


def test_garbage_is_decoded_without_harm() -> None:
    chance = random.Random(5)
    for _ in range(300):
        code = chance.randbytes(600)
        list(certain_needs(lambda address, size, code=code: code[address % 600 :][:size], [0, 7, 2**64 - 1]))


# --------------------------------------------------------------------------------------------------- real libraries

TABLE = """
static volatile float scale = 0.5f;
extern "C" { float table[64]; }
ATTRIBUTE static int fill() {
    float by = scale;
    for (int i = 0; i < 64; i++) table[i] = by * i;
    return 1;
}
"""
CONSTRUCTED = TABLE.replace("ATTRIBUTE", "") + "static int filled = fill();"
CHOSEN = (
    TABLE.replace("ATTRIBUTE", '__attribute__((target("avx512f"), noinline))')
    + 'static int filled = __builtin_cpu_supports("avx512f") ? fill() : 0;'
)
EXPORTED = TABLE.replace("ATTRIBUTE", "") + 'extern "C" __attribute__((constructor)) void begin() { fill(); }'


def compiled(folder: Path, source: str, *options: str, name: str = "fast.so") -> Path:
    if not shutil.which("g++"):
        pytest.skip("needs g++")
    library = folder / name
    command = ["g++", "-O3", "-shared", "-fPIC", "-x", "c++", "-", "-o", str(library), *options]
    done = subprocess.run(command, input=source, text=True, capture_output=True)
    if done.returncode:
        pytest.skip(f"g++ cannot build it: {done.stderr[-200:]}")
    return library


def needs_of(library: Path) -> set[str]:
    with Binary(library) as binary:
        return {flag for need in startup_needs(binary, all_of_it=True) for flag in need.flags}


@pytest.mark.parametrize("linked", [[], ["-Wl,-z,pack-relative-relocs"], ["-Wl,--no-relax"]], ids=str)
def test_a_global_variable_is_filled_when_the_library_is_loaded(tmp_path: Path, linked: list[str]) -> None:
    assert "avx512f" in needs_of(compiled(tmp_path, CONSTRUCTED, "-mavx512f", *linked))


def test_an_exported_constructor_is_found_through_its_symbol(tmp_path: Path) -> None:
    assert "avx" in needs_of(compiled(tmp_path, EXPORTED, "-mavx"))


def test_a_library_for_every_cpu_needs_nothing(tmp_path: Path) -> None:
    assert needs_of(compiled(tmp_path, CONSTRUCTED)) == set()


def test_a_library_that_asks_the_cpu_first_needs_nothing(tmp_path: Path) -> None:
    assert needs_of(compiled(tmp_path, CHOSEN)) == set()


def test_addresses_that_stand_only_in_relocations_are_found(tmp_path: Path) -> None:
    library = compiled(tmp_path, CONSTRUCTED, "-mavx")
    with Binary(library) as binary:
        expected = binary.initialisers
        table, size = binary._tags[25][0], binary._tags[27][0]
        place = binary._offset(table)
    assert place is not None and len(expected) >= 2
    content = bytearray(library.read_bytes())
    content[place : place + size] = bytes(size)
    library.write_bytes(content)
    with Binary(library) as binary:
        assert binary.initialisers == expected


def test_damaged_libraries_do_no_harm(tmp_path: Path) -> None:
    whole = compiled(tmp_path, EXPORTED, "-mavx").read_bytes()
    chance = random.Random(7)
    damaged = tmp_path / "damaged.so"
    for _ in range(150):
        content = bytearray(whole[: chance.randrange(64, len(whole))] if chance.random() < 0.5 else whole)
        for _ in range(chance.randrange(1, 30)):
            content[chance.randrange(min(len(content), 0x3000))] = chance.randrange(256)
        damaged.write_bytes(content)
        try:
            needs_of(damaged)
        except ElfError:
            continue


# ----------------------------------------------------------------------------------------------------- names of CPUs


@pytest.mark.parametrize("name", ["nehalem", "Nehalem", "Nehalem-IBRS", "Nehalem-v2", "x86-64-v2", " NEHALEM "])
def test_a_cpu_has_many_names(name: str) -> None:
    assert cpu_flags(name) == {"pni", "ssse3", "sse4_1", "sse4_2", "popcnt"}


def test_generations_have_what_they_are_known_for() -> None:
    assert "avx" in cpu_flags("sandybridge") and "avx2" not in cpu_flags("sandybridge")
    assert {"avx2", "fma", "bmi1"} <= cpu_flags("Haswell-noTSX") and "avx512f" not in cpu_flags("haswell")
    assert {"avx512f", "avx512vl"} <= cpu_flags("Skylake-Server-IBRS")
    assert "avx512_bf16" in cpu_flags("cooperlake") & cpu_flags("EPYC-Genoa")
    assert "avx512f" not in cpu_flags("EPYC-Milan") | cpu_flags("milan")
    assert "avx" in cpu_flags("Opteron_G4") and "avx" not in cpu_flags("opteron_g3")
    assert cpu_flags("x86-64-v1") < cpu_flags("x86-64-v2") < cpu_flags("x86-64-v3") < cpu_flags("x86-64-v4")


def test_an_unknown_name_gets_near_ones() -> None:
    with pytest.raises(FaultlensError, match="haswell"):
        cpu_flags("hasvell")
    with pytest.raises(FaultlensError, match="x86-64-v2"):
        cpu_flags("zzzzzzzz")


def test_levels() -> None:
    assert level(cpu_flags("nehalem")) == "x86-64-v2"
    assert level(cpu_flags("sandybridge")) == "x86-64-v2"
    assert level(cpu_flags("haswell")) == "x86-64-v3"
    assert level(cpu_flags("icelake-server")) == "x86-64-v4"
    assert level(cpu_flags("penryn")) == "x86-64"


def test_features_that_have_no_flag_are_never_lacking() -> None:
    assert lacking(("AVX", "CET_IBT", "MULTIBYTENOP"), ()) == ("AVX",)
    assert lacking(("AVX", "SSE3"), ("avx", "pni")) == ()
    assert spoken("pni") == "SSE3" and spoken("unheard_of") == "UNHEARD_OF"
    assert len(set(FLAGS.values())) == len(FLAGS)


def test_numpy_names_its_baseline(tmp_path: Path) -> None:
    assert flags_of(["SSE", "SSE2", "SSE3"]) == {"pni"}
    assert flags_of(["X86_V2"]) == cpu_flags("x86-64-v2")
    assert flags_of(["SSE41", "FMA3", "AVX2"]) == {"sse4_1", "fma", "avx2"}
    (tmp_path / "_core").mkdir()
    said = r'const char *said = "NumPy was built with baseline optimizations: \n(X86_V2) but your machine";'
    compiled(tmp_path / "_core", said, name="_multiarray_umath.cpython-311-x86_64-linux-gnu.so")
    assert numpy_baseline(tmp_path) == ("X86_V2", cpu_flags("x86-64-v2"))
    assert numpy_baseline(tmp_path / "_core") is None


# --------------------------------------------------------------------------------------------------------- judgement

PYTHON = "/env/bin/python"


def a_cpu(name: str) -> Cpu:
    return Cpu(name, cpu_flags(name), "test", here=False)


def a_package(name: str, *flags: str, version: str | None = "1.0", baseline: str | None = None) -> Package:
    needs = tuple(Need(0x1000, frozenset({flag}), f"needs {flag}") for flag in flags)
    own = Distribution(name, version, Path("/env"), Path(f"/env/{name}-{version}.dist-info")) if version else None
    built_for = (baseline, flags_of([baseline])) if baseline else None
    return Package(name, (Library(Path(f"/env/{name}/lib{name}.so"), needs),), own, built_for)


def test_a_healthy_environment_is_one_line() -> None:
    seen = CpuFeatures().judge(a_cpu("sandybridge"), [a_package("tensorflow", "avx"), a_package("scipy")], PYTHON)
    assert seen.mark == "ok" and not seen.findings
    assert seen.summary == "sandybridge: has all that 2 libraries need when loaded"
    assert seen.details == ("TensorFlow 1.0 needs AVX",)


def test_tensorflow_without_avx_is_an_error() -> None:
    seen = CpuFeatures().judge(a_cpu("nehalem"), [a_package("tensorflow", "avx", version="2.21.0")], PYTHON)
    (found,) = seen.findings
    assert found.severity == "error" and found.causes == ("illegal-instruction",)
    assert found.title == "TensorFlow 2.21.0 needs AVX when loaded, which nehalem lacks: SIGILL"
    assert "`needs avx` at 0x1000" in found.evidence[0].fact
    commands = [each.command for each in found.fixes]
    assert not any("pip install" in command for command in commands)  # no wheel helps
    assert any("-march=x86-64-v2" in command for command in commands)


def test_a_tensorflow_of_ones_own_is_replaced_by_the_wheel() -> None:
    own = a_package("tensorflow", "avx", "avx512f", version="2.21.0+native")
    (found,) = CpuFeatures().judge(a_cpu("haswell"), [own], PYTHON).findings
    assert found.title.endswith("needs AVX512F when loaded, which haswell lacks: SIGILL")
    assert found.fixes[0].command.endswith("tensorflow==2.21.0")


def test_numpy_refuses_a_cpu_below_its_baseline() -> None:
    seen = CpuFeatures().judge(a_cpu("penryn"), [a_package("numpy", version="2.4.6", baseline="X86_V2")], PYTHON)
    (found,) = seen.findings
    assert found.title == "numpy 2.4.6 needs POPCNT and SSE4_2, which penryn lacks: it refuses to be imported"
    assert found.fixes[0].command == f"{PYTHON} -m pip install 'numpy<2.4'"
    here = Cpu("Core 2 Duo", cpu_flags("penryn"), "/proc/cpuinfo")
    (found,) = CpuFeatures().judge(here, [a_package("numpy", version="2.4.6", baseline="X86_V2")], PYTHON).findings
    assert found.repair is not None
    assert found.repair.commands == (("/env/bin/python", "-m", "pip", "install", "numpy<2.4"),)
    assert found.repair.undo == (("/env/bin/python", "-m", "pip", "install", "numpy==2.4.6"),)


# ------------------------------------------------------------------------------------------------------ environments


def environment(folder: Path, **options: object) -> TargetEnvironment:
    interpreter = Interpreter(
        executable="/env/bin/python", version=(3, 11, 7), prefix="/env", base_prefix="/usr", path=(str(folder),)
    )
    return TargetEnvironment(interpreter, Options(**options))  # type: ignore[arg-type]


def test_libraries_are_named_by_their_package_or_their_file(tmp_path: Path) -> None:
    site = tmp_path / "site-packages"
    for name in ("fast.cpython-311-x86_64-linux-gnu.so", "ops/_ops.so", "mkl/libmkl_avx512.so.2", "zen2/a.so"):
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        compiled((site / name).parent, CONSTRUCTED, "-mavx512f", name=Path(name).name)
    (site / "ops" / "broken.so").write_bytes(b"\x7fELF and no more")
    op = compiled(tmp_path, CONSTRUCTED, "-mavx512f", name="my_op.so")
    seen = CpuFeatures().examine(environment(site, cpu="haswell", ops=(op,)))
    titles = sorted(finding.title.split(",")[0] for finding in seen.findings)
    assert titles == [
        "fast needs AVX512F when loaded",
        "my_op.so needs AVX512F when loaded",
        "ops needs AVX512F when loaded",
    ]
    assert CpuFeatures().examine(environment(site, cpu="skylake-server", ops=(op,))).mark == "ok"


LATER = 'extern "C" void scale(float *x, int n) { for (int i = 0; i < n; i++) x[i] = x[i] * 2.5f + 1.0f; }'


def test_a_deep_look_reads_all_code_of_packages_that_were_built_here(tmp_path: Path) -> None:
    site = tmp_path / "site-packages"
    for name, note in (("wheel", None), ("mine", "direct_url.json"), ("unknown", None)):
        (site / name).mkdir(parents=True)
        compiled(site / name, LATER, "-mavx512f", "-mprefer-vector-width=512", name=f"_{name}.so")
        if name != "unknown":
            (site / f"{name}-1.0.dist-info").mkdir()
        if note:
            (site / f"{name}-1.0.dist-info" / note).write_text("{}")
    assert CpuFeatures().examine(environment(site, cpu="haswell")).mark == "ok"
    seen = CpuFeatures().examine(environment(site, cpu="haswell", deep=True))
    assert {finding.title.split()[0] for finding in seen.findings} == {"_mine.so", "_unknown.so"}
    assert seen.mark == "warning"


def test_all_code_of_a_custom_op_is_read(tmp_path: Path) -> None:
    op = compiled(tmp_path, LATER, "-mavx512f", "-mprefer-vector-width=512", name="op.so")
    (found,) = CpuFeatures().examine(environment(tmp_path, cpu="haswell", ops=(op,))).findings
    assert found.severity == "warning"
    assert found.title == "op.so uses AVX512F, which haswell lacks: SIGILL where such code runs"
    assert CpuFeatures().examine(environment(tmp_path, cpu="skylake-server", ops=(op,))).mark == "ok"


def test_an_op_that_asks_the_cpu_is_trusted(tmp_path: Path) -> None:
    op = compiled(tmp_path, CHOSEN, name="op.so")
    assert CpuFeatures().examine(environment(tmp_path, cpu="haswell", ops=(op,))).mark == "ok"


def test_an_unknown_cpu_is_a_mistake_of_the_caller(tmp_path: Path) -> None:
    with pytest.raises(FaultlensError):
        CpuFeatures().examine(environment(tmp_path, cpu="pentium 17"))
