"""What would make it smaller, and by how much: measured where that is possible, estimated else."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from faultlens.forecasting import judge
from faultlens.forecasting.account import Account
from faultlens.forecasting.measuring import Measuring
from faultlens.records.forecast import Advice, Forecast
from faultlens.text.sizes import in_words

WORTH = 0.05  # of the peak; less is not worth a word
TIGHT = 0.8  # of the limit: below it nobody asks for advice
SMALLER_BUFFER = 10
FEWER_PARTS = (2, 4, 8, 16, 32, 64)
MIXED, MIXED_GPU = "mixed_bfloat16", "mixed_float16"
MIXED_STEPS = 8
LIGHT_FORMATS = ("checkpoint", ".weights.h5")


def with_advice(found: Forecast, measuring: Measuring) -> Forecast:
    """Only where it is needed: further runs take time."""
    account = measuring.account()
    limit = account.options.bound.limit
    saving = found.saving.peak.high if found.saving else 0
    if max(found.training.high, saving) <= TIGHT * limit:
        return found
    given = [
        *_smaller_batch(found, account),
        *_mixed_precision(found, measuring, account),
        *_buffers(found, account),
        *_lighter_optimizer(found, account),
        *_other_format(found, measuring, account),
    ]
    high = found.training.high
    judged = [
        replace(each, fits=high - each.gain <= limit) for each in given if each.gain > WORTH * found.training.peak
    ]
    return replace(found, advice=tuple(sorted(judged, key=lambda each: -each.gain)))


def _smaller_batch(found: Forecast, account: Account) -> Iterator[Advice]:
    """Gradients summed up over several small batches are those of a large one."""
    if account.model["accumulates"] > 1 or account.options.bound.gpu:
        return
    batch, limit = found.batch, account.options.bound.limit
    sums = int(account.model["trainable"])
    for parts in FEWER_PARTS:
        if batch % parts or batch == parts:
            continue
        small = account.estimate(batch // parts)
        if small.high + sums + account.buffers <= limit:
            yield Advice(
                title=f"accumulate gradients: a batch of {batch // parts}, {parts} times",
                detail=f"optimizer=…(gradient_accumulation_steps={parts}); the sums take {in_words(sums)}",
                gain=found.training.peak - small.peak - sums - account.buffers,
                how="extrapolated",
            )
            return


def _mixed_precision(found: Forecast, measuring: Measuring, account: Account) -> Iterator[Advice]:
    """Folklore says that it halves the memory. Here it is tried."""
    if account.model["mixed"] or account.model["policy"] != "float32" or "file" not in measuring.subject.request:
        return
    plain = measuring.trained[0]
    policy = MIXED_GPU if account.options.bound.gpu else MIXED
    what = f"{MIXED_STEPS} steps with {policy}"
    ran = measuring.run(plain.batch, MIXED_STEPS, ["train"], what, policy=policy)
    if not ran.result:
        return
    before = plain.result["train"]["peaks"][: len(ran.result["train"]["peaks"])]
    saved = max(before) - max(ran.result["train"]["peaks"])
    yield Advice(
        title=f"mixed precision: keras.config.set_dtype_policy({policy!r})",
        detail=f"measured with a batch of {plain.batch}; the results change slightly",
        gain=round(saved * found.batch / plain.batch),
        how="measured" if plain.batch == found.batch else "extrapolated",
    )


def _buffers(found: Forecast, account: Account) -> Iterator[Advice]:
    spec = account.options.spec
    if spec.shuffle:
        fewer = max(spec.shuffle // SMALLER_BUFFER, found.batch)
        yield Advice(
            title=f"a smaller shuffle buffer: shuffle({fewer:,})",
            detail=f"{spec.shuffle:,} examples of {in_words(account.example)} wait in it; shuffle file names, too",
            gain=account.example * max(spec.shuffle - fewer, 0),
            how="reckoned",
        )
    if spec.cache:
        yield Advice(
            title="cache on the disk: dataset.cache('some/file')",
            detail=f"{spec.cache:,} examples of {in_words(account.example)} are kept in memory",
            gain=account.example * spec.cache,
            how="reckoned",
        )


def _lighter_optimizer(found: Forecast, account: Account) -> Iterator[Advice]:
    state, trainable = int(account.model["optimizer"]), int(account.model["trainable"])
    if state > 1.5 * trainable:
        yield Advice(
            title="an optimizer with less state: keras.optimizers.Lion, or SGD with momentum",
            detail=f"{found.optimizer} keeps {in_words(state)} beside the weights; they keep {in_words(trainable)}",
            gain=state - trainable,
            how="reckoned",
        )


def _other_format(found: Forecast, measuring: Measuring, account: Account) -> Iterator[Advice]:
    """Only where saving is what does not fit."""
    saving = found.saving
    if saving is None or saving.peak.high <= max(TIGHT * account.options.bound.limit, found.training.peak):
        return
    smallest = measuring.trained[0]
    others = [form for form in LIGHT_FORMATS if form != saving.format]
    ran = measuring.run(smallest.batch, 1, ["train", *others], "other ways to save")
    told = {form: each for form, each in ran.result.get("saves", {}).items() if "peak" in each}
    for form, each in told.items():
        extra = max(int(each["peak"]) - int(each["before"]), 0)
        if extra < saving.extra:
            peak = judge.saving_peak(account, extra, found.training)
            yield Advice(
                title=f"save as {form} instead of {saving.format}",
                detail=f"takes {in_words(extra)} instead of {in_words(saving.extra)} while it saves",
                gain=max(saving.peak.peak - max(peak.peak, found.training.peak), 0),
                how="measured",
            )
            return
