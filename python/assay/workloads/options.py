"""Options of plans, declared once on their fields: the command line, plan files and the reference page follow.

    duration_s: Annotated[Seconds, Option("--duration", "How long a point lasts.", TIME)] = 60.0

A text that is given becomes a value of the field's own type, so that a plan and an option accept the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from keyword import iskeyword
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from assay.base.fields import FieldError
from assay.base.reading import problem_of
from assay.targets.arrays.live.events import events_in

TARGET, LOAD, TIME, SAFETY, OUTPUT = "Target", "Load", "Time and limits", "Safety", "Output"
"""Groups of options that several kinds have."""

Keys = tuple[str, ...]
"""Keys that lead to a field, without positions in lists."""


@dataclass(frozen=True)
class Option:
    """How a field of a plan is given on the command line. A field may have several, which exclude each other.

    Attributes
    ----------
    names
        The option's names, parted by spaces; `--on/--off` for one that is given as either.
    help
        What it does, one sentence; `{choices}` stands for what the field accepts.
    group
        Heading under which `--help` lists it.
    parse
        Makes of the text what the field takes, where the field does not take the text itself. Raises `ValueError`.
    values
        What an option without a value sets; two for `--on/--off`.
    metavar
        What stands for its value.
    is_keyed
        Given as `TABLE=VALUE`: one option for the fields of several tables.
    gives_way
        Whether another option of the same field wins over it.
    """

    names: str
    help: str
    group: str = LOAD
    parse: Callable[[str], Any] | None = None
    values: tuple[Any, ...] = ()
    metavar: str | None = None
    is_keyed: bool = False
    gives_way: bool = False

    @property
    def flag(self) -> str:
        """The first of its names."""
        return self.names.split()[0].partition("/")[0]

    def shown(self, is_on: bool) -> str:
        """An option without a value as it was given."""
        on, _, off = self.names.split()[0].partition("/")
        return on if is_on else off


@dataclass(frozen=True)
class TablesOf:
    """Marks a field that holds tables of a model as they were written: options are for their keys.

    An option takes several levels, parted by commas.
    """

    model: type[BaseModel]


@dataclass(frozen=True)
class Fixed:
    """Marks a field that makes a plan what it is: studies set it, `--set` does not."""


SEED = Option("--seed", "Seed of everything random (1).")
SIZE = Option("--size", "Size of each file, or 2x-cache; by role: data=10G,log=2G.", TARGET)
BACKEND = Option("--backend", "auto, io-uring or threads.")

COMMON = {
    ("seed",): SEED,
    ("size",): SIZE,
    ("events",): Option(
        "--events", "Faults to inject into the served array while the run measures (TOML file).", TIME, parse=events_in
    ),
    ("limits",): Option("--limit", "Limits: read.p99<=2ms, log.write.mean<=5ms, cpu<80%; replaces the preset's.", TIME),
    ("search", "axis"): Option("--search", "Find the most within the limits: {choices}.", TIME),
    ("search", "start"): Option("--start", "First load of the search.", TIME),
    ("search", "end"): Option("--end", "Largest load of the search.", TIME),
    ("search", "repeats"): Option("--repeats", "Minimum number of repeats at both ends of the bracket (1).", TIME),
}
"""Options of fields that plans of every kind may have, unless the fields declare their own."""


@dataclass(frozen=True, kw_only=True)
class PlanOption:
    """An option of a field of a plan.

    Attributes
    ----------
    option
        How it is given.
    path
        The field.
    field
        What the field takes, and its value unless a preset, a plan or an option sets it.
    in_tables
        Whether the field is one of tables that may have several levels.
    """

    option: Option
    path: Keys
    field: FieldInfo
    in_tables: bool = False

    @property
    def name(self) -> str:
        """Name of the parameter for it."""
        name = self.option.flag.lstrip("-").replace("-", "_")
        return f"{name}_" if iskeyword(name) else name

    @property
    def help(self) -> str:
        """What it does."""
        *others, last = map(str, get_args(self.field.annotation) or ("",))
        return self.option.help.replace("{choices}", f"{', '.join(others)} or {last}")

    @property
    def metavar(self) -> str | None:
        """What stands for a plain number."""
        is_plain = not (self.has_levels or self.option.values or self.option.is_keyed)
        number = _number(self.field.annotation, self.field.metadata) if is_plain else None
        return f"<{number}>" if number else None

    @property
    def is_repeatable(self) -> bool:
        """Whether it is given several times for several values."""
        return self.option.is_keyed or get_args(self.field.annotation)[1:] == (...,)

    @property
    def has_levels(self) -> bool:
        """Whether several values may be given, parted by commas."""
        return self.in_tables and get_origin(self.field.annotation) is not tuple

    @property
    def table(self) -> str:
        """The table of the field, as options name it."""
        return self.path[-2].replace("_", "-")

    def read(self, text: str | list[str], source: str) -> Any:
        """The value that was given, as plans print it; `source` is the option.

        Raises
        ------
        FieldError
            The field does not take it.
        """
        parse = self.option.parse
        if not self.has_levels or not isinstance(text, str):
            return value_of(self.field, text, source=source, parse=parse, place=self.path)
        parts = [part for part in text.split(",") if part.strip()]
        values = [value_of(self.field, part, source=source, parse=parse, place=self.path) for part in parts]
        if not values:
            reason = f"{text!r} is empty; give at least one level"
            raise FieldError(reason, field=self.path, source=source, says_field=True)
        return values if len(values) > 1 else values[0]


def value_of(
    field: FieldInfo,
    text: str | list[str],
    *,
    source: str,
    place: Keys = (),
    parse: Callable[[str], Any] | None = None,
) -> Any:
    """A field's value from a text of the command line, as plans print it.

    Parameters
    ----------
    field
        What takes the value.
    text
        The text, or several for a field that is a list.
    source
        The option, for errors.
    place
        Where the field stands.
    parse
        Makes of the text what the field takes.

    Raises
    ------
    FieldError
        The field does not take it.
    """
    value_type: Any = Annotated[field.annotation, field]
    if parse is not None:
        value_type = Annotated[value_type, BeforeValidator(parse)]
    adapter: TypeAdapter[Any] = TypeAdapter(value_type)
    try:
        return adapter.dump_python(adapter.validate_python(text), mode="json")
    except ValidationError as error:
        reason = problem_of(error.errors(include_url=False)[0])[1]
        raise FieldError(reason, field=place, source=source, says_field=True) from None


def _number(annotation: Any, metadata: Iterable[Any] = ()) -> str | None:
    """Name of the type of numbers that are written without a unit."""
    if any(isinstance(mark, BeforeValidator) for mark in metadata):
        return None
    if get_origin(annotation) is Annotated:
        inner, *marks = get_args(annotation)
        return _number(inner, marks)
    if annotation in (int, float):
        return str(annotation.__name__)
    alternatives = [one for one in get_args(annotation) if one is not type(None)]
    return _number(alternatives[0]) if len(alternatives) == 1 else None


def plan_options(model: type[BaseModel]) -> list[PlanOption]:
    """The options of a plan, those of its tables first."""
    return list(_declared(model, (), in_tables=False))


def _declared(model: type[BaseModel], path: Keys, *, in_tables: bool) -> Iterator[PlanOption]:
    for key, field in model.model_fields.items():
        tables = [mark.model for mark in field.metadata if isinstance(mark, TablesOf)]
        if tables:
            yield from _declared(tables[0], (*path, key), in_tables=True)
        elif isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from _declared(field.annotation, (*path, key), in_tables=in_tables)
    for key, field in model.model_fields.items():
        keys = (*path, key)
        own = [mark for mark in field.metadata if isinstance(mark, Option)]
        common = [COMMON[keys]] if keys in COMMON else []
        for option in own or common:
            yield PlanOption(option=option, path=keys, field=field, in_tables=in_tables)
