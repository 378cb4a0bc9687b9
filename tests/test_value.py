"""Values: fields by position, by name and by default; frozen, compared and shown."""

from __future__ import annotations

from typing import Any

import pytest

from memtool.value import Value, ValueType, plain


def made(count: int, defaults: int = 0) -> Any:
    """Make a class with fields `f0`, `f1`, ...; the last ones have a default."""
    names = [f"f{number}" for number in range(count)]
    values = {name: f"default {name}" for name in names[count - defaults :]}
    return ValueType("Made", (Value,), {"__annotations__": dict.fromkeys(names, "Any"), **values})


@pytest.mark.parametrize("count", range(14))
def test_fields_are_given_by_position_or_by_name(count: int):
    """Whatever their number, and whether the value is the first of its class or not."""
    cls = made(count)
    numbers = list(range(count))
    for _time in range(2):
        value = cls(*numbers)
        assert [getattr(value, name) for name in cls.field_names] == numbers
        assert cls(**dict(zip(cls.field_names, numbers, strict=True))) == value
        half = count // 2
        assert cls(*numbers[:half], **{f"f{n}": n for n in numbers[half:]}) == value


@pytest.mark.parametrize("count", [1, 2, 8, 9, 12])
def test_the_last_fields_may_have_defaults(count: int):
    """It is used if no value is passed, by position or by name."""
    cls = made(count, defaults=1)
    last = f"f{count - 1}"
    for _time in range(2):
        assert getattr(cls(*range(count - 1)), last) == f"default {last}"
        assert getattr(cls(*range(count - 1), **{last: 7}), last) == 7
        assert getattr(cls(*range(count)), last) == count - 1
        assert cls(*range(count - 1)) == cls(**{f"f{n}": n for n in range(count - 1)})


@pytest.mark.parametrize("count", [0, 1, 3, 8, 9, 12])
def test_what_does_not_fit_is_refused(count: int):
    """Too many, too few, unknown, twice; by the first value of a class and by a later one."""
    cls = made(count)
    calls: list[tuple[tuple[int, ...], dict[str, int]]] = [
        (tuple(range(count + 1)), {}),
        (tuple(range(count)), {"other": 1}),
    ]
    if count:
        calls += [(tuple(range(count - 1)), {}), (tuple(range(count)), {"f0": 1})]
    for _time in range(2):
        for args, kwargs in calls:
            with pytest.raises(TypeError):
                cls(*args, **kwargs)
        cls(*range(count))


def test_a_subclass_has_its_own_fields_and_those_of_its_base():
    """Whichever of the two has its first value first."""

    class Base(Value):
        a: int
        b: int = 2

    class Early(Base):
        c: int = 3

    assert (Early(1).a, Early(1).b, Early(1).c) == (1, 2, 3)
    assert Base(1, b=5).b == 5

    class Late(Base):
        c: int = 4

    assert Late(1, 2, 3).plain() == {"a": 1, "b": 2, "c": 3}
    assert Late(1) != Early(1, 2, 4)
    assert Early(1) == Early(a=1, b=2, c=3)


def test_an_init_of_ones_own_stays():
    """And is inherited."""

    class Own(Value):
        a: int

        def __init__(self, text: str) -> None:
            object.__setattr__(self, "a", int(text))

    class Heir(Own):
        pass

    for _time in range(2):
        assert (Own("7").a, Heir("8").a) == (7, 8)


def test_values_are_frozen_compared_hashed_and_shown():
    """Nothing can be assigned or deleted, not even a name that is not a field."""

    class Point(Value):
        x: int
        y: int = 0

    point = Point(1)
    for name in ("x", "z"):
        with pytest.raises(AttributeError):
            setattr(point, name, 2)
    with pytest.raises(AttributeError):
        del point.x
    assert point == Point(1, 0) != Point(1, 1)
    assert hash(point) == hash(Point(1))
    assert repr(point) == "Point(x=1, y=0)"
    assert point.replace(y=3) == Point(1, 3)
    assert plain({"at": [point]}) == {"at": [{"x": 1, "y": 0}]}
    with pytest.raises(TypeError, match="z"):
        point.replace(z=3)


class Span(Value):
    """A value with other names and another order in its JSON."""

    json_fields = "length begin note"
    json_names = (("begin", "from"),)
    json_optional = "note"

    begin: int
    end: int
    note: str = ""

    @property
    def length(self) -> int:
        return self.end - self.begin


def test_the_json_of_a_value_may_differ_from_its_fields() -> None:
    """A field may have another name, be left out, or be left out at its default."""
    assert list(Span(1, 4).plain().items()) == [("length", 3), ("from", 1)]
    assert Span(1, 4, "late").plain() == {"length": 3, "from": 1, "note": "late"}
