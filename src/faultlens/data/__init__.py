"""Training data: what is wrong with it (`faultlens scan`), and pipelines that go round it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from faultlens.data.pipeline.check import check
    from faultlens.data.pipeline.skip_bad import skip_bad
    from faultlens.data.scanning import scan

__all__ = ["check", "scan", "skip_bad"]
_PLACES = {"check": "pipeline.check", "scan": "scanning", "skip_bad": "pipeline.skip_bad"}


def __getattr__(name: str) -> Any:
    """Looked up when they are asked for: two of them need TensorFlow, which the commands do not."""
    if name in _PLACES:
        import importlib

        return getattr(importlib.import_module(f"faultlens.data.{_PLACES[name]}"), name)
    raise AttributeError(f"module 'faultlens.data' has no attribute {name!r}")
