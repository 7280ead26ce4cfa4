"""Files that stand for models, saved by the steps of a real save."""

from __future__ import annotations

from pathlib import Path

from faultlens.model_files.manifest import Manifest, SavedFile, checksum
from faultlens.saving.checkpoint_target import CheckpointTarget
from faultlens.saving.target import Target


def save_file(path: Path, content: bytes, keep: int = 2) -> None:
    target = Target(path)
    with target.locked(1):
        target.clean()
        written = target.unfinished()
        written.write_bytes(content)
        target.publish(written, manifest_of(target, {"": written}))
        target.discard(written)
        target.prune(keep)


def save_folder(path: Path, content: bytes, keep: int = 2) -> None:
    target = Target(path)
    with target.locked(1):
        target.clean()
        written = target.unfinished()
        written.mkdir()
        (written / "saved_model.pb").write_bytes(content)
        names = {"saved_model.pb": written / "saved_model.pb"}
        target.publish(written, manifest_of(target, names, "saved_model"))
        target.discard(written)
        target.prune(keep)


def save_checkpoint(path: Path, content: bytes, keep: int = 2) -> None:
    target = CheckpointTarget(path)
    with target.locked(1):
        target.clean()
        written = target.unfinished()
        names = {end: written.with_name(written.name + end) for end in (".index", ".data-00000-of-00001")}
        for file in names.values():
            file.write_bytes(content)
        target.publish(written, manifest_of(target, names, "checkpoint"))
        target.discard(written)
        target.prune(keep)


def manifest_of(target: Target, files: dict[str, Path], form: str = "keras") -> Manifest:
    saved = tuple(
        SavedFile(name=name, size=file.stat().st_size, crc32c=checksum(file), mtime_ns=file.stat().st_mtime_ns)
        for name, file in files.items()
    )
    return Manifest(generation=target.next_number(), format=form, time=0.0, files=saved)  # type: ignore[arg-type]
