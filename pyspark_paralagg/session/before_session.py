"""Actions that run before a session is configured or attached.

The layers above register them. The API adds ``DataFrame.recursive_agg`` this way; ``session`` does not import it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_ACTIONS: list[Callable[[], None]] = []


def before_session(action: Callable[[], None]) -> None:
    """Register ``action``; it runs each time, so it must be idempotent."""
    _ACTIONS.append(action)


def run_actions() -> None:
    """Run all registered actions in the order of their registration."""
    for action in _ACTIONS:
        action()
