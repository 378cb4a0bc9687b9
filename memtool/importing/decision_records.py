"""Decision records: files or folders of any usual form, as decisions.

Records are files with a number, or with a status, or with sections for a decision and its context;
also folders with a number and a README.md, as those of Kubernetes with their `kep.yaml`, and PEPs.
They are in markdown, reStructuredText or AsciiDoc, in any of ten languages. Facts become keys
(`record_text` has which); all other text stays in the body. Templates, indexes and other files are
left out, each with a warning.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence

from memtool.importing import originals, peps, record_markup, record_text, record_words
from memtool.importing.originals import ForeignRecord, ImportRequest, Original
from memtool.importing.peps import pep_drafts
from memtool.importing.record_text import RecordFacts
from memtool.importing.record_words import ENDINGS, Edge, Target
from memtool.memory import ids, timestamps
from memtool.memory.memory import Fields, FieldValue
from memtool.memory.schema import Problem
from memtool.value import Value

__all__ = ["adr_drafts", "pep_drafts"]

_KEP_FACTS = "kep.yaml"
_FOLDER_TEXTS = ("readme", "index")
_DATED = r"(?P<date>\d{4}-\d\d-\d\d|\d{8})"
_NUMBER = r"(?P<number>\d{1,8}|\d{2,8}[a-z])"
_NAME = re.compile(
    rf"(?:{_DATED}(?:[-_ .]+(?:(?P<dated>\d{{2,4}})(?=[-_ .]|$))?|$)"
    rf"|(?P<kind>(?:[a-z]{{2,5}}[-_ ]*)?){_NUMBER}(?:[-_ .]+|$))(?P<words>.*)$",
    re.IGNORECASE,
)
_UNNUMBERED = re.compile(r"(?:[nx]{3,}|yyyy-?mm-?dd)(?![a-z])", re.IGNORECASE)
_KINDS = frozenset({"", "adr", "dr", "decision", "record"})
"""Words before a number that mean a record of the same folder, whatever those are called."""
_LINKED = re.compile(r"\]\(<?([^)\s>#]+)")
MIN_INDEX_LINKS = 3
"""Links to other records that make a text an index if they are on most of its lines."""


class RecordName(Value):
    """The name of a record's file or folder, without its ending, in parts."""

    stem: str
    date: str = ""
    kind: str = ""
    number: str = ""
    words: str = ""


class RecordFile(Value):
    """A file that may be a record, with the folder that its links start from.

    `front` are facts from another file of the folder.
    """

    original: Original
    text: str
    place: str
    """The path of the file or folder of the record below the imported one."""
    ending: str
    name: RecordName
    front: Fields


class Draft(Value):
    """A record whose relations are still names: its edges, and the kind of its number."""

    record: ForeignRecord
    name: RecordName
    folder: str
    kinds: frozenset[str]
    edges: tuple[Edge, ...]
    state: str


def adr_drafts(path: str, request: ImportRequest) -> Iterator[ForeignRecord | Problem]:
    """Yield the decision record of a file, or those of a directory."""
    drafts = []
    for file in _read_files(path, request):
        if isinstance(file, Problem):
            yield file
        elif file.name.kind in ("", "pep") and peps.is_pep(file.text):
            yield from peps.build_pep(file.original, file.text)
        else:
            draft = _build_draft(file, request)
            if isinstance(draft, Problem):
                yield draft
            else:
                drafts.append(draft)
    names = _map_numbers(drafts)
    for draft in drafts:
        if draft.state and not originals.find_state(draft.state):
            yield originals.unknown_state(draft.record, draft.state)
        yield from _resolve_edges(draft, names)


def _read_files(path: str, request: ImportRequest) -> Iterator[RecordFile | Problem]:
    """Yield the files that may be records, and problems for those that cannot be."""
    sources = []
    folders: dict[str, list[str]] = {}
    for source in originals.find_files(path, request.top, _is_wanted):
        if isinstance(source, Problem):
            yield source
            continue
        sources.append(source)
        folder, _, name = source.path.rpartition("/")
        folders.setdefault(folder, []).append(name)
    root = path if not sources or sources[0].path != path else posixpath.dirname(path)
    is_single = root != path
    names = frozenset(name for names in folders.values() for name in names)
    for source in sources:
        folder, _, name = source.path.rpartition("/")
        file = _read_file(source, folders[folder], root, is_single=is_single)
        if isinstance(file, RecordFile) and _is_index(file, names):
            yield originals.left_out(source, "it is a list of records")
        elif file is not None:
            yield file


def _is_wanted(name: str) -> bool:
    return name.lower().endswith(ENDINGS) or name == _KEP_FACTS


