"""Errors of plans carry the field that they are about."""

from __future__ import annotations

from typing import Any

import pytest

from assay.base.errors import UsageError
from assay.base.fields import FieldError, FieldValueError, Seconds, Strict, within
from assay.base.reading import validated


class Inner(Strict):
    length_s: Seconds = 1.0
    most_s: Seconds = 2.0

    def model_post_init(self, _context: Any) -> None:
        if self.length_s > self.most_s:
            raise FieldValueError("length_s", "is above most_s")


class Outer(Strict):
    count: int = 0
    inner: Inner = Inner()
    several: tuple[Inner, ...] = ()


@pytest.mark.parametrize(
    ("data", "field", "message"),
    [
        ({"count": "many"}, ("count",), "plan: count: a whole number is expected (given 'many')"),
        ({"cuont": 1}, (), "plan: unknown key 'cuont'; did you mean 'count'?"),
        ({"inner": {"length": 1}}, ("inner",), "plan: inner: unknown key 'length'; did you mean 'length_s'?"),
        ({"inner": {"length_s": 3}}, ("inner", "length_s"), "plan: inner.length_s: is above most_s"),
        ({"several": [{}, {"most_s": -1}]}, ("several", 1, "most_s"), "plan: several 2.most_s: "),
        ({"several": [{"a": 1}]}, ("several", 0), "plan: several 1: unknown key 'a'"),
        ({"inner": 3}, ("inner",), "plan: inner: a table is expected (given 3)"),
    ],
)
def test_of_a_table(data: dict[str, Any], field: tuple[str | int, ...], message: str) -> None:
    with pytest.raises(FieldError) as refused:
        validated(Outer, data, "plan")
    assert (refused.value.field, refused.value.source) == (field, "plan")
    assert str(refused.value).startswith(message)


def test_of_a_table_within_another() -> None:
    with pytest.raises(FieldError) as refused, within("--plan p.toml", "part", 2):
        validated(Inner, {"length_s": 3}, "", at=("inner",))
    assert refused.value.field == ("part", 2, "inner", "length_s")
    assert str(refused.value) == "--plan p.toml: part 3.inner.length_s: is above most_s"


def test_an_error_that_names_its_value_itself_does_so_once() -> None:
    with pytest.raises(FieldError) as refused, within("--plan p.toml", "limits"):
        raise UsageError("limit 'x': unknown metric")
    assert refused.value.field == ("limits",)
    assert str(refused.value) == "--plan p.toml: limit 'x': unknown metric"
