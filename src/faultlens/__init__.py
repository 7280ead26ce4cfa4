"""faultlens: the crash doctor for TensorFlow programs and the native Python stack under them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from faultlens.forecasting.api import forecast
    from faultlens.saving import SaveError, load, restore_latest, save

__version__ = "0.1.0"
__all__ = ["SaveError", "forecast", "install", "load", "restore_latest", "save"]


def __getattr__(name: str) -> Any:
    """Saving needs NumPy, which the commands must not."""
    if name in ("data", "keras"):
        import importlib

        return importlib.import_module(f"faultlens.{name}")
    if name in ("SaveError", "load", "restore_latest", "save"):
        from faultlens import saving

        return getattr(saving, name)
    if name == "forecast":
        from faultlens.forecasting.api import forecast

        return forecast
    raise AttributeError(f"module 'faultlens' has no attribute {name!r}")


def install() -> None:
    """Report crashes of this program, which was not started by `faultlens run`: a server, a notebook.

    A small helper process looks at the program when it dies, prints the verdict on its stderr and keeps the report.
    Which lines made the nodes of its graphs, and how far it has come, is remembered. Where that cannot be done, that
    is said on stderr, once, and the program goes on. Does nothing if it was called before, or under `faultlens run`.
    """
    from faultlens.supervise import installation

    installation.install()
