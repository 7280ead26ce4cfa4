"""The report as one page that needs nothing else: no network, no scripts, readable anywhere."""

from __future__ import annotations

from faultlens.report.html.anchors import anchor_of
from faultlens.report.html.page import page

__all__ = ["anchor_of", "page"]
