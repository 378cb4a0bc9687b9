"""Trust rules: how well which memories must be proven, and by whose keys.

They stand as `[[trust.rules]]` in the settings, and hold as the trusted ref has them: no branch
lowers or adds one. Of each memory the first rule that matches decides. Owners are principals of
the allowed-signers file; only a signature proves one, since a commit names whom it likes as author.
"""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.memory.fields import TYPES
from memtool.memory.trust import TRUST_LEVELS
from memtool.store.files import governs, name_matches
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from memtool.memory.memory import Memory
    from memtool.memory.trust import Origin, Proof

KEY = "trust.rules"
RULE_KEYS = ("match", "require", "owners")
FILTERS = ("type", "category", "tag", "id", "path")
"""What `match` may name. All that it names must hold; of values with commas between them one."""
GATE = "gate"
"""The whole of `match` in the rule about the gate's own files: settings, signers, attributes."""
LEVELS = TRUST_LEVELS[1:]
SIGNED = TRUST_LEVELS[3]
MOST_RULES = 200

Term = tuple[str, tuple[str, ...]]
"""A filter and the values of which one must fit."""


class TrustRule(Value):
    """One rule. `terms` is what `match` says; without owners any allowed signer will do."""

    match: str
    require: str
    owners: tuple[str, ...]
    terms: tuple[Term, ...]

    def matches(self, memory: Memory | None, path: str) -> bool:
        """Tell whether it is about a memory; of a file that cannot be read only the path counts."""
        return bool(self.terms) and all(
            any(_fits(name, value, memory, path) for value in values) for name, values in self.terms
        )

    def is_owner(self, principal: str) -> bool:
        """Tell whether a signer is one of the owners."""
        return not self.owners or any(name_matches(owner, principal) for owner in self.owners)

    def gap(self, origin: Origin) -> str:
        """Return what a memory lacks to fulfil the rule, as a clause; empty where it does."""
        has, wanted = TRUST_LEVELS.index(origin.trust), TRUST_LEVELS.index(self.require)
        if has >= wanted and (not self.owners or self.is_proven(origin.proofs)):
            return ""
        return f"its rule wants it {self.demand}, it is {_told(origin)}"

    def is_proven(self, proofs: Iterable[Proof]) -> bool:
        """Tell whether one of some signatures is by an owner."""
        return any(self.is_owner(proof.by) for proof in proofs)

    @property
    def demand(self) -> str:
        """What it asks for, such as `signed by ann@example.org`."""
        if self.require != SIGNED:
            return self.require
        return f"signed by {' or '.join(self.owners) or 'an allowed signer'}"

    def text(self) -> str:
        """Return it as one line: whom it is about, and what it asks for."""
        return f"{self.match}: {self.demand}"


def _told(origin: Origin) -> str:
    if origin.proofs:
        return f"signed by {', '.join(dict.fromkeys(proof.by for proof in origin.proofs))}"
    if origin.is_shallow and origin.trust == TRUST_LEVELS[2]:
        return f"{origin.trust} (this clone is shallow: who signed its commit is not known)"
    return origin.trust


def _fits(name: str, value: str, memory: Memory | None, path: str) -> bool:
    if name == "path":
        return governs(value, path)
    if memory is None:
        return name == "id" and name_matches(value, path.rpartition("/")[2].removesuffix(".md"))
    if name == "tag":
        return any(name_matches(value, tag.casefold()) for tag in memory.items("tags"))
    if name == "id":
        return name_matches(value, memory.id)
    return value == (memory.type if name == "type" else memory.category)


def rule_of(rules: Iterable[TrustRule], memory: Memory | None, path: str) -> TrustRule | None:
    """Return the first rule that matches a memory, None where none does."""
    return next((rule for rule in rules if rule.matches(memory, path)), None)


def gap(rules: Iterable[TrustRule], memory: Memory, path: str, origin: Origin) -> str:
    """Return what a memory lacks to fulfil its rule; empty where it does, or has none."""
    rule = rule_of(rules, memory, path)
    return "" if rule is None else rule.gap(origin)


