"""reStructuredText and AsciiDoc as markdown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memtool.importing.record_markup import convert_asciidoc, convert_rst, to_markdown

RST = """\
#########
1. Use it
#########

:Status: Accepted

Context
*******

See `the old one <0001-x.rst>`_ and :doc:`0002-y`, not ``this``.

.. code-block:: sh

   # no heading
   make

=====  =====
a      b
=====  =====

Details
=======

Text.
"""


def test_headings_of_rst_get_their_levels():
    """Levels come from the order of underlines; borders of tables and code are no headings."""
    text = convert_rst(RST)
    headings = [line for line in text.split("\n") if line.startswith("#")]
    assert headings == ["# 1. Use it", "## Context", "### Details"]
    assert "- Status: Accepted" in text
    assert "See [the old one](0001-x.rst) and [0002-y](0002-y.rst), not `this`." in text


def test_rst_reads_no_other_file(tmp_path):
    """What a text would include or run stays a text."""
    secret = tmp_path / "secret.txt"
    secret.write_text("hidden words\n")
    text = convert_rst(f"T\n=\n\n.. include:: {secret}\n\n.. raw:: html\n   :file: {secret}\n")
    assert "hidden words" not in text


ADOC = """\
= 2. Use it
:status: accepted
:toc:

// a comment
Status::
Accepted

== Decision

See xref:0001-x.adoc[the old one] and <<here,this>>.

----
== no heading
----

////
hidden
////
# no heading either
"""


def test_asciidoc_becomes_markdown():
    """Headings, attributes, terms and links are converted; listings stay, comments go."""
    assert convert_asciidoc(ADOC).split("\n") == [
        "# 2. Use it",
        "- status: accepted",
        "",
        "## Status",
        "Accepted",
        "",
        "## Decision",
        "",
        "See [the old one](0001-x.adoc) and [this](here).",
        "",
        "```",
        "== no heading",
        "```",
        "",
        "    # no heading either",
        "",
    ]


@pytest.mark.parametrize("ending", [".md", ".mdx", ""])
def test_markdown_stays_as_it_is(ending):
    """Only other markup is converted."""
    assert to_markdown(ADOC, ending) == ADOC


@given(st.text(alphabet="=-~#*`:.|_<>[] ab\n\t", max_size=200))
def test_any_text_is_converted(text):
    """Nothing that a record may hold raises."""
    assert isinstance(convert_rst(text), str)
    assert isinstance(convert_asciidoc(text), str)


def test_deeply_nested_rst_has_no_headings():
    """A text that nests too deeply to be read is kept as it is."""
    text = "\n".join(" " * n + "* x\n" for n in range(0, 800, 2))
    assert convert_rst(text).count("* x") == text.count("* x")
