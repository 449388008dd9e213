"""What a section of the configuration is made of: marks of legal values, named types, and making a
section of plain values."""

import types
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints


@dataclass(frozen=True)
class Range:
    """Legal numbers: from `least` to `most`, with `inside` neither end itself."""

    least: float | None = None
    most: float | None = None
    inside: bool = False


@dataclass(frozen=True)
class Pattern:
    """Legal texts: a regular expression, and in words what it asks for."""

    regex: str
    words: str


@dataclass(frozen=True)
class Length:
    """Legal lists: so many elements, without repetition where they are `distinct`."""

    least: int = 0
    most: int | None = None
    distinct: bool = False


@dataclass(frozen=True)
class Fixed:
    """A constant of a method: no key of the configuration, though code and tests can vary it."""


@dataclass(frozen=True)
class PartOf:
    """A mapping of some keys of this section; what is not given is decided elsewhere."""

    section: type


Value = TypeVar("Value")
Constant = Annotated[Value, Fixed()]
Count = Annotated[int, Range(1)]
Natural = Annotated[int, Range(0)]
#: what a hash takes as its key
Seed = Annotated[int, Range(0, 2**63 - 1)]
Proportion = Annotated[float, Range(0, 1)]
Inner = Annotated[float, Range(0, 1, inside=True)]
Positive = Annotated[float, Range(0, inside=True)]
Amount = Annotated[float, Range(0)]
Url = Annotated[str, Pattern(r"^https?://", "an address http(s)://...")]
Snapshot = Annotated[
    str, Pattern(r"^[A-Za-z0-9][A-Za-z0-9._-]*$", "letters, digits, dots, - and _")
]
Language = Annotated[
    str, Pattern(r"^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$", "a language code such as en or mul")
]
#: Of labels, best first: Wikidata deletes `en` labels that equal the `mul` one.
LANGUAGES = ("en", "mul")
Relation = Annotated[str, Pattern(r"^P[1-9][0-9]*$", "a property such as P31")]
OfGraph = Annotated[
    str, Pattern(r"^(?!Q\d+$)\S(.*\S)?$", "the id of a relation, P31 or the graph's own")
]
Variable = Annotated[str, Pattern(r"^[A-Z_][A-Z0-9_]*$", "a name of an environment variable")]
Mode = Literal["default", "paper", "released"]
Overlap = Literal["error", "remove_train", "keep"]


@cache
def hints(section: Any) -> dict[str, Any]:
    """Field -> its type, with what `Annotated` adds."""
    return get_type_hints(section, include_extras=True)


def keys(section: Any) -> list[Field[Any]]:
    """The fields of a section that are keys of the configuration, and sections that have some."""
    known = hints(section if isinstance(section, type) else type(section))
    return [one for one in fields(section) if _is_key(known[one.name])]


def _is_key(hint: Any) -> bool:
    if isinstance(hint, type) and is_dataclass(hint):
        return bool(keys(hint))
    return Fixed() not in getattr(hint, "__metadata__", ())


Section = TypeVar("Section")


def typed(
    section: type[Section], given: Mapping[str, Any], below: Section | None = None
) -> Section:
    """The section made of plain values; keys that are missing come from `below`, else the default.

    Values are converted, not checked: `kgprobe.config` checks them. Raises ValueError for what no
    field alone can tell.
    """
    known, values = hints(section), {}  # type: ignore[arg-type]
    for key in fields(section):  # type: ignore[arg-type]
        older = _default(key) if below is None else getattr(below, key.name, None)
        if key.name in given:
            values[key.name] = _value(known[key.name], given[key.name], older)
        elif below is not None:
            values[key.name] = older
    return section(**values)


def _default(key: Field[Any]) -> Any:
    """The default of a field, which may differ from that of its section; None if it has none."""
    if key.default_factory is not MISSING:
        return key.default_factory()
    return None if key.default is MISSING else key.default


def _value(hint: Any, value: Any, older: Any) -> Any:
    """`value` as the type has it: sections from mappings, tuples from lists."""
    kind, inside = get_origin(hint), get_args(hint)
    if value is None or isinstance(value, str):
        return value
    if kind is Annotated:
        part = next((mark for mark in inside[1:] if isinstance(mark, PartOf)), None)
        return _keys(part.section, value) if part else _value(inside[0], value, older)
    if kind in (Union, types.UnionType):
        whole = [one for one in inside if one is not type(None)]
        return _value(whole[0], value, older) if len(whole) == 1 else value
    if kind is tuple:
        return tuple(_value(inside[0], one, None) for one in value)
    if kind is dict:
        return {key: _value(inside[1], one, None) for key, one in value.items()}
    if isinstance(hint, type) and is_dataclass(hint):
        return typed(hint, value, older)
    if hint is int and isinstance(value, float) and value.is_integer():
        return int(value)  # YAML's 1.0, which JSON schema takes for an integer
    return value


def _keys(section: type, given: Mapping[str, Any]) -> dict[str, Any]:
    """Some keys of a section, and of those inside it, with values as the section has them."""
    known = hints(section)
    return {
        key: _keys(known[key], one) if is_dataclass(known[key]) else _value(known[key], one, None)
        for key, one in given.items()
    }
