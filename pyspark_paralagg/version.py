"""The version of this package; the shim's Scala side carries the same (a test holds them together)."""

from __future__ import annotations

VERSION = "0.1.0"
