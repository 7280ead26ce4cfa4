"""`faultlens op sanitize` on real CUDA kernels: the line of the kernel, the line that launched it, the line of Python.

Where there is no GPU, what compute-sanitizer 2025.3 wrote on a real one stands in (an H200)."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from faultlens.custom_op.new.write import write
from faultlens.custom_op.sanitize import tools
from faultlens.custom_op.sanitize.findings import Op, finding_of, line_for, without_doubles
from faultlens.custom_op.sanitize.parsers import compute_sanitizer
from faultlens.records.op_finding import OpFinding
from sanitize_command import sanitized

GPU = Path(__file__).parent / "gpu"
RECORDED = Path(__file__).parents[1] / "recorded" / "sanitizers" / "cuda"
SOURCE, LIBRARY = Path("/src/planted.cu"), Path("/src/libplanted.so")  # where they lay when it was recorded


def _has_gpu() -> bool:
    if shutil.which("nvidia-smi") is None:
        return False
    return subprocess.run(["nvidia-smi", "-L"], capture_output=True).returncode == 0


needs_gpu = pytest.mark.skipif(not _has_gpu(), reason="needs an NVIDIA GPU")
needs_nvcc = pytest.mark.skipif(tools.nvcc() is None, reason="needs nvcc")
needs_compute_sanitizer = pytest.mark.skipif(
    tools.COMPUTE_SANITIZER.find() is None, reason="needs compute-sanitizer of NVIDIA's CUDA toolkit"
)
real = [needs_gpu, needs_nvcc, needs_compute_sanitizer, pytest.mark.timeout(300)]


def line_of(text: str, file: str = "planted.cu") -> int:
    lines = (GPU / file).read_text().splitlines()
    (number,) = [number for number, line in enumerate(lines, 1) if text in line]
    return number


# Function of planted.cu, tool, rule, text of the guilty line.
PLANTED = [
    ("past_the_end", "memcheck", "gpu-out-of-bounds", "if (i <= count) values[i]"),
    ("in_a_function", "memcheck", "gpu-out-of-bounds", "// one too far"),
    ("shared_past_the_end", "memcheck", "gpu-out-of-bounds", "part[threadIdx.x + 1] = 1.0f"),
    ("wild_index", "memcheck", "gpu-wild-access", "picked[i] = values[indices[i]];"),
    ("freed", "memcheck", "gpu-wild-access", "values[i] *= 2.0f"),
    ("misaligned", "memcheck", "gpu-misaligned", "*reinterpret_cast<const float4*>"),
    ("leak", "memcheck", "gpu-leak", "return cudaMalloc("),
    ("freed_twice", "memcheck", "gpu-call-failed", "return static_cast<int>(cudaFree(values));"),
    ("too_many_threads", "memcheck", "gpu-call-failed", "Doubles<<<1, 4096>>>"),
    ("copies_too_much", "memcheck", "gpu-call-failed", "cudaMemcpy(values, host, 1 << 30"),
    ("race", "racecheck", "gpu-data-race", "part[threadIdx.x] = values[threadIdx.x];  // race"),
    ("uninitialised", "initcheck", "gpu-uninitialised", "out[threadIdx.x] = values[threadIdx.x] + 1.0f;"),
    ("copies_unset", "initcheck", "gpu-uninitialised", "cudaMemcpy(host, values, sizeof host"),
    ("barrier", "synccheck", "gpu-barrier", "if (threadIdx.x < 16) __syncthreads();"),
]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As users build it: no debug information, no lines."""
    made = tmp_path_factory.mktemp("planted") / "libplanted.so"
    words = [str(tools.nvcc()), "-O2", "-shared", "-Xcompiler", "-fPIC", str(GPU / "planted.cu"), "-o", str(made)]
    subprocess.run(words, check=True)
    return made