def gate_rule(rules: Sequence[TrustRule]) -> TrustRule | None:
    """Return rule 0, that of the gate's own files: what decides who owns what is owned, too.

    It is the one that matches `gate`, wherever it stands. Without one each owner of any rule may
    change these files; and where none asks for signatures, nobody is asked.
    """
    own = next((rule for rule in rules if rule.match == GATE), None)
    signing = [rule for rule in rules if rule.require == SIGNED]
    if own is not None or not signing:
        return own
    is_open = any(not rule.owners for rule in signing)
    owners = () if is_open else tuple(dict.fromkeys(o for rule in signing for o in rule.owners))
    return TrustRule(GATE, SIGNED, owners, ())


def parsed(given: object, path: str, categories: Collection[str]) -> tuple[TrustRule, ...]:
    """Return the rules of a settings file.

    Raises:
        MemtoolError: they are not as they must be; the message names the first that is wrong.
    """
    if not isinstance(given, list) or not all(isinstance(row, dict) for row in given):
        raise _refusal(path, KEY, "must be tables, each begun by [[trust.rules]]")
    if len(given) > MOST_RULES:
        raise _refusal(path, KEY, f"has {len(given)} entries, {MOST_RULES} are allowed")
    return tuple(_rule(row, f"{KEY} {n}", path, categories) for n, row in enumerate(given, 1))


def _rule(row: dict[str, object], where: str, path: str, categories: Collection[str]) -> TrustRule:
    unknown = sorted(set(row).difference(RULE_KEYS))
    if unknown:
        raise _refusal(path, where, f"has {unknown[0]!r}, which is not {', '.join(RULE_KEYS)}")
    match, owners = row.get("match"), row.get("owners", [])
    if not isinstance(match, str) or not match.strip():
        raise _refusal(path, where, 'needs match, such as match = "type:decision"')
    if not isinstance(owners, list) or not all(
        isinstance(o, str) and _is_principal(o) for o in owners
    ):
        raise _refusal(path, where, 'has owners that are no list such as ["ann@example.org"]')
    if "owners" in row and not owners:
        raise _refusal(path, where, "has no owner in owners, so nothing could ever fulfil it")
    require = row.get("require", SIGNED if owners else None)
    if require not in LEVELS:
        raise _refusal(path, where, f"needs require, one of {', '.join(LEVELS)}")
    if require != SIGNED and (owners or match.strip() == GATE):
        raise _refusal(path, where, "must require signed: nothing else proves who an owner is")
    terms = () if match.strip() == GATE else _terms(match, where, path, categories)
    return TrustRule(" ".join(match.split()), str(require), tuple(owners), terms)


def _is_principal(text: str) -> bool:
    return bool(text) and text.isprintable() and not any(map(str.isspace, text))


def _terms(match: str, where: str, path: str, categories: Collection[str]) -> tuple[Term, ...]:
    found = []
    for word in match.split():
        name, colon, value = word.partition(":")
        values = value.split(",")
        if name not in FILTERS or not colon or not all(values):
            known = ", ".join(f"{one}:" for one in FILTERS)
            raise _refusal(
                path,
                where,
                f"matches {word!r}, which is none of {known} with a value, and not {GATE} alone",
            )
        allowed = {"type": TYPES, "category": categories}.get(name)
        wrong = [one for one in values if allowed is not None and one not in allowed]
        if wrong:
            raise _refusal(path, where, f"matches {name}:{wrong[0]}, and there is no such {name}")
        if name == "tag":
            values = [one.casefold() for one in values]
        elif name == "path":
            values = [one.removeprefix("/").rstrip("/") for one in values]
        found.append((name, tuple(values)))
    return tuple(found)


def _refusal(path: str, where: str, what: str) -> MemtoolError:
    return MemtoolError(f"{path}: {where} {what}", hint=f"edit {path}", code="config")