def _read_file(
    source: Original, names: Sequence[str], root: str, *, is_single: bool
) -> RecordFile | Problem | None:
    """Read a file, with the facts about its folder; None if it belongs to another file."""
    folder, _, file_name = source.path.rpartition("/")
    stem, ending = _split_name(file_name)
    has_facts = _KEP_FACTS in names
    is_text = stem.lower() in _FOLDER_TEXTS
    folder_name = parse_name(posixpath.basename(folder))
    is_folder_record = has_facts or bool(
        (folder != root or is_single)
        and is_text
        and (folder_name.number or folder_name.date)
        and not any(_is_numbered(name) for name in names)
    )
    if file_name == _KEP_FACTS and any(_split_name(name)[0].lower() == "readme" for name in names):
        facts = originals.read_text(source)  # read with the README.md
        return facts if isinstance(facts, Problem) else None
    if is_folder_record and not (is_text or file_name == _KEP_FACTS):
        return originals.left_out(source, "it belongs to the record of its folder")
    name = folder_name if is_folder_record else parse_name(stem)
    reason = "" if is_folder_record and not _UNNUMBERED.match(name.stem) else _find_reason(name)
    if reason:
        return originals.left_out(source, reason)
    text = originals.read_text(source)
    if isinstance(text, Problem):
        return text
    front: Fields = {}
    if file_name == _KEP_FACTS:
        front, text = _read_facts(text), ""
    elif has_facts:
        place = f"{folder}/{_KEP_FACTS}"
        other = originals.read_text(originals.build_original(place, root))
        front = {} if isinstance(other, Problem) else _read_facts(other)
    if has_facts:
        name = name.replace(kind="kep")
    place = folder if is_folder_record else source.path
    place = (
        posixpath.basename(place) if is_single or place == root else posixpath.relpath(place, root)
    )
    return RecordFile(source, text, place, ending, name, front)


def _read_facts(text: str) -> Fields:
    lines = text.rstrip("\n").split("\n")
    begin = [] if lines[0].rstrip() == "---" else ["---"]
    return originals.front_matter([*begin, *lines, "---"])[0]


def _split_name(name: str) -> tuple[str, str]:
    ending = next((end for end in sorted(ENDINGS, key=len) if name.lower().endswith(end)), "")
    return name[: len(name) - len(ending)], ending


def _is_numbered(file_name: str) -> bool:
    stem, ending = _split_name(file_name)
    return bool(ending and parse_name(stem).number)


def parse_name(stem: str) -> RecordName:
    """Split a name such as `0007-use-it`, `adr-012a`, `2023-06-19_024-x` or `20200101-x`."""
    match = _NAME.match(stem)
    if match is None:
        return RecordName(stem)
    number = match["dated"] or match["number"] or ""
    kind = (match["kind"] or "").strip("-_ ").lower()
    return RecordName(stem, match["date"] or "", kind, number.lower(), match["words"] or "")


def _find_reason(name: RecordName) -> str:
    """Return why a name is not that of a record; empty if it may be one."""
    words = name.words if name.number else name.stem
    plain = re.sub(
        r"^(?:adr|rfc|kep|tep|record)s?[-_ .]+(?=\w)|[-_ .](?:adr|rfc)$", "", words.lower()
    )
    parts = plain.strip("_-. ").replace("_", "-").split("-")
    if (
        _UNNUMBERED.match(name.stem.lower().removeprefix("adr-").removeprefix("rfc-"))
        or (words and record_words.find_key(plain, "template") and plain != "title")
        or (not name.number.strip("0") and "template" in (parts[0], parts[-1]))
        or (
            len(parts) == 2
            and "template" in parts
            and parts[-1 - parts.index("template")] in _VARIANTS
        )
    ):
        return "it is a template, by its name"
    if not name.number and plain == "readme":
        return "it is the README of its folder"
    if words and record_words.find_key(plain, "index"):
        return "it is an index, by its name"
    return "its name begins with an underscore" if name.stem.startswith("_") else ""


_VARIANTS = frozenset(
    {"madr", "nygard", "short", "long", "minimal", "full", "bare", "example", "adr"}
)


def _is_index(file: RecordFile, names: frozenset[str]) -> bool:
    """Return whether most lines of a text are links to other records."""
    lines = [line for line in file.text.split("\n") if line.strip() and line[:1] not in "#-:="]
    items = [line for line in file.text.split("\n") if line.lstrip()[:2] in ("- ", "* ")]
    lines = list(dict.fromkeys([*lines, *items]))
    count = 0
    for line in lines:
        targets = (link.rpartition("/")[2] for link in _LINKED.findall(line[:1_000]))
        count += any(target in names and _is_numbered(target) for target in targets)
    return count >= MIN_INDEX_LINKS and count * 5 > len(lines) * 3


