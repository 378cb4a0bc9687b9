"""Signs: the words by which a sentence says yes or no to something, and how strongly.

Tables alone: the gate takes sentences apart by them, and the block is looked over for them.
"""

from __future__ import annotations

TYPES = ("decision", "semantic")
"""Types whose memories can contradict each other: a trace or a state was true at its time."""


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text as a table to look them up in."""
    return frozenset(text.split())


NEGATORS = word_set("not no never cannot avoid avoids avoiding neither nor none without")
"""Each turns the sign of its clause; so do words that end in n't, and `stop` before a verb."""
STOPPING = word_set("stop stops stopped")
CHOOSING = word_set("instead rather over")
"""Words between what is chosen and what is passed over."""
OPPOSITES: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("enable", ("enable", "enables", "enabled", "enabling", "activate", "activated"),
     ("disable", "disables", "disabled", "disabling", "deactivate", "deactivated")),
    ("allow", ("allow", "allows", "allowed", "permit", "permits", "permitted"),
     ("forbid", "forbids", "forbidden", "prohibit", "prohibits", "prohibited", "ban", "banned",
      "disallow", "disallowed", "deny", "denied")),
    ("add", ("add", "adds", "added", "adding", "include", "includes", "included", "keep", "keeps"),
     ("remove", "removes", "removed", "removing", "exclude", "excludes", "excluded", "drop",
      "drops", "dropped", "delete", "deletes", "deleted")),
    ("require", ("require", "requires", "required", "mandatory", "obligatory", "compulsory"),
     ("optional", "unnecessary", "voluntary")),
    ("accept", ("accept", "accepts", "accepted"),
     ("reject", "rejects", "rejected", "refuse", "refuses", "refused")),
    ("synchronous", ("synchronous", "synchronously", "sync"),
     ("asynchronous", "asynchronously", "async")),
    ("public", ("public",), ("private",)),
    ("mutable", ("mutable",), ("immutable",)),
)  # fmt: skip
"""Concept, words that affirm it, words that deny it."""
WEAK = word_set(
    "use uses used using adopt adopts adopted choose chooses chosen prefer prefers preferred favor"
    " favour always must should shall need needs needed have has may can could would ought please"
    " every all each any only just ever we you it they also still be is are was were been being"
    " do does did at let's"
)
"""Words that say how strongly, not what: they are no part of a subject."""
AFFIRMING = frozenset(word for _concept, yes, _no in OPPOSITES for word in yes)
DENYING = (
    frozenset(word for _concept, _yes, no in OPPOSITES for word in no)
    | NEGATORS | STOPPING | CHOOSING | {"off"}
)  # fmt: skip
"""Every word by which a sentence may say no; `don't` and its like aside."""
