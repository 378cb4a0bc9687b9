"""Decision records: files or folders of any usual form, as decisions.

A record has a number, or a known status, or sections for a decision and its context. Its facts
become keys (`record_text` has which), its relations lead to the other records, and all other text
stays in the body. What is not a record is left out, with a warning.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence

from memtool.importing import (
    originals,
    peps,
    record_files,
    record_markup,
    record_text,
)
from memtool.importing.originals import ForeignRecord, ImportRequest
from memtool.importing.record_files import RecordFile, RecordName
from memtool.importing.record_text import RecordFacts
from memtool.importing.record_words import Edge, Target
from memtool.memory import ids, timestamps
from memtool.memory.memory import Fields, FieldValue
from memtool.memory.schema import Problem
from memtool.value import Value

_KINDS = frozenset({"", "adr", "dr", "decision", "record"})
"""Words before a number that mean a record of the same folder, whatever those are called."""


HEAD_CHARS = 2_000
"""Characters of a record in which its dates show whether the day comes first."""


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
    files = list(record_files.read_files(path, request))
    texts = (file.text[:HEAD_CHARS] for file in files if isinstance(file, RecordFile))
    is_day_first = originals.has_day_first(texts)
    drafts = []
    for file in files:
        if isinstance(file, Problem):
            yield file
        elif file.name.kind in ("", "pep") and peps.is_pep(file.text):
            yield from peps.build_pep(file.original, file.text)
        else:
            draft = _build_draft(file, request, is_day_first=is_day_first)
            if isinstance(draft, Problem):
                yield draft
            else:
                drafts.append(draft)
    names = _map_numbers(drafts)
    conclusions = _find_conclusions(drafts, names)
    records = []
    for draft in drafts:
        if draft.state and not originals.find_state(draft.state):
            yield originals.unknown_state(draft.record, draft.state)
        record, problems = _resolve_edges(draft, names)
        yield from problems
        premises = (*record.premises, *conclusions.get(record.key, ()))
        records.append(record.replace(premises=tuple(dict.fromkeys(premises))))
    keys = {record.key for record in records}
    replaced = {key for record in records for key in record.items("supersedes")}
    for draft, record in zip(drafts, records, strict=True):
        has_successor = record.key in replaced or not keys.isdisjoint(record.superseded_by)
        yield record if has_successor else _without_successor(draft, record)


def _build_draft(
    file: RecordFile, request: ImportRequest, *, is_day_first: bool
) -> Draft | Problem:
    text = record_markup.to_markdown(file.text, file.ending)
    lines = text.split("\n")
    front, first = originals.front_matter(lines)
    front |= file.front
    content = record_text.parse_record(lines[first:], file.name.number)
    front_facts, fact_keys = record_text.parse_front(
        {key: _join_value(value) for key, value in front.items()}
    )
    facts = front_facts.merge(content.facts)
    moment = originals.parse_moment(facts.unread_date, is_day_first=is_day_first)
    if moment and facts.date_rank > record_text.CREATION_DATE:
        facts = facts.replace(date=moment, date_from=facts.unread_from)
    name = file.name
    title = content.title or record_text.strip_number(facts.title, name.number)
    if " " in front_facts.title and file.front:
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
        names=(record_files.split_name(file.place)[0], posixpath.basename(file.place)),
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
    """Return the id of a record: `adr`, its number or date, and the words of its name."""
    if name.kind == "kep" and name.number:
        return _join_id("kep", name.number, name.words)
    if name.number and name.kind in ("", "adr"):
        return _join_id("adr", name.number, name.words)
    if name.date and not name.number:
        year, _, day = name.date.partition("-")
        return _join_id("adr", year, f"{day}-{name.words}" if day else name.words)
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
        place = record_files.split_name(draft.record.key)[0]
        own = [place.lower(), f"/{posixpath.basename(place).lower()}"]
        if draft.name.number:
            own += [f"{draft.folder}#{number}", f"*#{number}"]
        for name in dict.fromkeys(own):
            names.setdefault(name, []).append(draft)
    return names


def _without_successor(draft: Draft, record: ForeignRecord) -> ForeignRecord:
    """Deprecate a record whose status is superseded, by one that is not imported or not named."""
    state = originals.match_state(draft.state)
    if not (state and state.is_superseded):
        return record
    return record.replace(
        fields=record.fields | {"status": "deprecated"},
        status_from=f"{record.status_from}, by no record here",
    )


def _find_conclusions(
    drafts: Sequence[Draft], names: Mapping[str, list[Draft]]
) -> dict[str, list[str]]:
    """Return, by the key of each record, the ones that say it rests on them."""
    premises: dict[str, list[str]] = {}
    for draft in drafts:
        for edge in draft.edges:
            if edge.relation != "conclusion":
                continue
            targets = _find_targets(edge.target, draft, names)
            if len(targets) == 1 and targets[0] is not draft:
                premises.setdefault(targets[0].record.key, []).append(draft.record.key)
    return premises


def _resolve_edges(
    draft: Draft, names: Mapping[str, list[Draft]]
) -> tuple[ForeignRecord, list[Problem]]:
    """Return the record with the keys or ids of the related ones, and warnings.

    What rests on it is related: the other record says the relation.
    """
    related: dict[str, list[str]] = {
        "supersedes": [],
        "superseded_by": [],
        "related_to": [],
        "premise": [],
    }
    problems = []
    for edge in dict.fromkeys(draft.edges):
        relation = "related_to" if edge.relation == "conclusion" else edge.relation
        targets = _find_targets(edge.target, draft, names)
        if len(targets) > 1:
            shown = ", ".join(sorted(target.record.id for target in targets)[:3])
            message = f"{_show_target(edge.target)} may be {shown}; that relation is left out"
            hint = "name the file of the record"
            problems.append(draft.record.problem("dangling", message, hint, "warning"))
        elif targets:
            if targets[0] is not draft:
                related[relation].append(targets[0].record.key)
        elif edge.is_replacement or (relation == "premise" and _is_numbered(edge.target)):
            related[relation] += _name_unknown(edge.target, draft)
    fields = dict(draft.record.fields)
    for relation in ("supersedes", "related_to"):
        if related[relation]:
            fields[relation] = tuple(dict.fromkeys(related[relation]))
    newer = tuple(dict.fromkeys(related["superseded_by"]))
    premises = tuple(dict.fromkeys(related["premise"]))
    record = draft.record.replace(fields=fields, superseded_by=newer, premises=premises)
    return record, problems


def _is_numbered(target: Target) -> bool:
    """Return whether a target that is not here is named as a record, not as any other page."""
    name = record_files.parse_name(posixpath.basename(record_files.split_name(target.path)[0]))
    return bool(target.number or name.number)


def _find_targets(target: Target, draft: Draft, names: Mapping[str, list[Draft]]) -> list[Draft]:
    """Return the records that a relation may mean: in the same folder, else in any."""
    if target.path:
        path = record_files.split_name(target.path.removesuffix(".html"))[0].lower()
        base = posixpath.basename(path)
        if base in record_files.FOLDER_TEXTS:
            path = posixpath.dirname(path)
            base = posixpath.basename(path)
        local = posixpath.normpath(posixpath.join(draft.folder, path.lstrip("/"))).lower()
        own = names.get(local) or names.get(f"/{base}")
        if own:
            return own
        return _find_renamed(record_files.parse_name(base), draft, names)
    if target.kind in draft.kinds:
        return _find_numbered(target.number, draft, names)
    return []


def _find_renamed(name: RecordName, draft: Draft, names: Mapping[str, list[Draft]]) -> list[Draft]:
    """Return the records that a name meant which no file has any more.

    That is the other record with its words, or else the one with its number.
    """
    words = _split_words(name)
    same_words = {
        target.record.key: target
        for targets in names.values()
        for target in targets
        if words and target is not draft and words == _split_words(target.name)
    }
    if len(same_words) == 1:
        return list(same_words.values())
    return _find_numbered(name.number, draft, names) if name.number else []


def _split_words(name: RecordName) -> set[str]:
    return set(re.findall(r"[^\W_]+", name.words.lower()))


def _find_numbered(number: str, draft: Draft, names: Mapping[str, list[Draft]]) -> list[Draft]:
    plain = number.lstrip("0") or "0"
    return names.get(f"{draft.folder}#{plain}") or names.get(f"*#{plain}") or []


def _name_unknown(target: Target, draft: Draft) -> list[str]:
    """Return the id or name of a record that is not imported now, but may be a memory."""
    if not target.path:
        return [_show_target(target)] if target.kind in draft.kinds else []
    path = record_files.split_name(target.path.removesuffix(".html"))[0]
    if "/" not in path.strip("/") and not draft.folder:
        return [build_id(record_files.parse_name(path.strip("/")))]
    whole = path if path.startswith("/") else posixpath.join(draft.folder, path)
    return [posixpath.normpath(whole).lstrip("/")]


def _show_target(target: Target) -> str:
    return target.path or f"{target.kind.upper() or 'ADR'} {target.number}"
