"""Where runs, their calls and baselines are kept: the store and its schema, the journal of calls, the history of runs.

Nothing here holds a user's text or a secret: items are known by a hash, settings name the variables that hold keys. What the
rows mean for an estimate is not known here.
"""
