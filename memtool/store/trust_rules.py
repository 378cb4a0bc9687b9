"""Trust rules: the trust level that memories need, and whose signatures count.

They are `[[trust.rules]]` in the settings of the trusted ref, so that a branch cannot change them.
For each memory the first matching rule decides. Owners are principals of the allowed-signers file;
only a signature proves an owner, since a commit can name any author.
"""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.memory.fields import TYPES
from memtool.memory.trust import TRUST_LEVELS
from memtool.store.files import matches_name, matches_or_contains
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from memtool.memory.memory import Memory
    from memtool.memory.trust import Origin, Proof

KEY = "trust.rules"
RULE_KEYS = ("match", "require", "owners")
FILTERS = ("type", "category", "tag", "id", "path")
"""Filters of `match`. All of them must match; of comma-separated values one is enough."""
GATE = "gate"
"""Value of `match` in the rule for the gate's own files: settings, signers, attributes."""
LEVELS = TRUST_LEVELS[1:]
SIGNED = TRUST_LEVELS[3]
MAX_RULES = 200

Term = tuple[str, tuple[str, ...]]
"""A filter and its alternative values."""


class TrustRule(Value):
    """One rule. `terms` is the parsed `match`; without owners any allowed signer is enough."""

    match: str
    require: str
    owners: tuple[str, ...]
    terms: tuple[Term, ...]

    def matches(self, memory: Memory | None, path: str) -> bool:
        """Return whether the rule applies to a memory, or by path alone to an unreadable file."""
        return bool(self.terms) and all(
            any(_matches_value(name, value, memory, path) for value in values)
            for name, values in self.terms
        )

    def is_owner(self, principal: str) -> bool:
        """Return whether a signer is one of the owners."""
        return not self.owners or any(matches_name(owner, principal) for owner in self.owners)

    def find_gap(self, origin: Origin) -> str:
        """Return a clause on what a memory lacks to fulfil the rule; empty if it fulfils it."""
        has, wanted = TRUST_LEVELS.index(origin.trust), TRUST_LEVELS.index(self.require)
        if has >= wanted and (not self.owners or self.is_proven(origin.proofs)):
            return ""
        return f"its rule wants it {self.demand}, it is {_describe_trust(origin)}"

    def is_proven(self, proofs: Iterable[Proof]) -> bool:
        """Return whether one of the signatures is by an owner."""
        return any(self.is_owner(proof.by) for proof in proofs)

    @property
    def demand(self) -> str:
        """The requirement, such as `signed by ann@example.org`."""
        if self.require != SIGNED:
            return self.require
        return f"signed by {' or '.join(self.owners) or 'an allowed signer'}"

    def text(self) -> str:
        """Return the rule as one line: match and requirement."""
        return f"{self.match}: {self.demand}"


def _describe_trust(origin: Origin) -> str:
    if origin.proofs:
        return f"signed by {', '.join(dict.fromkeys(proof.by for proof in origin.proofs))}"
    if origin.is_shallow and origin.trust == TRUST_LEVELS[2]:
        return f"{origin.trust} (this clone is shallow: who signed its commit is not known)"
    return origin.trust


def _matches_value(name: str, value: str, memory: Memory | None, path: str) -> bool:
    if name == "path":
        return matches_or_contains(value, path)
    if memory is None:
        return name == "id" and matches_name(value, path.rpartition("/")[2].removesuffix(".md"))
    if name == "tag":
        return any(matches_name(value, tag.casefold()) for tag in memory.items("tags"))
    if name == "id":
        return matches_name(value, memory.id)
    return value == (memory.type if name == "type" else memory.category)


def find_rule(rules: Iterable[TrustRule], memory: Memory | None, path: str) -> TrustRule | None:
    """Return the first rule that matches a memory; None if none does."""
    return next((rule for rule in rules if rule.matches(memory, path)), None)


def find_gap(rules: Iterable[TrustRule], memory: Memory, path: str, origin: Origin) -> str:
    """Return what a memory lacks to fulfil its rule; empty if it fulfils it or has none."""
    rule = find_rule(rules, memory, path)
    return "" if rule is None else rule.find_gap(origin)


