"""The paper's study on published predictions, for `masa import` and `masa reproduce`.

`published/` reads what others published and keeps it as Parquet files. `cases` lists the paper's 12
cases and loads them, `study` replays them and keeps what was computed, `experiments/` has one file
per table or figure of the paper. `finding` is what an experiment returns; `summary` shows it on the
terminal, `book` writes it as files and `figures/` draws its charts. Nothing that a user needs to
assess an API of their own lives here.
"""
