"""Trust: how well git proves a memory, where its bytes come from, and its signatures.

Only the value types are here; `store.provenance` asks git for the facts.
"""

from __future__ import annotations

from memtool.value import Value

SHORT_ID_DIGITS = 7
"""Digits of a commit id in text for people. Fixed, since git's own choice differs by clone."""
CITED_DIGITS = 10
"""Digits of the commit in a citation that programs read."""
TRUST_LEVELS = ("local", "committed", "trusted", "signed")
"""What git can prove of a memory, least first (see `store.provenance`)."""


class Proof(Value):
    """A good signature by a key that the trusted ref allows, and its principal.

    `how` is `commit`, or `signature` for a detached one.
    """

    how: str
    by: str


class Origin(Value):
    """Where the present bytes of a memory come from. Empty texts and 0 mean: not known.

    `is_shallow` says that history was cut off before the commit that wrote it, or that this
    partial clone does not hold it, `is_first` that it added the file. `proofs` are the signatures
    by which its trust is `signed`.
    """

    commit: str
    author: str
    date: int
    trust: str
    is_shallow: bool = False
    is_first: bool = False
    proofs: tuple[Proof, ...] = ()


LOCAL = Origin("", "", 0, TRUST_LEVELS[0])
