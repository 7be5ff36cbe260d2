"""Where runs, their calls and baselines are kept.

The tables (`schema`), opening and locking a store (`store`), its file (`place`), rows that were
edited (`damage`), the journal of calls (`journal`) and the history of runs (`history`). Nothing
here holds a user's text or a secret: items are identified by a hash, settings name the variables
that hold keys. What the rows mean for an estimate is decided in other rooms.
"""
