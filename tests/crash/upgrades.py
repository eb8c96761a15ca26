"""Upgrades databases, each in a process that is there to be killed: `python -m tests.crash.upgrades`.

A line of stdin names a database; the child's process id is written to stdout. An empty line asks for its exit
status: only then is it let go, so that its id can't be another's when it is killed. Children are forked, because
loading everything takes longer than the upgrade.
"""

import os
import sys

from server.store.migrate import upgrade


def main() -> None:
    while line := sys.stdin.readline():
        child = os.fork()
        if child == 0:
            upgrade(line.strip())
            os._exit(0)  # a child that fails ends with a traceback and 1
        print(child, flush=True)
        sys.stdin.readline()
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
