#!/bin/sh
# Checks the memories of a change, finds the decisions that govern it and what it takes away, on any CI
# that has git and memtool. The templates for GitHub and GitLab run it; on another CI, run it yourself:
#
#     sh "$(python -P -m memtool.templates ci/report.sh)" DIRECTORY
#
# MEMTOOL_BASE is the commit that the change starts from, and MEMTOOL_HEAD its last commit, by default
# HEAD. Without a base, or with zeros, which forges send for a new branch, the change is what HEAD has
# and the default branch does not. The default branch is the one that the remote names.
#
# The log gets the text. DIRECTORY gets check.json and review.json, which --from formats again, for
# example as SARIF, and report.md, which comment.py posts. The exit code is 1 if there are errors, or
# if the setting review.policy is fail and a decision is not mentioned, or review.unsettled is fail and
# a confirmed memory rests on what the change takes away.
set -eu
directory=${1:?the directory for the results}
base=${MEMTOOL_BASE:-}
head=${MEMTOOL_HEAD:-HEAD}

for revision in "$base" "$head"; do
    case $revision in -*)
        echo "not a revision: $revision" >&2
        exit 2
        ;;
    esac
done

# The merge base, and the messages of all commits, need the whole history.
if [ "$(git rev-parse --is-shallow-repository)" = true ]; then
    git fetch --quiet --unshallow origin
fi
case $base in
*[!0]*) ;;
*) base= ;;
esac
# The default branch, from which memtool takes who may decide what. A clone of a CI does not know it.
branch=$(git ls-remote --symref origin HEAD |
    sed -n 's,^ref: refs/heads/\(.*\)[[:blank:]]HEAD$,\1,p')
if [ -n "$branch" ]; then
    git fetch --quiet origin "+refs/heads/$branch:refs/remotes/origin/$branch"
    git symbolic-ref refs/remotes/origin/HEAD "refs/remotes/origin/$branch"
fi
# A forced push replaces the commit before it.
if [ -n "$base" ] && ! git rev-parse --quiet --verify "$base^{commit}" >/dev/null; then
    git fetch --quiet origin "$base" || base=
fi
if [ -z "$base" ]; then
    if [ -z "$branch" ]; then
        echo "the remote has no default branch: set MEMTOOL_BASE" >&2
        exit 2
    fi
    base=refs/remotes/origin/$branch
fi

mkdir -p "$directory"
status=0

# Runs memtool, and keeps in mind that it found errors. Any other failure ends the script.
run() {
    code=0
    memtool "$@" || code=$?
    [ "$code" -le 1 ] || exit "$code"
    [ "$code" -eq 0 ] || status=1
}

# The merge with the base, if that is checked out, may have problems that neither side has.
run check --range "$base..HEAD" --json >"$directory/check.json"
run review "$base..$head" --json >"$directory/review.json"
for verb in review check; do
    run "$verb" --from "$directory/$verb.json"
done
for verb in review check; do
    run "$verb" --from "$directory/$verb.json" --format markdown
done >"$directory/report.md"
exit "$status"
