"""All rules, family by family."""

from __future__ import annotations

import difflib

from assay.base.errors import UsageError
from assay.insight.rules.families import (
    arrays,
    devices,
    drives,
    host,
    initiator,
    layout,
    mariadb,
    mssql,
    network,
    postgresql,
    virtualisation,
)
from assay.insight.rules.rule import PracticeRule

FAMILIES: dict[str, tuple[PracticeRule, ...]] = {
    "layout": layout.RULES,
    "host": host.RULES,
    "devices": devices.RULES,
    "drives": drives.RULES,
    "initiator": initiator.RULES,
    "network": network.RULES,
    "virtualisation": virtualisation.RULES,
    "postgresql": postgresql.RULES,
    "mariadb": mariadb.RULES,
    "mssql": mssql.RULES,
    "arrays": arrays.RULES,
}

RULES: tuple[PracticeRule, ...] = tuple(rule for rules in FAMILIES.values() for rule in rules)


def rule_named(name: str) -> PracticeRule:
    """A rule by its identifier.

    Raises
    ------
    UsageError
        There is none; the line names one that is alike.
    """
    known = {rule.id: rule for rule in RULES}
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, n=1)
    raise UsageError(
        f"no rule {name!r}" + (f"; did you mean {near[0]}?" if near else "; assay check --list names them")
    )


def chosen_rules(only: str | None, skip: str | None) -> list[PracticeRule]:
    """Rules by identifiers and families.

    Raises
    ------
    UsageError
        A name is neither, or none is left.
    """

    def names(text: str | None) -> set[str]:
        found: set[str] = set()
        for word in (text or "").split(","):
            if word in FAMILIES:
                found |= {rule.id for rule in FAMILIES[word]}
            elif word:
                found.add(rule_named(word).id)
        return found

    wanted = names(only) or {rule.id for rule in RULES}
    left = [rule for rule in RULES if rule.id in wanted and rule.id not in names(skip)]
    if not left:
        raise UsageError("--only and --skip leave no rule")
    return left


def family_of(rule: PracticeRule) -> str:
    """Family of a rule."""
    return next(name for name, rules in FAMILIES.items() if rule in rules)
