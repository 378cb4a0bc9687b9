#!/bin/sh
# Each case runs in the repository of memtool demo, in a directory of its own.
memtool demo . >&2
