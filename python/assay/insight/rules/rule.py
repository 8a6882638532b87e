"""What a rule is, what it reads, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

Severity = Literal["error", "warning", "note"]

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
"""Worst first."""

SUBJECTS = {
    "host": "a host",
    "layout": "where data, log and tempdb lie",
    "device": "a block device",
    "mount": "a file system",
    "interface": "a network interface",
    "multipath": "a multipath device",
    "iscsi": "the iSCSI initiator",
    "fc": "a Fibre Channel port",
    "network": "the storage network",
    "guest": "a virtual machine",
    "hypervisor": "a hypervisor",
    "database": "a database server",
    "array": "an array",
    "volume": "a volume of an array",
}
"""Kinds of things that rules are about."""


@dataclass(frozen=True)
class Fact:
    """A value and where it was read."""

    value: Any
    origin: str


@dataclass
class Subject:
    """One thing that rules are about, with what is known of it.

    Attributes
    ----------
    kind, name
        What it is, and its name.
    engine
        Of a database server its kind.
    facts
        By name; what is missing has its reason in `missing`.
    anchor
        File that a finding points at: `run.json`, a description, a configuration.
    otherwise
        Why facts that have no reason of their own in `missing` are not known.
    """

    kind: str
    name: str
    engine: str = ""
    facts: dict[str, Fact] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    anchor: str = ""
    otherwise: str = ""

    def know(self, name: str, value: Any, origin: str) -> None:
        """Keep a fact; None is none."""
        if value is not None:
            self.facts[name] = Fact(value, origin)
            self.missing.pop(name, None)

    def lack(self, name: str, reason: str) -> None:
        """Keep why a fact is not known."""
        if name not in self.facts:
            self.missing[name] = reason

    def get(self, name: str) -> Any:
        """Value of a fact, or None."""
        fact = self.facts.get(name)
        return fact.value if fact is not None else None

    def gap(self, names: Sequence[str]) -> str:
        """Why facts are not known, each reason once."""
        others = ", ".join(name for name in names if name not in self.missing)
        unknown = self.otherwise or f"{others} not known"
        reasons = dict.fromkeys(self.missing.get(name, unknown) for name in names)
        return "; ".join(reasons)


class When(NamedTuple):
    """A condition under which a rule says something.

    Attributes
    ----------
    fact
        Name of the fact that decides it.
    holds
        Whether it holds with a value of that fact.
    words
        The condition in words, to follow "where".
    unknown
        What a fact that is not known means; None: it cannot be told, and the rule is not checked.
    """

    fact: str
    holds: Callable[[Any], bool]
    words: str
    unknown: bool | None = None


@dataclass(frozen=True, kw_only=True)
class PracticeRule:
    """One rule: an entry in the file of its family.

    Attributes
    ----------
    id, title
        Its name in scripts, and what is wrong where it is broken.
    subject
        Kind of the things it is about (`SUBJECTS`).
    reads
        Names of the facts it needs; one that is not known makes it "not checked".
    good
        Whether their values are as they should be.
    wanted
        What they should be, in words.
    why, fix, source
        One sentence each: what it costs, how it is mended, and where that is from.
    engines
        Kinds of database servers; empty: any.
    applies
        Conditions in order. One that does not hold ends the matter: the rule does not apply. One that cannot be told
        makes it "not checked".
    shown
        What was found, in words; else the values themselves.
    asks
        Key of site.toml that gives the facts, where they cannot be read.
    """

    id: str
    title: str
    subject: str
    reads: tuple[str, ...]
    good: Callable[..., bool]
    wanted: str
    why: str
    fix: str
    source: str
    severity: Severity = "warning"
    engines: tuple[str, ...] = ()
    applies: tuple[When, ...] = ()
    shown: Callable[..., str] | None = None
    asks: str = ""


@dataclass(frozen=True, kw_only=True)
class BrokenRule:
    """A rule that is broken by a subject."""

    rule: PracticeRule
    subject: Subject
    found: str
    origin: str


@dataclass(frozen=True, kw_only=True)
class NotChecked:
    """A rule that says nothing of a subject, since something is not known."""

    rule: PracticeRule
    subject: Subject | None
    reason: str


@dataclass(kw_only=True)
class Findings:
    """What came of all rules.

    Attributes
    ----------
    findings
        Worst first.
    passed
        Rules and subjects that are as they should be.
    not_checked
        What is not known; never counted as passed.
    not_applicable
        Rules that say nothing of what was examined.
    """

    findings: list[BrokenRule] = field(default_factory=list)
    passed: list[tuple[PracticeRule, Subject]] = field(default_factory=list)
    not_checked: list[NotChecked] = field(default_factory=list)
    not_applicable: list[PracticeRule] = field(default_factory=list)

    def at_least(self, severity: Severity) -> list[BrokenRule]:
        """Findings of a severity and worse ones."""
        most = SEVERITIES.index(severity)
        return [one for one in self.findings if SEVERITIES.index(one.rule.severity) <= most]


_ASKED = ("network", "layout", "array", "hypervisor")
"""Kinds that a site has although nothing of them can be read on a host."""


def check(subjects: Sequence[Subject], rules: Sequence[PracticeRule]) -> Findings:
    """Judge all subjects by all rules."""
    told = Findings()
    # A model has no hosts, and so none that is a guest.
    only_models = bool(subjects) and {one.kind for one in subjects} <= {"array", "volume", "layout", "network"}
    for rule in rules:
        own = [one for one in subjects if one.kind == rule.subject and (not rule.engines or one.engine in rule.engines)]
        judged = [_judge(rule, one, told) for one in own]
        if not own and rule.asks and rule.subject in _ASKED and not (rule.subject == "hypervisor" and only_models):
            told.not_checked.append(
                NotChecked(rule=rule, subject=None, reason=f"not known; say it in site.toml: {rule.asks}")
            )
        elif not any(judged):
            told.not_applicable.append(rule)
    told.findings.sort(key=lambda one: (SEVERITIES.index(one.rule.severity), one.rule.id, one.subject.name))
    return told


def _judge(rule: PracticeRule, subject: Subject, told: Findings) -> bool:
    """Judge one; whether the rule says anything of it."""

    def skip(reason: str) -> bool:
        told.not_checked.append(NotChecked(rule=rule, subject=subject, reason=reason))
        return True

    asks = f"; say it in site.toml: {rule.asks}" if rule.asks else ""
    for condition in rule.applies:
        fact = subject.facts.get(condition.fact)
        holds = condition.unknown if fact is None else condition.holds(fact.value)
        if holds is None:
            return skip(f"{subject.gap([condition.fact])}{asks}")
        if not holds:
            return False
    lacking = [name for name in rule.reads if name not in subject.facts]
    if lacking:
        return skip(f"{subject.gap(lacking)}{asks}")
    values = [subject.facts[name].value for name in rule.reads]
    try:
        is_good = rule.good(*values)
    except (TypeError, ValueError, AttributeError):
        # A value of another form than any that is known proves nothing, neither way.
        return skip(f"{_shown(rule, values)} is not understood")
    if is_good:
        told.passed.append((rule, subject))
        return True
    found = rule.shown(*values) if rule.shown is not None else _shown(rule, values)
    origin = ", ".join(dict.fromkeys(subject.facts[name].origin for name in rule.reads))
    told.findings.append(BrokenRule(rule=rule, subject=subject, found=found, origin=origin))
    return True


def _shown(rule: PracticeRule, values: Sequence[Any]) -> str:
    return ", ".join(f"{name} = {in_words(value)}" for name, value in zip(rule.reads, values, strict=True))


def in_words(value: Any) -> str:
    """A value as people read it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value)) or "none"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {one}" for key, one in value.items())
    return str(value)