def _build_draft(file: RecordFile, request: ImportRequest) -> Draft | Problem:
    text = record_markup.to_markdown(file.text, file.ending)
    lines = text.split("\n")
    front, first = originals.front_matter(lines)
    front |= file.front
    content = record_text.parse_record(lines[first:], file.name.number)
    front_facts, fact_keys = record_text.parse_front(
        {key: _join_value(value) for key, value in front.items()}
    )
    facts = front_facts.merge(content.facts)
    name = file.name
    title = content.title or record_text.strip_number(facts.title, name.number)
    if file.front and front_facts.title:
        title = record_text.strip_number(front_facts.title, name.number)
    title = title or _title_from_name(name)
    state = "" if _is_unfilled(facts.state) else facts.state
    if record_text.is_placeholder(title):
        return originals.left_out(
            file.original,
            "its title is a placeholder, as that of a template",
            "give it a title if it decides something",
        )
    is_known = bool(originals.find_state(state))
    if not (name.number or name.date or is_known or content.is_decision):
        return originals.left_out(
            file.original,
            "neither its name has a number nor its text a known status",
            "memtool new decision TITLE --body - takes any text",
        )
    whole = file.text.split("\n")
    folder = posixpath.dirname(file.place)
    fields, date_from = _build_fields(facts, title, state, name, request)
    fields |= _build_own_fields(front, fact_keys, name)
    matched = originals.match_state(state)
    record = ForeignRecord(
        key=file.place,
        id=build_id(name),
        fields=fields,
        body=content.body,
        original=file.original,
        lines=(1, max(len(whole) - (not whole[-1]), 1)),
        names=(_split_name(file.place)[0], posixpath.basename(file.place)),
        status_from=matched.shown if matched else "",
        date_from=date_from,
    )
    kinds = _KINDS | {
        name.kind,
        content.kind,
        *_name_kinds(folder or posixpath.basename(posixpath.dirname(file.original.path))),
    }
    return Draft(record, name, folder, kinds, facts.edges, state)


def _name_kinds(folder: str) -> set[str]:
    """Return the words of a folder's name in the singular, such as `rfc` for `rfcs`."""
    words = re.findall(r"[a-z]+", posixpath.basename(folder).lower())
    return {word.removesuffix("s") for word in words}


def _is_unfilled(state: str) -> bool:
    """Return whether a status is empty, the choice of a template, or says that there is none."""
    plain = state.strip(" *_`.")
    return (
        not any(char.isalpha() for char in plain)
        or originals.is_choice(plain)
        or plain.lower() in ("none", "n/a", "na")
        or (
            plain[:1] in "{<["
            and plain[-1:] in "}>]"
            and "](" not in plain
            and not originals.find_state(plain)
        )
    )


def _join_value(value: FieldValue) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {text}" for key, text in value.items())
    return value if isinstance(value, str) else ", ".join(value)


def _build_fields(
    facts: RecordFacts, title: str, state: str, name: RecordName, request: ImportRequest
) -> tuple[Fields, str]:
    """Return the fields of a record, and where its date is from."""
    fields: Fields = {"type": "decision", "title": title}
    if state:
        fields["status"] = originals.find_state(state) or "candidate"
    day, date_from = facts.date, facts.date_from
    if not day and name.date:
        digits = name.date.replace("-", "")
        day = originals.parse_moment(f"{digits[:4]}-{digits[4:6]}-{digits[6:]}")
        date_from = "file name"
    if day and not _is_future(day, request.now):
        fields["timestamp"] = day
    elif day or facts.unread_date:
        fields["x-date"] = originals.to_line(day or facts.unread_date)
        date_from = ""
    lines = (originals.to_line(tag, 80) for tag in facts.tags)
    tags = tuple(dict.fromkeys(line for line in lines if line))
    if tags:
        fields["tags"] = tags
    if name.number[-1:].isalpha():
        fields["aliases"] = (f"{(name.kind or 'adr').upper()}-{name.number}",)
    return fields, date_from if day else ""


def _is_future(moment: str, now: int) -> bool:
    """Return whether a moment is after tomorrow, whatever the time zone."""
    return bool(now) and timestamps.parse(moment) > now + 2 * timestamps.DAY_S


def _build_own_fields(front: Fields, fact_keys: frozenset[str], name: RecordName) -> Fields:
    """Return the keys of the front matter that memories do not have."""
    fields: Fields = {}
    for key in sorted(front.keys() - fact_keys):
        value = originals.to_line(_join_value(front[key]))
        if key == "id" and name.number and value.lstrip("0") == name.number.lstrip("0"):
            continue  # already in the id of the memory
        own = re.sub("[^a-z0-9]+", "-", key.lower()).strip("-")[:60]
        if value and own:
            fields[f"x-{own}"] = value
    return fields


