"""A call that hangs is given up; one that ends gives its result or its error."""

from __future__ import annotations

import threading

import pytest

from assay.base.errors import ExitCode, NotAnswering
from assay.targets.answering import answer_within


def test_the_result_comes_through() -> None:
    assert answer_within(10, lambda: None, what="x") is None


def test_the_error_comes_through() -> None:
    def fail() -> None:
        raise FileNotFoundError(2, "gone")

    with pytest.raises(FileNotFoundError, match="gone"):
        answer_within(10, fail, what="x")


def test_a_call_that_hangs_ends_with_one_clear_line() -> None:
    released = threading.Event()
    try:
        with pytest.raises(NotAnswering, match=r"^/mnt/dead: no answer within 0.05 s; check its mount") as error:
            answer_within(0.05, released.wait, what="/mnt/dead")
        assert error.value.exit_code is ExitCode.TARGET_FAILED
    finally:
        released.set()
