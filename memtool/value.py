"""The parts of the standard library that every module may need, cheap to import: values, hashes.

`dataclasses` alone costs 1.7 times a bare interpreter start (it imports `inspect`), and every
cold `memtool inject` would pay it. A `Value` gives the part that memtool uses: annotated fields
in order, defaults, keyword arguments, equality, a hash, a readable `repr`, and no assignment.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from functools import cached_property as cached_property  # noqa: PLC0414  # given on
    from typing import Any, Self, TypeVar, dataclass_transform

    Item = TypeVar("Item")
else:

    def dataclass_transform(**_options):  # noqa: D103  # typing's own, for type checkers only
        return lambda cls: cls

    class cached_property:  # noqa: N801  # the name and the behaviour of the one of functools
        """A property that is worked out when it is first asked for, and kept in the instance."""

        def __init__(self, work):
            self.work = work
            self.name = work.__name__
            self.__doc__ = work.__doc__

        def __get__(self, instance, owner=None):
            if instance is None:
                return self
            value = instance.__dict__[self.name] = self.work(instance)
            return value


@dataclass_transform(frozen_default=True)
class ValueType(type):
    """Turns the annotations of a class body into slots, and their values into defaults."""

    field_names: tuple[str, ...]
    field_defaults: dict[str, Any]
    field_setters: list[Callable[[object, Any], None]]
    """What sets each field, once: past `__setattr__`, and in a fifth of the time of `object`'s."""
    json_fields: str = ""
    json_names: tuple[tuple[str, str], ...] = ()
    json_optional: str = ""

    def __new__(mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> ValueType:
        own = tuple(namespace.get("__annotations__", ()))
        names: tuple[str, ...] = ()
        defaults: dict[str, Any] = {}
        setters: list[Callable[[object, Any], None]] = []
        for base in bases:
            if isinstance(base, ValueType):
                names += base.field_names
                defaults.update(base.field_defaults)
                setters += base.field_setters
        for field in own:
            if field in namespace:
                defaults[field] = namespace.pop(field)
        namespace["__slots__"] = own
        namespace["field_names"] = names + own
        namespace["field_defaults"] = defaults
        namespace["field_setters"] = setters
        cls = type.__new__(mcls, name, bases, namespace)
        setters += [getattr(cls, field).__set__ for field in own]
        return cls


class Value(metaclass=ValueType):
    """Base of every value: subclass it with annotated fields, as with a frozen dataclass.

    Three class attributes shape its JSON: `json_fields` are the fields and properties that it has,
    in order and with spaces between, by default all fields; `json_names` are pairs of one of them
    and its name there; `json_optional` are fields that are left out while they have their default.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        setters = type(self).field_setters
        if kwargs or len(args) != len(setters):
            args = _complete(type(self), args, kwargs)
        for put, value in zip(setters, args):  # noqa: B905  # saying it costs a fifth of this
            put(self, value)

    def __setattr__(self, name: str, _value: object = None) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} cannot be assigned: values are frozen")

    __delattr__ = __setattr__  # one refusal serves both

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(getattr(self, n) == getattr(other, n) for n in type(self).field_names)

    def __hash__(self) -> int:
        return hash(tuple(getattr(self, name) for name in type(self).field_names))

    def __repr__(self) -> str:
        fields = ", ".join(f"{n}={getattr(self, n)!r}" for n in type(self).field_names)
        return f"{type(self).__name__}({fields})"

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some fields changed."""
        names = type(self).field_names
        values = [changes.pop(n) if n in changes else getattr(self, n) for n in names]
        return type(self)(*values, **changes)

    def plain(self) -> dict[str, Any]:
        """Return the JSON form; a subclass may compute more."""
        kind = type(self)
        names, defaults = dict(kind.json_names), kind.field_defaults
        optional = kind.json_optional.split()
        return {
            names.get(name, name): plain(getattr(self, name))
            for name in kind.json_fields.split() or kind.field_names
            if not (name in optional and getattr(self, name) == defaults[name])
        }


def _complete(cls: ValueType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Return a value for each field, of what was given by position and by name."""
    names, defaults = cls.field_names, cls.field_defaults
    missing = len(names) - len(args)
    if not kwargs and 0 < missing <= len(defaults):  # only the last fields may have one
        return args + tuple(defaults.values())[-missing:]
    if missing < 0:
        raise TypeError(f"{cls.__name__} takes {len(names)} fields, got {len(args)}")
    values = [*args]
    for name in names[len(args) :]:
        if name in kwargs:
            values.append(kwargs.pop(name))
        elif name in defaults:
            values.append(defaults[name])
        else:
            raise TypeError(f"{cls.__name__} needs {name!r}")
    for name in kwargs:
        raise TypeError(f"{cls.__name__} has no free field {name!r}")
    return tuple(values)


HEX = frozenset("0123456789abcdef")
"""The digits of a hash, and so of the id of a commit."""


def digest(data: bytes, size: int = 8) -> str:
    """Return the BLAKE2b hash of some bytes, `size` bytes long, in hexadecimal."""
    # `hashlib` would load OpenSSL: a tenth of an interpreter's start.
    from _blake2 import blake2b

    digest: str = blake2b(data, digest_size=size).hexdigest()
    return digest


def split_batches(
    items: Iterable[Item],
    max_items: int = 0,
    max_size: int = 0,
    size_of: Callable[[Item], int] = lambda _item: 0,
) -> Iterator[list[Item]]:
    """Yield items in lists of at most `max_items`, of at most `max_size` in sum; 0 is no limit.

    An item that is larger alone has a list of its own.
    """
    batch: list[Item] = []
    size = 0
    for item in items:
        own = size_of(item)
        if batch and (len(batch) == max_items or (max_size and size + own > max_size)):
            yield batch
            batch, size = [], 0
        batch.append(item)
        size += own
    if batch:
        yield batch


def plain(value: Any) -> Any:
    """Turn values, mappings and sequences into dicts, lists and scalars, for JSON."""
    if isinstance(value, Value):
        return value.plain()
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        items = sorted(value) if isinstance(value, set | frozenset) else value
        return [plain(item) for item in items]
    return value


def format_count(count: int, noun: str, nouns: str = "") -> str:
    """Return a number with its noun: `1 memory`, `2,000 memories`; by default with an `s`."""
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"


def first_few(
    texts: Sequence[str], limit: int, ending: str = " and {:,} more", between: str = ", "
) -> str:
    """Return the first of some texts, and how many more there are: `a, b and 3 more`."""
    hidden = len(texts) - limit
    return between.join(texts[:limit]) + (ending.format(hidden) if hidden > 0 else "")
