"""Training data: what is wrong with it (`faultlens scan`), and pipelines that go round it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from faultlens.data.pipeline.check import check
    from faultlens.data.pipeline.skip_bad import skip_bad

__all__ = ["check", "skip_bad"]


def __getattr__(name: str) -> Any:
    """They are for programs that use TensorFlow; the commands do not."""
    if name in __all__:
        import importlib

        return getattr(importlib.import_module(f"faultlens.data.pipeline.{name}"), name)
    raise AttributeError(f"module 'faultlens.data' has no attribute {name!r}")
