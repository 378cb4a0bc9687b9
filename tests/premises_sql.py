"""An oracle for unsettled memories that shares no code with the walk: one query over rows.

`UNION` ends circles. The query keeps all causes, the walk only the nearest ones.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable

from memtool.memory.memory import Memory

SCHEMA = """
CREATE TABLE file (id, status, words, ended, broken, PRIMARY KEY (id));
CREATE TABLE cite (conclusion, premise);
CREATE TABLE replace (new, old, proposed);
CREATE TABLE accept (conclusion, cause);
"""
QUERY = """
WITH RECURSIVE
effective (new, old) AS (
    SELECT new, old FROM replace WHERE NOT proposed
    UNION SELECT replace.new, replace.old FROM replace JOIN effective ON effective.old = replace.new
),
later (old, new) AS (
    SELECT old, new FROM effective
    UNION SELECT later.old, effective.new FROM later JOIN effective ON effective.old = later.new
),
superseded (id) AS (SELECT DISTINCT old FROM effective),
head (premise, id) AS (
    SELECT premise, premise FROM cite WHERE premise NOT IN superseded
    UNION SELECT old, new FROM later WHERE new NOT IN superseded
),
fault (id, is_broken) AS (
    SELECT id, broken AND status NOT IN ('deleted', 'deprecated') AND NOT ended FROM file
    WHERE status IN ('deleted', 'deprecated') OR ended OR broken
    UNION SELECT id, 0 FROM head WHERE id NOT IN (SELECT id FROM file)
),
edge (conclusion, premise) AS (
    SELECT conclusion, premise FROM cite WHERE conclusion <> premise AND NOT EXISTS (
        SELECT 1 FROM replace WHERE new = conclusion AND old = premise)
),
rests (conclusion, premise, head, is_moved) AS (
    SELECT conclusion, edge.premise, id, edge.premise <> id AND NOT EXISTS (
        SELECT 1 FROM file a JOIN file b USING (words) WHERE a.id = edge.premise AND b.id = head.id)
    AND 'memory:' || id NOT IN (SELECT cause FROM accept WHERE accept.conclusion = edge.conclusion)
    FROM edge JOIN head ON head.premise = edge.premise WHERE id <> conclusion
),
carry (conclusion, below) AS (
    SELECT conclusion, head FROM rests WHERE NOT is_moved
    AND head NOT IN (SELECT id FROM fault WHERE NOT is_broken)
),
cause (conclusion, name) AS (
    SELECT conclusion, 'memory:' || head FROM rests WHERE is_moved
    UNION SELECT conclusion, 'without:' || head FROM rests
    WHERE NOT is_moved AND head IN (SELECT id FROM fault)
    UNION SELECT conclusion, 'without:' || premise FROM edge
    WHERE premise NOT IN (SELECT premise FROM head)
),
flow (conclusion, name) AS (
    SELECT * FROM cause EXCEPT SELECT * FROM accept
    UNION SELECT carry.conclusion, name FROM flow JOIN carry ON carry.below = flow.conclusion
    WHERE (carry.conclusion, name) NOT IN (SELECT * FROM accept)
)
SELECT conclusion, name FROM flow JOIN file ON id = conclusion
WHERE status NOT IN ('deleted', 'deprecated', 'archived') AND id NOT IN superseded
"""


def find_causes(
    memories: Iterable[Memory], *, today: str, broken: Collection[str] = ()
) -> dict[str, set[str]]:
    """Return the causes of each conclusion in use that has any.

    `today` is a day, and each `valid_through` must be one too. `broken` are ids of memories whose
    files are gone. No two memories may have one id, and none may be a digest.
    """
    database = sqlite3.connect(":memory:")
    database.executescript(SCHEMA)
    for memory in memories:
        fields, status = memory.fields, memory.fields.get("status", "confirmed")
        end = fields.get("valid_through") or today
        words = " ".join(f"{fields['title']} {memory.body}".split())
        row = (fields["id"], status, words, end < today, fields["id"] in broken)
        database.execute("INSERT INTO file VALUES (?, ?, ?, ?, ?)", row)
        cited = [s[7:] for s in fields["source"] if s[:7] == "memory:"]
        cited += fields.get("derived_from", ())
        database.executemany("INSERT INTO cite VALUES (?, ?)", [(row[0], p) for p in cited])
        olds = () if status == "deleted" else fields.get("supersedes", ())
        links = [(row[0], old, status == "candidate") for old in olds]
        database.executemany("INSERT INTO replace VALUES (?, ?, ?)", links)
        accepted = [(row[0], cause) for cause in fields.get("settled_on", ())]
        database.executemany("INSERT INTO accept VALUES (?, ?)", accepted)
    causes: dict[str, set[str]] = {}
    for conclusion, name in database.execute(QUERY):
        causes.setdefault(conclusion, set()).add(name)
    database.close()
    return causes
