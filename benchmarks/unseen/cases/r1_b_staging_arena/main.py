"""Evaluate a small model over batches that are staged in page-aligned memory."""
from evaluate import build_model, evaluate_batches
from staging import StagingArena

import numpy as np


def make_batches(arena, count, rows, cols):
    rng = np.random.default_rng(7)
    batches = []
    for _ in range(count):
        staged = arena.allocate((rows, cols))
        staged[...] = rng.normal(size=(rows, cols)).astype(np.float32)
        batches.append(arena.as_tensor(staged))
    return batches


def main():
    model = build_model(cols=256)
    with StagingArena(capacity=32 << 20) as arena:
        batches = make_batches(arena, count=6, rows=2048, cols=256)
        print("staged", len(batches), "batches,", arena.used >> 20, "MiB")
    mean, worst = evaluate_batches(model, batches)
    print("mean score %.4f, worst %.4f" % (mean, worst))


if __name__ == "__main__":
    main()