def build_id(name: RecordName) -> str:
    """Return the id of a record: `adr`, its number, and the words of its name."""
    if name.date and name.number:
        return _join_id("adr", name.number, name.words)
    if name.kind == "kep" and name.number:
        return _join_id("kep", name.number, name.words)
    if name.number and name.kind in ("", "adr"):
        return _join_id("adr", name.number, name.words)
    return f"adr-{ids.make_slug(name.stem, 80)}"


def _join_id(prefix: str, number: str, words: str) -> str:
    slug = ids.make_slug(words, 80) if words else ""
    return f"{prefix}-{number}-{slug}" if slug else f"{prefix}-{number}"


def _title_from_name(name: RecordName) -> str:
    words = (name.words or name.stem).replace("-", " ").replace("_", " ").strip()
    return words[:1].upper() + words[1:]


def _map_numbers(drafts: Sequence[Draft]) -> Mapping[str, list[Draft]]:
    """Map `FOLDER#NUMBER`, `#NUMBER`, paths and names without ending to records."""
    names: dict[str, list[Draft]] = {}
    for draft in drafts:
        number = draft.name.number.lstrip("0") or "0"
        place = _split_name(draft.record.key)[0]
        own = [place.lower(), f"/{posixpath.basename(place).lower()}"]
        if draft.name.number:
            own += [f"{draft.folder}#{number}", f"*#{number}"]
        for name in dict.fromkeys(own):
            names.setdefault(name, []).append(draft)
    return names


def _resolve_edges(
    draft: Draft, names: Mapping[str, list[Draft]]
) -> Iterator[ForeignRecord | Problem]:
    """Yield the record with the keys or ids of the related ones, after warnings."""
    related: dict[str, list[str]] = {"supersedes": [], "superseded_by": [], "related_to": []}
    problems = []
    for edge in dict.fromkeys(draft.edges):
        targets = _find_targets(edge.target, draft, names)
        if len(targets) > 1:
            shown = ", ".join(sorted(target.record.id for target in targets)[:3])
            message = f"{_show_target(edge.target)} may be {shown}; that relation is left out"
            hint = "name the file of the record"
            problems.append(draft.record.problem("dangling", message, hint, "warning"))
        elif targets:
            if targets[0] is not draft:
                related[edge.relation].append(targets[0].record.key)
        elif edge.relation != "related_to":
            related[edge.relation] += _name_unknown(edge.target, draft)
    yield from problems
    fields = dict(draft.record.fields)
    for relation in ("supersedes", "related_to"):
        if related[relation]:
            fields[relation] = tuple(dict.fromkeys(related[relation]))
    newer = tuple(dict.fromkeys(related["superseded_by"]))
    yield draft.record.replace(fields=fields, superseded_by=newer)


def _find_targets(target: Target, draft: Draft, names: Mapping[str, list[Draft]]) -> list[Draft]:
    """Return the records that a relation may mean: in the same folder, else in any."""
    if target.path:
        path = _split_name(target.path.removesuffix(".html"))[0].lower()
        base = posixpath.basename(path)
        if base in _FOLDER_TEXTS:
            path = posixpath.dirname(path)
            base = posixpath.basename(path)
        local = posixpath.normpath(posixpath.join(draft.folder, path.lstrip("/"))).lower()
        own = names.get(local) or names.get(f"/{base}")
        if own:
            return own
        number = parse_name(base).number
        return _find_numbered(number, draft, names) if number else []
    if target.kind in draft.kinds:
        return _find_numbered(target.number, draft, names)
    return []


def _find_numbered(number: str, draft: Draft, names: Mapping[str, list[Draft]]) -> list[Draft]:
    plain = number.lstrip("0") or "0"
    return names.get(f"{draft.folder}#{plain}") or names.get(f"*#{plain}") or []


def _name_unknown(target: Target, draft: Draft) -> list[str]:
    """Return the id or name of a record that is not imported now, but may be a memory."""
    if not target.path:
        return [_show_target(target)] if target.kind in draft.kinds else []
    path = _split_name(target.path.removesuffix(".html"))[0]
    if "/" not in path.strip("/") and not draft.folder:
        return [build_id(parse_name(path.strip("/")))]
    whole = path if path.startswith("/") else posixpath.join(draft.folder, path)
    return [posixpath.normpath(whole).lstrip("/")]


def _show_target(target: Target) -> str:
    return target.path or f"{target.kind.upper() or 'ADR'} {target.number}"
