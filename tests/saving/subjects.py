"""How is a model saved, found again and loaded: by Keras and TensorFlow themselves, and through faultlens?"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

Way = Literal["plain", "faultlens"]
Format = Literal["keras", "weights", "saved_model", "checkpoint", "manager"]
FORMATS: tuple[Format, ...] = ("keras", "weights", "saved_model", "checkpoint")
NAMES: dict[Format, str] = {
    "keras": "model.keras",
    "weights": "model.weights.h5",
    "saved_model": "model",
    "checkpoint": "ckpt",
    "manager": "managed",  # tf.train.CheckpointManager: how careful users of plain TensorFlow save
}
KEEP = 2


@dataclass(frozen=True)
class Subject:
    """What is tried: a way to save and a format. The modules it needs are imported when it is used."""

    way: Way
    format: Format

    def __str__(self) -> str:
        return f"{self.way} {self.format}"

    def target(self, folder: Path) -> Path:
        return folder / NAMES[self.format]

    def save(self, model: Any, folder: Path, background: bool = False) -> None:
        target = self.target(folder)
        if self.way == "faultlens":
            import faultlens

            under_way = faultlens.save(model, target, keep=KEEP, format=self.format, background=background)
            if background:
                under_way.wait()
        elif self.format == "keras":
            model.save(target)
        elif self.format == "weights":
            model.save_weights(target)
        elif self.format == "saved_model":
            model.export(target, verbose=False)
        elif self.format == "checkpoint":
            _checkpoint(model).write(str(target))
        else:
            manager = _manager(model, target)
            number = int(manager.latest_checkpoint.rpartition("-")[2]) if manager.latest_checkpoint else 0
            manager.save(checkpoint_number=number + 1)

    def found(self, folder: Path) -> Path | None:
        """What would be loaded: a file, a folder or a prefix. For faultlens, the newest save that verifies."""
        target = self.target(folder)
        if self.way == "faultlens":
            from faultlens.saving import restore

            return Path(restore.newest(target).path)
        if self.format == "manager":
            import tensorflow as tf

            latest = tf.train.latest_checkpoint(target)
            return Path(latest) if latest else None
        return target if next(files_of(target), None) else None

    def whole(self, folder: Path) -> int:
        """How many saves can be loaded, the older ones among them; 0 where there is nobody to ask."""
        if self.way == "plain":
            return 0
        from faultlens.model_files.generations import generations

        return sum(not generation.damages() for generation in generations(self.target(folder)))

    def load(self, model: Any, folder: Path) -> list[Any]:
        """The values of all variables that were saved. May change the model."""
        target = self.target(folder)
        if self.way == "faultlens":
            import faultlens

            if self.format in ("weights", "checkpoint"):
                faultlens.load(target, into=model)
                return kept(self.format, model)
            return kept(self.format, faultlens.load(target))
        path = self.found(folder)
        assert path is not None
        return load_plain(self.format, model, path)


def load_plain(form: Format, model: Any, path: Path) -> list[Any]:
    """As a program without faultlens does it."""
    import keras
    import tensorflow as tf

    if form == "keras":
        return kept(form, keras.models.load_model(path))
    if form == "weights":
        model.load_weights(path)
        return kept(form, model)
    if form == "saved_model":
        return kept(form, tf.saved_model.load(str(path)))
    _checkpoint(model).read(str(path)).assert_existing_objects_matched()
    return kept(form, model)


def plainly_found(form: Format, folder: Path) -> Path | None:
    """What a program without faultlens finds; a checkpoint by the file that names the latest."""
    if form != "checkpoint":
        return Subject("plain", form).found(folder)
    import tensorflow as tf

    latest = tf.train.latest_checkpoint(folder)
    return Path(latest) if latest else None


def files_of(save: Path) -> Iterator[Path]:
    """Of a file, a folder or the prefix of a checkpoint."""
    if save.is_dir():
        yield from sorted(path for path in save.rglob("*") if path.is_file())
    elif save.is_file():
        yield save
    else:
        yield from sorted(save.parent.glob(f"{save.name}.index")) + sorted(save.parent.glob(f"{save.name}.data-*"))


def digest(save: Path) -> str:
    """Of all its bytes; the name of the save itself is left out, so that a kept generation is known again."""
    found = hashlib.sha256()
    for path in files_of(save):
        name = str(path.relative_to(save)) if save.is_dir() else path.name.removeprefix(save.name)
        data = path.read_bytes()
        found.update(f"{name} {len(data)}\n".encode())
        found.update(data)
    return found.hexdigest()


def kept(form: Format, model: Any) -> list[Any]:
    """The variables that a format saves: a SavedModel the seeds of random numbers, the others the optimizer."""
    return list(model.variables) if form == "saved_model" else [*model.weights, *model.optimizer.variables]


def _checkpoint(model: Any) -> Any:
    import tensorflow as tf

    return tf.train.Checkpoint(model)


def _manager(model: Any, folder: Path) -> Any:
    import tensorflow as tf

    return tf.train.CheckpointManager(_checkpoint(model), str(folder), max_to_keep=KEEP)
