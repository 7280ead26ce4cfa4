"""What follows from the measured runs: peaks with their parts, and whether they fit."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from faultlens.forecasting.account import Account
from faultlens.forecasting.estimate import Estimate, hides_growth, largest_batch
from faultlens.records.forecast import MOST_BATCH, Bound, Forecast, How, Parts, Peak, SavePeak, Verdict
from faultlens.text.sizes import MIB

INFERENCE_SHARE, INFERENCE_FLOOR = 0.10, 24 * MIB
SAVING_SHARE = 0.10
# As measured on an H200, with Keras on JAX and torch (docs/forecast.md). CUDA's context with the libraries takes 550 to
# 850 MiB, less on smaller cards; TensorFlow leaves up to 1800 MiB more to them, and takes the rest for its tensors.
GPU_CONTEXT, GPU_LEAST_CONTEXT, GPU_MOST_CONTEXT = 700 * MIB, 300 * MIB, 2400 * MIB
# What grows with the batch, as a share of what it takes on a CPU: XLA merges some of it away, and adds some of its own.
GPU_LEAST, GPU_MOST, GPU_MOST_RECURRENT = 0.2, 3.0, 6.0
GPU_UPDATE = 3.25  # sizes of all gradients that an update of the weights may take, when the activations are gone


def forecast(account: Account) -> Forecast:
    training = _training(account)
    options = account.options
    fitting = _largest(account)
    return Forecast(
        subject=account.subject,
        model=account.model["name"],
        batch=options.batch,
        parameters=account.model["parameters"],
        optimizer=account.model["optimizer_name"],
        versions={},
        bound=options.bound,
        training=training,
        evaluation=_inference(account, "evaluate"),
        inference=_inference(account, "predict"),
        saving=_saving(account, training),
        lower_bound=lower_bound(account),
        largest_batch=fitting,
        points=tuple(account.points),
        assumptions=tuple(_assumptions(account)),
        notes=tuple(account.largest.get("notes", ())),
    )


def lower_bound(account: Account) -> int:
    """From sizes alone: what the process holds with the model built, the optimizer, one batch, and its buffers."""
    batch = account.example * account.options.batch
    return account.base + int(account.model["optimizer"]) + batch + account.buffers


def _training(account: Account) -> Peak:
    batch, model = account.options.batch, account.model
    found = account.estimate(batch)
    weights, gradients, optimizer = model["weights"], model["trainable"], model["optimizer"]
    if account.options.bound.gpu:
        return _on_gpu(account, weights, gradients, optimizer, found)
    low, high = found.low, found.high
    if account.too_much is not None and account.too_much.batch <= batch:
        low = max(low, account.too_much.highest)  # it was seen to take so much
        high = max(high, low)
    peak = min(max(found.peak, low), high)
    parts = _parts(peak, account, weights, gradients, optimizer, found.per_example * batch, account.pipeline)
    extra = account.buffers
    how: How = "measured" if found.measured else "extrapolated"
    return _judged(peak + extra, low + extra, high + extra, parts, how, account.options.bound)


def _on_gpu(account: Account, weights: int, gradients: int, optimizer: int, found: Estimate) -> Peak:
    """What lies on the GPU are the tensors; Python, the graphs and the pipeline stay with the host."""
    batch = account.options.batch
    grows = max(round(found.per_example * batch) - account.pipeline, 0)
    inputs = account.example * batch
    parts = Parts(
        weights=weights,
        gradients=gradients,
        optimizer=optimizer,
        activations=grows,
        input_pipeline=inputs,
        runtime=GPU_CONTEXT + max(gradients - grows, 0),  # the update of the weights
    )
    peak = weights + gradients + optimizer + grows + inputs + parts.runtime
    low = weights + optimizer + inputs + round(grows * GPU_LEAST) + GPU_LEAST_CONTEXT  # gradients may be sparse
    most = GPU_MOST_RECURRENT if account.model.get("recurrent") else GPU_MOST
    working = max(grows * most, gradients * GPU_UPDATE)
    high = weights + gradients + optimizer + inputs + round(working) + GPU_MOST_CONTEXT
    return _judged(peak, low, high, parts, "extrapolated", account.options.bound)


def _parts(
    peak: int, account: Account, weights: int, gradients: int, optimizer: int, grows: float, pipeline: int
) -> Parts:
    """What is known exactly comes first; the rest is shared between what grows with the batch and the runtime."""
    rest = max(peak - weights - optimizer, 0)
    gradients = min(gradients, rest)
    rest -= gradients
    pipeline = min(pipeline, rest)
    rest -= pipeline
    activations = min(max(round(grows) - pipeline, 0), rest)
    return Parts(
        weights=weights,
        gradients=gradients,
        optimizer=optimizer,
        activations=activations,
        input_pipeline=pipeline + account.buffers,
        runtime=max(peak - weights - optimizer - gradients - pipeline - activations, 0),
    )


def _inference(account: Account, phase: str) -> Peak | None:
    ran = account.inference
    if ran is None or account.options.bound.gpu:
        return None
    measured = max(ran.result[phase]["peaks"])
    built = int(ran.result["built"])
    batch = account.options.batch
    # What the phase took on top of the model grows with the batch, at the most.
    extra = round((measured - built) * batch / ran.batch)
    peak = built + extra
    weights, optimizer = account.model["weights"], 0
    grows = max(extra, 0) if ran.batch != batch else measured - built
    parts = _parts(peak, account, weights, 0, optimizer, min(grows, _growing(account, grows)), account.pipeline)
    parts = replace(parts, input_pipeline=parts.input_pipeline - account.buffers)
    doubt = max(round(extra * INFERENCE_SHARE), INFERENCE_FLOOR)
    how: How = "measured" if ran.batch == batch else "extrapolated"
    return _judged(peak, max(peak - doubt, built), peak + doubt, parts, how, account.options.bound)


def _growing(account: Account, most: float) -> float:
    """A forward pass grows with the batch as the training does, or less."""
    return min(most, account.estimate(account.options.batch).per_example * account.options.batch)


def _saving(account: Account, training: Peak) -> SavePeak | None:
    told = account.saves.get(account.options.save)
    if told is None or "error" in told or account.options.bound.gpu:
        return None
    extra = max(int(told["peak"]) - int(told["before"]), 0)
    return SavePeak(format=account.options.save, extra=extra, peak=saving_peak(account, extra, training))


def saving_peak(account: Account, extra: int, training: Peak) -> Peak:
    """The save follows a step: what the training then still holds, and the save's own."""
    held = max(int(account.largest["train"]["after"]), account.base)
    peak = held + extra + account.buffers
    doubt = max(round(peak * SAVING_SHARE), INFERENCE_FLOOR)
    parts = replace(
        training.parts,
        gradients=0,
        activations=0,
        runtime=max(peak - training.parts.weights - training.parts.optimizer - training.parts.input_pipeline, 0),
    )
    return _judged(peak, peak - doubt, peak + doubt, parts, "measured", account.options.bound)