class TestOnAGpu:
    pytestmark = real

    @pytest.mark.parametrize(("function", "tool", "rule", "text"), PLANTED, ids=[each[0] for each in PLANTED])
    def test_the_guilty_line(
        self, library: Path, tmp_path: Path, function: str, tool: str, rule: str, text: str
    ) -> None:
        program = ["--", sys.executable, GPU / "drive.py", library, function]
        found, _ = sanitized([GPU / "planted.cu", library, f"--{tool}", *program], tmp_path, 1)
        told = {(each["rule"], each["span"]["line"]): each for each in found["findings"]}
        assert list(told) == [(rule, line_of(text))]
        (finding,) = told.values()
        if rule != "gpu-data-race":  # the tool does not tell who launched it
            assert finding["called_from"]["line"] == line_of("return getattr(library, name)()", "drive.py")

    def test_nothing_about_healthy_kernels(self, library: Path, tmp_path: Path) -> None:
        program = ["--", sys.executable, GPU / "drive.py", library, "healthy"]
        found, _ = sanitized([GPU / "planted.cu", library, "--all", *program], tmp_path, 0)
        assert found["findings"] == []
        assert {line.split(":")[0] for line in found["done"]} > {"memcheck", "racecheck", "initcheck", "synccheck"}

    def test_nothing_about_templates_of_cuda(self, tmp_path: Path) -> None:
        library = tmp_path / "templates.so"
        words = ["-O2", "-std=c++17", "-shared", "-Xcompiler", "-fPIC", str(GPU / "templates.cu"), "-o", str(library)]
        subprocess.run([str(tools.nvcc()), *words], check=True)
        program = ["--", sys.executable, GPU / "drive.py", library, "sums_and_sorts"]
        checks = ["--memcheck", "--racecheck", "--initcheck", "--synccheck"]
        found, said = sanitized([GPU / "templates.cu", library, *checks, *program], tmp_path, 0)
        assert said.count("sums_and_sorts 0\n") == 4
        assert found["findings"] == []

    def test_known_by_its_source_alone(self, library: Path, tmp_path: Path) -> None:
        program = ["--", sys.executable, GPU / "drive.py", library, "past_the_end"]
        found, _ = sanitized([GPU / "planted.cu", *program], tmp_path, 1)
        assert [(each["rule"], each["span"]["line"]) for each in found["findings"]] == [
            ("gpu-out-of-bounds", line_of("if (i <= count) values[i]"))
        ]

    def test_a_library_without_source_or_lines(self, library: Path, tmp_path: Path) -> None:
        lone = shutil.copy(library, tmp_path / "lone.so")
        program = ["--", sys.executable, GPU / "drive.py", lone, "past_the_end"]
        found, _ = sanitized([lone, *program], tmp_path, 1)
        (finding,) = found["findings"]
        assert (finding["rule"], finding["op"]) == ("gpu-out-of-bounds", "WritesPastTheEnd")
        assert "-lineinfo" in finding["fixes"][-1]["title"]

    def test_a_tensor_in_the_pool_of_others(self, library: Path, tmp_path: Path) -> None:
        """Their pool would hold both tensors in one allocation, and nothing would be out of bounds."""
        pytest.importorskip("torch")
        program = ["--", sys.executable, GPU / "drive.py", library, "doubles_in_place", "torch"]
        found, _ = sanitized([GPU / "planted.cu", library, *program], tmp_path, 1)
        assert [(each["rule"], each["span"]["line"]) for each in found["findings"]] == [
            ("gpu-out-of-bounds", line_of("if (i <= count) values[i]"))
        ]

    def test_the_kernel_of_the_skeleton(self, tmp_path: Path) -> None:
        """The one that `faultlens op new` writes, called with rows in and out of range, and none."""
        np = pytest.importorskip("numpy")
        write("fast_norm", tmp_path)
        source = tmp_path / "calls.cu"
        source.write_text(CALLS)
        made = tmp_path / "calls.so"
        words = [str(tools.nvcc()), "-O2", "-std=c++17", "-shared", "-Xcompiler", "-fPIC", str(source), "-o", str(made)]
        subprocess.run(words, check=True, cwd=tmp_path)
        values = np.arange(12, dtype=np.float32).reshape(4, 3)
        for rows in ([0, 3, 1], [2, -1, 4, 2_000_000_000], []):
            indices, picked = np.array(rows, np.int32), np.full((len(rows), 3), 7, np.float32)
            call = ctypes.CDLL(str(made)).scaled
            arrays = [array.ctypes.data_as(ctypes.c_void_p) for array in (values, indices, picked)]
            assert call(*arrays, len(rows), 4, 3) == 0
            expected = [2 * values[row] if 0 <= row < 4 else np.zeros(3) for row in rows]
            assert picked.tolist() == [list(row) for row in expected]


