"""Where a checkpoint goes: all its generations lie beside each other, under the numbers that TensorFlow gives them."""

from __future__ import annotations

import os
from pathlib import Path

from faultlens.fs import access, atomic
from faultlens.model_files import generations as saves
from faultlens.model_files.manifest import Manifest, place_of
from faultlens.saving.target import Target, remove, sync_file


class CheckpointTarget(Target):
    """A prefix: each save gets its own number, and the file `checkpoint` names the latest, as TensorFlow has it."""

    def publish(self, written: Path, manifest: Manifest) -> Path:
        final = self.path.with_name(f"{self.path.name}-{manifest.generation}")
        self._resemble_previous(written, manifest)
        self.write_manifest(manifest, written)
        # The index last: without it there is no checkpoint.
        for file in sorted(manifest.files, key=lambda file: file.name == ".index"):
            place_of(written, file).rename(place_of(final, file))
        atomic.sync_folder(self.path.parent)
        self._write_state([final, *(each.path for each in saves.generations(self.path) if each.path != final)])
        self.close_folder(_index(final))
        return final

    def _resemble_previous(self, written: Path, manifest: Manifest) -> None:
        """Its files have other names, but it takes the place of the one before."""
        previous = next((_index(each.path) for each in saves.generations(self.path)), None)
        for place in [place_of(written, file) for file in manifest.files]:
            if previous is not None and access.take_over(previous, place):
                sync_file(place)

    def clean(self) -> None:
        """Also data whose index is gone, or never came."""
        super().clean()
        if not self.alone or self.unfinished_saves():  # another machine may be about to bring the index
            return
        ours = [int(entry.stem) for entry in self.folder.glob("*.json") if entry.stem.isdigit()]
        numbered = (self.path.with_name(f"{self.path.name}-{number}") for number in ours)
        for prefix in numbered:
            if not _index(prefix).exists():
                for data in _data_files(prefix):
                    remove(data)

    def prune(self, keep: int) -> None:
        kept = [generation.path for generation in saves.generations(self.path)[: max(keep, 1)]]
        if kept:
            self._write_state(kept)
        super().prune(keep)

    def remove_generation(self, generation: saves.Generation) -> None:
        _index(generation.path).unlink(missing_ok=True)
        for data in _data_files(generation.path):
            data.unlink(missing_ok=True)

    def _write_state(self, newest_first: list[Path]) -> None:
        lines = [f"model_checkpoint_path: {_quoted(newest_first[0].name)}"]
        lines += [f"all_model_checkpoint_paths: {_quoted(path.name)}" for path in reversed(newest_first)]
        state = self.path.parent / "checkpoint"
        self.replace(state, os.fsencode("\n".join(lines) + "\n"), like=state)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _index(prefix: Path) -> Path:
    return prefix.with_name(prefix.name + ".index")


def _data_files(prefix: Path) -> list[Path]:
    return list(prefix.parent.glob(f"{_literal(prefix.name)}.data-*-of-*"))


def _literal(name: str) -> str:
    """For glob."""
    return "".join(f"[{each}]" if each in "*?[" else each for each in name)
