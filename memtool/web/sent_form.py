"""A form as a browser sent it: its fields, and where it came from.

A form carries the address of its page and a name that it alone has there. If it is refused, that
page is shown again, with the fields as they were typed and the problem beside its field. A sent
form is in no log and in no kept answer.
"""

from __future__ import annotations

from urllib.parse import parse_qsl, unquote, urlsplit

from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

CONTROL = ("nonce", "next", "step", "page", "form", "seen")
"""Fields of the page, and not of the verb."""
SHOW, DO, BACK = "show", "do", "back"
"""Steps of a form: preview the effect, show the result, or go back from the preview to the form.
Without one it redirects."""


class FormRefusal(Value):
    """A refusal of a form: what is wrong in one sentence, the field, and what to do.

    - `field`: the name of the field, empty if it is none of the form
    - `rows`: ids of memories that cannot be changed, each with the reason
    - `remaining`: ids of the others, for which it can be done
    - `links`: addresses that help, with their words
    - `commands`: commands of git, where no page can help
    """

    sentence: str
    field: str = ""
    advice: str = ""
    lines: tuple[str, ...] = ()
    rows: tuple[tuple[str, str], ...] = ()
    remaining: tuple[str, ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    commands: tuple[str, ...] = ()
    texts: tuple[tuple[str, str], ...] = ()
    """Fields with what was typed, if the page has this form no more."""


class SentForm(Value):
    """The fields of a form for a verb, in order, with those in `CONTROL` by name.

    A field `VERB.NAME` is only for that verb: a form with several buttons has some of each.
    """

    verb: str
    pairs: tuple[tuple[str, str], ...]
    control: dict[str, str]
    refusal: FormRefusal | None = None

    @property
    def name(self) -> str:
        """The name of the form on its page."""
        return self.control.get("form", "")

    @property
    def step(self) -> str:
        """What follows: `SHOW`, `DO`, `BACK`, or nothing."""
        return self.control.get("step", "")

    @property
    def goal(self) -> str:
        """The path to go to when it is done; the first page instead of one of another site."""
        return _own_path(self.control.get("next", ""))

    @property
    def page(self) -> str:
        """The address of the page that the form came from; the first page if that is unknown."""
        return _own_path(self.control.get("page", ""))

    @property
    def arguments(self) -> list[tuple[str, str]]:
        """The names and values that the verb gets."""
        named = ((name.rpartition("."), value) for name, value in self.pairs)
        return [(name, value) for (verb, _dot, name), value in named if verb in ("", self.verb)]

    def all(self, name: str) -> list[str]:
        """Return every value of a field."""
        return [value for key, value in self.pairs if key == name]

    def list_texts(self) -> list[tuple[str, str]]:
        """Return the fields that hold a text, for a page that cannot show the form again."""
        return [(name, value) for name, value in self.pairs if name not in HIDDEN and value.strip()]


HIDDEN = ("id", "ids", "old", "finding", "dismiss", "reopen", "commit", "accept_files", "all")
"""Fields that nobody types."""


def parse_form(verb: str, body: bytes) -> SentForm:
    """Parse the body of a form; lines end as in a file, not as a browser sends them."""
    pairs = [
        (name, value.replace("\r\n", "\n"))
        for name, value in parse_qsl(body.decode(errors="replace"), keep_blank_values=True)
    ]
    control = {name: value for name, value in pairs if name in CONTROL}
    return SentForm(verb, tuple(pair for pair in pairs if pair[0] not in CONTROL), control)


def split_address(address: str) -> tuple[str, list[tuple[str, str]]]:
    """Return the path of an address, and the pairs of its query."""
    parts = urlsplit(address)
    return unquote(parts.path), parse_qsl(parts.query, keep_blank_values=True)


def _own_path(address: str) -> str:
    """Return an address of this server, else the first page."""
    is_own = address.startswith("/") and not address.startswith(("//", "/\\"))
    return address if is_own and address.isprintable() else "/"


def pick(form: SentForm | None, name: str, field: str, default: Sequence[str]) -> list[str]:
    """Return the values of a field of the form `name`: as typed if it was sent, else `default`."""
    return form.all(field) if form is not None and form.name == name else [*default]
