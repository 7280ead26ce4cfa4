"""How much memory of a GPU does a training take? For a machine that has one, and Keras on torch or JAX.

    python forecast_gpu_truth.py all OUT.json [BACKEND …]   # every model
    python forecast_gpu_truth.py torch FILE MODEL           # one of them, told on stdout

What the allocator gave out at most, what it held, and what the driver says the process has (which is more: CUDA's
context, and the libraries). Training and inference each begin with the smallest batch: JAX knows no other peak than
that of the whole process."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
import threading
import time
import types
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
# tuned: the algorithms of cuDNN are tried out, which takes memory if there is some; XLA does it unless told not to.
BACKENDS = ("jax", "jax-untuned", "torch", "torch-tuned")
AT_ONCE = 16
STEPS = 6
SECONDS = 280
MADE_WITH = (
    "dense", "large_weights", "conv_plain", "conv_residual", "conv_depthwise", "conv_up", "conv_signal", "recurrent",
    "attention", "embeddings",
)  # fmt: skip
EXAMINED = (
    "resnet50", "mobilenet_v2", "frozen_backbone", "mlp_wide", "heavy_weights", "subclassed", "recommender",
    "cnn_small", "vgg", "convnext_like", "unet", "autoencoder", "cnn_3d", "lstm", "audio_cnn", "text_cnn",
    "transformer_small", "language_model", "long_attention", "vision_transformer", "mlp_mixer",
)  # fmt: skip


def main() -> None:
    if sys.argv[1] == "all":
        measure_all(Path(sys.argv[2]))
    else:
        print("\n" + json.dumps(measured(*sys.argv[1:4])))


def measure_all(out: Path) -> None:
    files = {"forecast_models": EXAMINED, "forecast_gpu_models": MADE_WITH}
    backends = sys.argv[3:] or BACKENDS
    jobs = [(backend, file, name) for backend in backends for file, names in files.items() for name in names]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        results = []
        for ended in as_completed([pool.submit(in_process, *job) for job in jobs]):
            results.append(ended.result())
            out.write_text(json.dumps(results, indent=1))


def in_process(backend: str, file: str, name: str) -> dict[str, Any]:
    started = time.monotonic()
    variables = {
        **os.environ,
        "KERAS_BACKEND": backend.partition("-")[0],
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        "OMP_NUM_THREADS": "2",
    }
    if backend == "jax-untuned":
        variables["XLA_FLAGS"] = "--xla_gpu_autotune_level=0"
    try:
        ended = subprocess.run(
            [sys.executable, __file__, backend, file, name],
            env=variables, capture_output=True, text=True, timeout=SECONDS, check=False,
        )  # fmt: skip
        said = ended.stdout.strip().splitlines()
        told = json.loads(said[-1]) if ended.returncode == 0 else {"error": ended.stderr[-600:]}
    except subprocess.TimeoutExpired:
        told = {"error": "took too long"}
    seconds = round(time.monotonic() - started, 1)
    print(backend, name, seconds, told.get("error", ""), flush=True)
    return {"backend": backend, "file": file, "model": name, "seconds": seconds, **told}


def measured(backend: str, file: str, name: str) -> dict[str, Any]:
    gpu = Jax() if backend.startswith("jax") else Torch(tuned=backend.endswith("tuned"))
    context = gpu.held_by_driver() - gpu.now()["held"]
    module = imported(file)
    entry = module.MODELS[name]
    batches, spec = (entry.batches, entry.data_spec) if hasattr(entry, "batches") else entry
    model = getattr(module, f"build_{name}")()
    points = []
    for phase in ("training",) if backend == "jax-untuned" else ("inference", "training"):
        for batch in batches:
            inputs, labels = examples(model, spec, batch)
            gpu.begin()
            with Sampler(gpu) as sampler:
                if phase == "training":
                    model.fit(inputs, labels, batch_size=batch, epochs=STEPS, verbose=0)
                else:
                    for _ in range(2):
                        model.predict(inputs, batch_size=batch, verbose=0)
            points.append({"phase": phase, "batch": batch, **gpu.peak(), "driver": sampler.most})
    import keras

    sizes = {"weights": model.weights, "trainable": model.trainable_weights, "optimizer": model.optimizer.variables}
    return {
        "context": context,
        "context_after": gpu.held_by_driver() - gpu.now()["held"],
        "versions": {"keras": keras.__version__, **gpu.versions()},
        **{key: sum(size_of(variable) for variable in variables) for key, variables in sizes.items()},
        "points": points,
    }


def size_of(variable: Any) -> int:
    import numpy

    return int(numpy.prod(variable.shape)) * {"bfloat16": 2}.get(str(variable.dtype), 0) or int(
        numpy.prod(variable.shape) * numpy.dtype(str(variable.dtype).removeprefix("torch.")).itemsize
    )


def imported(file: str) -> Any:
    """Some of the models would use TensorFlow: those are not built here, but their file wants to be imported."""
    import keras  # noqa: F401  (it looks for TensorFlow itself)

    stub = "tensorflow" not in sys.modules
    if stub:
        sys.modules["tensorflow"] = types.ModuleType("tensorflow")
    try:
        return importlib.import_module(file)
    finally:
        if stub:
            del sys.modules["tensorflow"]


# ------------------------------------------------------------------------------------------- examples


def examples(model: Any, spec: str | None, batch: int) -> tuple[Any, Any]:
    import numpy

    rng = numpy.random.default_rng(1)
    told = {
        name: (dtype, tuple(int(part) for part in shape.split(",") if part), int(bound or 2))
        for name, dtype, shape, bound in re.findall(r"([\w.]+)=(\w+)\[([\d,]*)\](?:<(\d+))?", spec or "")
    }

    def made(dtype: str, shape: tuple[int, ...], bound: int) -> Any:
        if "int" in dtype:
            return rng.integers(0, bound, (batch, *shape)).astype(dtype)
        return rng.random((batch, *shape), dtype="float32").astype(dtype)

    if getattr(model, "_inputs_struct", None) is None:
        inputs = made(*told["x"])
        return inputs, made(*told["y"])
    inputs = [
        made(*told[tensor.name]) if tensor.name in told else made(str(tensor.dtype), tuple(tensor.shape[1:]), 2)
        for tensor in model.inputs
    ]
    shape = tuple(model.outputs[0].shape[1:])
    sparse = "sparse" in re.sub(r"(?<!^)(?=[A-Z])", "_", str(getattr(model.loss, "name", model.loss))).lower()
    labels = made("int32", shape[:-1], shape[-1]) if sparse else made("float32", shape, 2)
    return (inputs[0] if len(inputs) == 1 else inputs), labels


# ------------------------------------------------------------------------------------------ the GPU


class Driver:
    """What the driver says this process has."""

    def __init__(self) -> None:
        import pynvml

        self._nvml = pynvml
        pynvml.nvmlInit()
        self._handle = pynvml.nvmlDeviceGetHandleByIndex(0)

    def held_by_driver(self) -> int:
        processes = self._nvml.nvmlDeviceGetComputeRunningProcesses(self._handle)
        return sum(each.usedGpuMemory or 0 for each in processes if each.pid == os.getpid())


class Torch(Driver):
    def __init__(self, tuned: bool) -> None:
        super().__init__()
        import torch

        torch.backends.cudnn.benchmark = tuned

        self._torch = torch
        torch.zeros(1, device="cuda")

    def versions(self) -> dict[str, str]:
        return {"torch": self._torch.__version__, "cudnn": str(self._torch.backends.cudnn.version())}

    def now(self) -> dict[str, int]:
        cuda = self._torch.cuda
        return {"given": cuda.memory_allocated(), "held": cuda.memory_reserved()}

    def begin(self) -> None:
        import gc

        gc.collect()
        self._torch.cuda.empty_cache()
        self._torch.cuda.reset_peak_memory_stats()

    def peak(self) -> dict[str, int]:
        cuda = self._torch.cuda
        return {"given": cuda.max_memory_allocated(), "held": cuda.max_memory_reserved()}


class Jax(Driver):
    def __init__(self) -> None:
        super().__init__()
        import jax

        self._jax = jax
        self._device = jax.devices()[0]
        jax.numpy.zeros(1).block_until_ready()

    def versions(self) -> dict[str, str]:
        return {"jax": self._jax.__version__}

    def now(self) -> dict[str, int]:
        stats = self._device.memory_stats()
        return {"given": stats["bytes_in_use"], "held": stats.get("pool_bytes", stats.get("bytes_reserved", 0))}

    def begin(self) -> None:
        import gc

        gc.collect()

    def peak(self) -> dict[str, int]:
        stats = self._device.memory_stats()
        return {"given": stats["peak_bytes_in_use"], "held": stats.get("peak_pool_bytes", 0)}


class Sampler:
    def __init__(self, driver: Driver) -> None:
        self.most = 0
        self._driver = driver
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample)

    def _sample(self) -> None:
        while not self._over.wait(0.02):
            self.most = max(self.most, self._driver.held_by_driver())

    def __enter__(self) -> Sampler:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.most = max(self.most, self._driver.held_by_driver())
        self._over.set()
        self._thread.join()


if __name__ == "__main__":
    main()