def find_gate_rule(rules: Sequence[TrustRule]) -> TrustRule | None:
    """Return the rule for the gate's own files, which define the owners and so need owners, too.

    It is the rule that matches `gate`, at any position. Without it every owner of any rule may
    change these files. If no rule requires signatures, there is no such rule.
    """
    explicit = next((rule for rule in rules if rule.match == GATE), None)
    signing = [rule for rule in rules if rule.require == SIGNED]
    if explicit is not None or not signing:
        return explicit
    is_open = any(not rule.owners for rule in signing)
    owners = (
        () if is_open else tuple(dict.fromkeys(owner for rule in signing for owner in rule.owners))
    )
    return TrustRule(GATE, SIGNED, owners, ())


def parse_rules(value: object, path: str, categories: Collection[str]) -> tuple[TrustRule, ...]:
    """Parse the rules of a settings file.

    Raises:
        MemtoolError: a rule is invalid; the message names the first one.
    """
    if not isinstance(value, list) or not all(isinstance(row, dict) for row in value):
        raise _build_error(path, KEY, "must be tables that start with [[trust.rules]]")
    if len(value) > MAX_RULES:
        raise _build_error(path, KEY, f"has {len(value)} entries, the limit is {MAX_RULES}")
    return tuple(
        _parse_rule(row, f"{KEY} {number}", path, categories) for number, row in enumerate(value, 1)
    )


def _parse_rule(
    row: dict[str, object], where: str, path: str, categories: Collection[str]
) -> TrustRule:
    unknown = sorted(set(row).difference(RULE_KEYS))
    if unknown:
        raise _build_error(
            path, where, f"has the unknown key {unknown[0]!r} (not {', '.join(RULE_KEYS)})"
        )
    match, owners = row.get("match"), row.get("owners", [])
    if not isinstance(match, str) or not match.strip():
        raise _build_error(path, where, 'needs match, such as match = "type:decision"')
    if not isinstance(owners, list) or not all(
        isinstance(owner, str) and _is_principal(owner) for owner in owners
    ):
        raise _build_error(path, where, 'must have owners as a list such as ["ann@example.org"]')
    if "owners" in row and not owners:
        raise _build_error(path, where, "has no owner, so nothing could satisfy it")
    require = row.get("require", SIGNED if owners else None)
    if require not in LEVELS:
        raise _build_error(path, where, f"needs require, one of {', '.join(LEVELS)}")
    if require != SIGNED and (owners or match.strip() == GATE):
        raise _build_error(
            path, where, "must require signed: only a signature proves who the owner is"
        )
    terms = () if match.strip() == GATE else _parse_terms(match, where, path, categories)
    return TrustRule(" ".join(match.split()), str(require), tuple(owners), terms)


def _is_principal(text: str) -> bool:
    return bool(text) and text.isprintable() and not any(map(str.isspace, text))


def _parse_terms(
    match: str, where: str, path: str, categories: Collection[str]
) -> tuple[Term, ...]:
    terms = []
    for word in match.split():
        name, colon, value = word.partition(":")
        values = value.split(",")
        if name not in FILTERS or not colon or not all(values):
            filters = ", ".join(f"{filter_name}:" for filter_name in FILTERS)
            raise _build_error(
                path,
                where,
                f"matches {word!r}; match takes {filters} with a value, or {GATE} alone",
            )
        allowed = {"type": TYPES, "category": categories}.get(name)
        wrong = [value for value in values if allowed is not None and value not in allowed]
        if wrong:
            raise _build_error(
                path, where, f"matches {name}:{wrong[0]}, but {wrong[0]} is not a {name}"
            )
        if name == "tag":
            values = [value.casefold() for value in values]
        elif name == "path":
            values = [value.removeprefix("/").rstrip("/") for value in values]
        terms.append((name, tuple(values)))
    return tuple(terms)


def _build_error(path: str, where: str, what: str) -> MemtoolError:
    return MemtoolError(f"{path}: {where} {what}", hint=f"edit {path}", code="config")
