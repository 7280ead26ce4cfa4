"""Claim: saving a SavedModel needs a lot of memory, a `.keras` or `.h5` file does not.
Reality: reversed. SavedModel and checkpoints need a few MiB; `.keras` and `.h5` twice the largest variable or more.
"""

import ctypes
import gc
from pathlib import Path

import keras
import tensorflow as tf
from endings import ending

MIB = 1 << 20


def peak_and_now():
    lines = Path("/proc/self/status").read_text().splitlines()
    fields = dict(line.split(":") for line in lines if line.startswith(("VmHWM", "VmRSS")))
    return [int(fields[name].split()[0]) * 1024 for name in ("VmHWM", "VmRSS")]


def measure(save):
    model = keras.Sequential([keras.Input((2500,))] + [keras.layers.Dense(2500) for _ in range(2)])
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # or what making the model left free is used again
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    _, before = peak_and_now()
    save(model)
    peak, _ = peak_and_now()
    print(f"extra {(peak - before) // MIB} MiB", flush=True)


SAVERS = {
    "checkpoint": lambda model: tf.train.Checkpoint(model=model).write("checkpoint"),
    "saved_model": lambda model: tf.saved_model.save(model, "saved_model"),
    "keras": lambda model: model.save("model.keras"),
    "h5": lambda model: model.save("model.h5"),
    "weights_h5": lambda model: model.save_weights("model.weights.h5"),
}


def main():
    print(f"weights: {2 * (2500 * 2500 + 2500) * 4 // MIB} MiB, the largest {2500 * 2500 * 4 // MIB} MiB")
    for name, save in SAVERS.items():
        end = ending(lambda save=save: measure(save))
        print(f"{name}: {next(line for line in end.text.splitlines() if line.startswith('extra'))}")


if __name__ == "__main__":
    main()
