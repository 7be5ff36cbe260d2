"""What a model that judges has graded: exported results become labelled items.

A model that grades other outputs, pass or fail or 1 to 5, is a classifier behind an API.
`promptfoo` and `langfuse` read the files that these tools export, `exports` opens the files,
`grades` holds what all of them give: items to be graded again, with the grade then and, where there
is one, what a person said. Nothing is asked here, and nothing here knows clients or stores.
"""

from masa.graded.grades import Grade, Grades, Judge, Wanted, save
from masa.graded.langfuse import read_langfuse
from masa.graded.promptfoo import read_promptfoo

LAYOUTS = {"promptfoo": read_promptfoo, "langfuse": read_langfuse}
"""The reader of each layout."""

__all__ = ["LAYOUTS", "Grade", "Grades", "Judge", "Wanted", "save"]