CALLS = """\
#include "fast_norm_gpu.cu"

extern "C" int scaled(const float* values, const int* rows, float* picked, int count, int height, int width) {
  float *on_gpu, *out;
  int* indices;
  cudaMalloc(&on_gpu, height * width * 4);
  cudaMalloc(&out, count * width * 4 + 4);
  cudaMalloc(&indices, count * 4 + 4);
  cudaMemcpy(on_gpu, values, height * width * 4, cudaMemcpyHostToDevice);
  cudaMemcpy(indices, rows, count * 4, cudaMemcpyHostToDevice);
  const char* error = fast_norm::LaunchFastNorm<float, int>(nullptr, on_gpu, indices, 2.0f, out, count, height, width);
  cudaMemcpy(picked, out, count * width * 4, cudaMemcpyDeviceToHost);
  const int status = error ? -1 : static_cast<int>(cudaDeviceSynchronize());
  cudaFree(on_gpu);
  cudaFree(out);
  cudaFree(indices);
  return status;
}
"""


def read(text: str, sources: tuple[Path, ...] = (SOURCE,)) -> tuple[OpFinding, ...]:
    op = Op(sources, LIBRARY)
    reports = compute_sanitizer.parse(text)
    return without_doubles(found for each in reports if (found := finding_of(each, op, line_for(each, []))))


def recorded(name: str) -> tuple[OpFinding, ...]:
    return read((RECORDED / f"{name}.txt").read_text())


class TestRecordedOnAGpu:
    @pytest.mark.parametrize(("function", "tool", "rule", "text"), PLANTED, ids=[each[0] for each in PLANTED])
    def test_the_guilty_line(self, function: str, tool: str, rule: str, text: str) -> None:
        (finding,) = recorded(f"{function}.{tool}")
        assert (finding.rule, finding.span and finding.span.line) == (rule, line_of(text))
        if rule != "gpu-data-race":
            assert finding.called_from and finding.called_from.file == "/src/drive.py"
            assert finding.called_from.line == line_of("return getattr(library, name)()", "drive.py")

    @pytest.mark.parametrize("tool", ["memcheck", "racecheck", "initcheck", "synccheck"])
    def test_nothing_about_healthy_kernels(self, tool: str) -> None:
        assert recorded(f"healthy.{tool}") == ()

    def test_in_plain_words(self) -> None:
        assert [recorded(name)[0].title for name in ("past_the_end.memcheck", "misaligned.memcheck")] == [
            "write of 4 bytes of global GPU memory, 0 bytes past the end of an allocation of 400 bytes",
            "read of 16 bytes of global GPU memory at an address that is not a multiple of 16",
        ]
        assert recorded("too_many_threads.memcheck")[0].title == (
            "cudaLaunchKernel fails: invalid argument (cudaErrorInvalidValue)"
        )

    def test_kernel_launch_and_the_other_thread(self) -> None:
        (past,) = recorded("past_the_end.memcheck")
        launch = line_of("WritesPastTheEnd<<<1, 128>>>")
        assert (past.op, [(each.says, each.span.line) for each in past.related]) == (
            "WritesPastTheEnd",
            [("launched here", launch)],
        )
        (race,) = recorded("race.racecheck")
        assert [(each.says, each.span.line) for each in race.related] == [
            ("read by another thread", line_of("for (int i = 0; i < 64; ++i) total += part[i];  // raced"))
        ]

    def test_what_follows_from_a_fault_is_not_told(self) -> None:
        """Later calls fail, and nothing is freed any more: both stand in the log."""
        text = (RECORDED / "past_the_end.memcheck.txt").read_text()
        assert "call to cudaFree" in text and "Leaked 400 bytes" in text
        assert [each.rule for each in read(text)] == ["gpu-out-of-bounds"]

    def test_a_library_without_lines(self) -> None:
        (finding,) = read((RECORDED / "without_lines.memcheck.txt").read_text(), sources=())
        assert (finding.rule, finding.op, finding.span) == ("gpu-out-of-bounds", "WritesPastTheEnd", None)
        assert "-lineinfo" in finding.fixes[-1].title

    def test_kernels_of_others_are_none_of_the_ops_business(self) -> None:
        text = (RECORDED / "past_the_end.memcheck.txt").read_text()
        assert read(text.replace("/src/planted.cu", "/env/other.cu").replace("libplanted.so", "libother.so")) == ()
        pool = """\
========= Leaked 1,048,576 bytes at 0x7f0000000000
=========     Saved host backtrace up to driver entry point at allocation time
=========         Host Frame: cuMemAlloc_v2 [0x1]
=========                        in /usr/lib/libcuda.so.1
=========         Host Frame: tsl::BFCAllocator::Extend(unsigned long) [0x2]
=========                        in /env/libtensorflow_framework.so.2
=========         Host Frame: MyOp::Compute() in /src/planted.cu:20 [0x3]
=========                        in /src/libplanted.so
=========
"""
        assert read(pool) == ()  # kept by the pool, for everybody

    def test_older_releases_word_the_place_otherwise(self) -> None:
        """As in reports of CUDA 12.2."""
        older = """\
========= Invalid __global__ write of size 4 bytes
=========     at 0xd0 in /src/planted.cu:11:WritesPastTheEnd(float *, int)
=========     by thread (100,0,0) in block (0,0,0)
=========     Address 0x7f87c0800190 is out of bounds
=========     Device Frame:/src/planted.cu:20:Outer(float *)
=========     Saved host backtrace up to driver entry point at kernel launch time
=========     Host Frame:past_the_end [0x98f0]
=========                in /src/libplanted.so
=========
"""
        (finding,) = read(older)
        assert (finding.rule, finding.span and finding.span.line, finding.op) == ("gpu-out-of-bounds", 11, "Outer")

    @pytest.mark.parametrize("cut", range(0, 2400, 97))
    def test_a_log_that_ends_anywhere(self, cut: int) -> None:
        text = (RECORDED / "past_the_end.memcheck.txt").read_text()
        assert {each.rule for each in read(text[:cut])} <= {"gpu-out-of-bounds"}


