"""Define the version of this package, which the shim's Scala code repeats, and the Sparks that it supports."""

from __future__ import annotations

VERSION = "0.1.0"
SUPPORTED_MINORS = ("3.5", "4.0", "4.1", "4.2", "4.3")
PYSPARK = "pyspark>=3.5,<4.4"
"""What pip has to install, as ``pyproject.toml`` says it; a test compares both."""
