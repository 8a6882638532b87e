"""A guard for system calls that may never return.

`stat`, `open` and their like sleep uninterruptibly on a dead NFS server or a hung FUSE daemon. They run in a daemon
thread here, so that Assay can say what happened and go on; the stuck thread is left to the kernel.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from assay.base.errors import NotAnswering

ANSWER_TIMEOUT_S = 10.0
"""How long a single metadata call may take. Slow but living network storage answers within a few seconds."""

T = TypeVar("T")


MOUNT_ADVICE = "check its mount (an NFS server or FUSE daemon may be down) or give another target"


def answer_within(seconds: float, function: Callable[[], T], *, what: str, advice: str = MOUNT_ADVICE) -> T:
    """Return what `function` returns, or raise what it raises, if it ends in time.

    Parameters
    ----------
    seconds
        The longest wait.
    function
        The call that may hang; it goes on in its thread if it does.
    what
        The path, device or server asked, for the message.
    advice
        What the user can do about it.

    Raises
    ------
    NotAnswering
        `function` has not ended after `seconds`.

    Examples
    --------
    >>> answer_within(1.0, lambda: 6 * 7, what="arithmetic")
    42
    """
    results: list[T] = []
    failures: list[BaseException] = []

    def call() -> None:
        try:
            results.append(function())
        except BaseException as error:
            # Whatever happened belongs to the caller, not to the thread's own traceback printer.
            failures.append(error)

    thread = threading.Thread(target=call, name=f"assay-ask-{what}", daemon=True)
    thread.start()
    thread.join(seconds)
    if failures:
        raise failures[0]
    if not results:
        raise NotAnswering(f"{what}: no answer within {seconds:g} s; {advice}")
    return results[0]