class TestWithoutAGpu:
    def test_ops_without_kernels_are_told_so(self, tmp_path: Path) -> None:
        source = tmp_path / "plain.c"
        source.write_text("int one(void) { return 1; }\n")
        _, said = sanitized([source, "--racecheck", "--", sys.executable, "-c", "pass"], tmp_path, 2)
        assert "--racecheck looks at CUDA kernels, and" in said

    @pytest.mark.skipif(tools.COMPUTE_SANITIZER.find() is not None, reason="compute-sanitizer is here")
    def test_what_is_missing_is_named(self, tmp_path: Path) -> None:
        _, said = sanitized([GPU / "planted.cu", "--", sys.executable, "-c", "pass"], tmp_path, 2)
        assert "--memcheck needs compute-sanitizer, which is missing. It comes with NVIDIA's CUDA toolkit." in said

    @needs_nvcc
    def test_kernels_are_built_beside_checked_code(self, tmp_path: Path) -> None:
        """Host code with AddressSanitizer, kernels as they are: one library, which is loaded and reports."""
        (tmp_path / "kernel.cu").write_text("__global__ void Fill(float* out) { out[threadIdx.x] = 1.0f; }\n")
        (tmp_path / "host.cc").write_text(
            'extern "C" int past(int n) {\n  int* block = new int[n];\n  block[n] = 1;  // heap write\n'
            "  const int last = block[n - 1];\n  delete[] block;\n  return last;\n}\n"
        )
        plain = tmp_path / "host.so"
        subprocess.run(["g++", "-shared", "-fPIC", tmp_path / "host.cc", "-o", plain], check=True)
        program = ["--", sys.executable, "-c", f"import ctypes; ctypes.CDLL({str(plain)!r}).past(4)"]
        sources = [tmp_path / "kernel.cu", tmp_path / "host.cc"]
        found, _ = sanitized([*sources, plain, "--asan", *program], tmp_path, 1)
        assert ("heap-overflow", 3) in {(each["rule"], each["span"]["line"]) for each in found["findings"]}
