"""masa in a process that is killed when it is about to run a statement that writes.

`python mortal.py` reads tasks from standard input, one JSON object a line, and answers each with a
line: the signal that ended the process, how many statements it ran, and the result. Each task runs
in a process of its own, forked from this one, which has everything imported already.
"""

import json
import os
import signal
import sys
import traceback
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import sqlalchemy as sql

import masa
from live_runs import ONE, client, data
from masa.records import Column
from masa.runs.past_runs import accept

ITEMS = 4


def work(task: dict[str, Any]) -> object:
    """Do what a task says, and give what came of it."""
    items, given = data(ITEMS), {"store": task["store"], "limits": ONE}
    # A client needs the address of its server and nothing else.
    first, *others = [client(SimpleNamespace(url=url)) for url in task["urls"]]  # type: ignore[arg-type]
    if task["name"] == "baseline":
        return masa.baseline(items, first, repeat=2, budget=ITEMS + 2, **given).queries
    if task["name"] == "refresh":
        return masa.baseline(items, first, refresh=2, **given).queries
    if task["name"] == "accept":
        return accept(1, store=task["store"]).id
    if task["name"] == "compare":
        return masa.compare(items, first, others[0], budget=2 * ITEMS, **given).queries
    old = Column("old", ("pos",), np.zeros(ITEMS, np.int32))
    return masa.assess(items, first, baseline=old, budget=ITEMS, seed=0, **given).queries


def mortal(task: dict[str, Any]) -> None:
    """Work in this process, and die at the statement that the task names."""
    count = 0

    def before(statement: str) -> None:
        nonlocal count
        if statement.split(None, 1)[0].upper() in ("SELECT", "PRAGMA"):
            return
        count += 1
        if count == task["at"]:
            os.kill(os.getpid(), signal.SIGKILL)

    def watch(connection: Any, _: object) -> None:
        connection.set_trace_callback(before)

    sql.event.listen(sql.pool.Pool, "connect", watch)
    result = work(task)
    Path(task["result"]).write_text(json.dumps({"statements": count, "result": result}))


def main() -> None:
    for line in sys.stdin:
        task = json.loads(line)
        child = os.fork()
        if not child:
            code = 1
            try:
                mortal(task)
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
