"""The primer: what a colleague would say at the start, in parts, within one budget.

The parts come in the order of their worth, and each takes what the ones before it left. What does
not fit is left out whole. Nothing in the text depends on the clock: hosts replay and cache it.
"""

from __future__ import annotations

from memtool.inject import budget as budgets
from memtool.inject import tiers
from memtool.inject.block import PREAMBLE, frame_bytes, write_block
from memtool.inject.escape import escaped, quoted
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from memtool.inject.formats import Format
    from memtool.inject.tiers import Candidate, Taken, Verdict

    Choose = Callable[[Sequence[Candidate]], tuple[list[Candidate], list[Verdict]]]

GUIDE = (
    "`memtool remember TEXT` writes down what the user said, `memtool new decision TITLE` what was "
    "decided and why; `memtool search WORDS` finds more than stands here.\n"
    "`memtool supersede ID TITLE` corrects what is wrong, `memtool forget ID --why TEXT` takes it "
    "out; no secret belongs in a memory.\n"
)
"""The two lines at the end. They say what there is, in no tone of command: hosts distrust that."""


class Part(Value):
    """One part: lines of text, or passages, the most important first.

    `choose` is told what is shown already, and returns what is worth showing; at most `most` of
    that and `share` tokens are taken.
    """

    title: str
    lines: tuple[str, ...] = ()
    choose: Choose | None = None
    most: int = 0
    share: int = 0


class Primer(Value):
    """The text of a primer, empty where there is nothing to say, and what was decided about it.

    `taken` are the memories in it, in order.
    """

    text: str
    taken: tuple[Taken, ...]
    verdicts: tuple[Verdict, ...]


NOTHING = Primer("", (), ())


def compose(
    parts: Sequence[Part],
    write: Callable[[Candidate, bool], str],
    form: Format,
    total_tokens: int,
    *,
    guide: str = GUIDE,
    preamble: str = PREAMBLE,
) -> Primer:
    """Fill the budget with parts, in order, and write the block around them and the guide.

    Where not even the guide fits, nothing is written.
    """
    room = total_tokens * budgets.BYTES_PER_TOKEN - frame_bytes(form, preamble) - len(guide)
    if room < 0:
        return NOTHING
    sections: list[str] = []
    taken: list[Taken] = []
    verdicts: list[Verdict] = []
    for part in parts:
        head = form.section.format(title=escaped(part.title, form.head_escapes))
        left = room - len(head.encode()) - len(form.section_end)
        texts = _fitting([quoted(line, form.escapes) for line in part.lines], left)
        if part.choose is not None:
            chosen, dropped = part.choose([one.candidate for one in taken])
            more, said = tiers.fill(chosen, write, part.most, part.share, left)
            verdicts += dropped + said
            taken += more
            texts += [one.text for one in more]
        if texts:
            body = "".join(texts)
            end = "" if body.endswith(f"\n{form.section_end}") else form.section_end  # blank lines
            sections.append(f"{head}{body}{end}")
            room -= len(sections[-1].encode())
    text = write_block([*sections, guide], form, preamble)
    return Primer(text, tuple(taken), tuple(verdicts))


def _fitting(lines: Iterable[str], room: int) -> list[str]:
    """Return the first lines that fit into a number of bytes."""
    kept = []
    for line in lines:
        room -= len(line.encode())
        if room < 0:
            break
        kept.append(line)
    return kept
