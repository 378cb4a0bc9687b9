from __future__ import annotations

import pytest

from memtool.importing.globs import build_scope
from memtool.store.files import matches


@pytest.mark.parametrize(
    ("value", "files"),
    [
        ("src/**/*.ts,src/*.tsx", ("src/**/*.ts", "src/*.tsx")),
        (("a/*.py", "b/*.py"), ("a/*.py", "b/*.py")),
        ('["a/*.py", "b/*.py"]', ("a/*.py", "b/*.py")),
        ("src/**/*.{ts,tsx}", ("src/**/*.ts", "src/**/*.tsx")),
        ("{a,b{c,d}}/*.go", ("a/*.go", "bc/*.go", "bd/*.go")),
        ("src/*.[jt]s", ("src/*.js", "src/*.ts")),
        ("app/[id]/page.tsx", ("app/[id]/page.tsx",)),
        ("app/(shop)/*.tsx", ("app/(shop)/*.tsx",)),
        ("src/@(a|b)/*", ("src/a/*", "src/b/*")),
        ("/src/**/*, ./docs/", ("src/**/*", "docs")),
        ("**/*", ()),
        ("*.md, **", ()),
        ("", ()),
        (None, ()),
    ],
)
def test_globs_become_those_of_files(value, files):
    """Lists, braces and classes are expanded; a glob for every file names none."""
    assert build_scope(value) == build_scope(value).replace(files=files, faults=())


@pytest.mark.parametrize(
    ("glob", "why"),
    [
        ("!dist/**", "it excludes files"),
        ("src/!(a|b)/*", "!(a|b) has no counterpart"),
        ("src/{1..3}/*", "{1..3} is a range"),
        ("src/{a,b", "a brace is never closed"),
        ("../other/*.ts", "it leaves the repository"),
        ("{a,b}" * 9, "it stands for more than 64 globs"),
    ],
)
def test_a_glob_that_cannot_be_converted_is_named(glob, why):
    """The others count."""
    scope = build_scope((glob, "src/*.ts"))
    assert scope.files == ("src/*.ts",)
    assert scope.faults == ((glob, why),)


def test_a_name_alone_matches_in_every_folder_if_the_tool_does_so():
    """As in .gitignore; with a slash it is a path."""
    assert build_scope("*.ts", matches_names=True).files == ("**/*.ts",)
    assert build_scope("/*.ts", matches_names=True).files == ("*.ts",)
    assert matches("**/*.ts", "a.ts")


@pytest.mark.parametrize(
    ("value", "files"),
    [
        ("*.ts", ("web/**/*.ts",)),
        ("src/*.ts", ("web/src/*.ts",)),
        ("web/src/*.ts", ("web/src/*.ts",)),
        ("**/*", ("web/**",)),
        ("", ("web/**",)),
    ],
)
def test_globs_of_a_subdirectory_stay_in_it(value, files):
    """Rules below `web/` govern nothing else."""
    assert build_scope(value, "web", matches_names=True).files == files