def _largest(account: Account) -> int | None:
    options = account.options
    if options.bound.gpu:
        return _largest_on_gpu(account)
    limit = options.bound.limit - account.buffers
    found = largest_batch(account.series, account.base, limit, MOST_BATCH, account.known)
    if found is not None and account.too_much is not None and account.options.bound.limit <= account.too_much.highest:
        found = min(found, account.too_much.batch - 1)
    return found


def _largest_on_gpu(account: Account) -> int | None:
    def fits(batch: int) -> bool:
        wanted = account._replace(options=account.options._replace(batch=batch))
        return _training(wanted).high <= account.options.bound.limit

    if not fits(1):
        return None
    batch = 1
    while batch < MOST_BATCH and fits(batch * 2):
        batch *= 2
    step = batch // 2
    while step:
        batch += step if fits(batch + step) else 0
        step //= 2
    return batch


def _judged(peak: int, low: int, high: int, parts: Parts, how: How, bound: Bound) -> Peak:
    verdict: Verdict = "fits" if high <= bound.limit else "does not fit" if low > bound.limit else "too close to tell"
    return Peak(peak=peak, low=low, high=high, parts=parts, how=how, verdict=verdict)


def _assumptions(account: Account) -> list[str]:
    model: dict[str, Any] = account.model
    told = []
    if account.example and not account.options.spec.fields:
        told.append("examples were made up from the inputs and the loss that the model declares")
    if not account.options.spec.shuffle and account.options.data is None:
        told.append("no shuffle buffer and no cache: say them with --data-spec 'shuffle=10000'")
    if model["accumulates"] > 1:
        told.append(f"gradients are accumulated over {model['accumulates']} steps")
    if hides_growth(account.series, account.base, account.known):
        told.append(
            "the runs do not show how memory grows with the batch (batches are small, or as much was in use before):"
            " larger ones are estimated from the outputs of the layers"
        )
    if account.inference is None:
        told.append("evaluation and inference could not be measured")
    if account.options.bound.gpu:
        told.append(
            "measured on the CPU: what grows with the batch may take from a fifth to three times as much on"
            " a GPU, six times where layers are recurrent; the range is as wide as that"
        )
    return told


def timed(found: Forecast, seconds: float, import_seconds: float, versions: dict[str, str]) -> Forecast:
    return replace(found, seconds=round(seconds, 2), import_seconds=round(import_seconds, 2), versions=versions)
