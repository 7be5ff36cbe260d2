"""The nouns that travel between rooms: frozen, and with no behaviour that needs anything else.

Items, answers and columns of them (`items`), confusion matrices and shifts (`matrix`), and the
results that users see: an assessment (`assessment`, its intervals in `readings` and `groups`), how
it went (`course`), the answers it rests on (`answers`), a baseline (`baseline`), replays
(`replay`), a plan (`forecast`). How they show themselves in a notebook (`shown`), and money in
exact billionths (`money`). What computes them is in the other rooms.
"""

from masa.records.answers import AnswerTable, changed_how
from masa.records.assessment import (
    Assessment,
    ChangedItem,
    Stopped,
    Surprise,
    Versions,
)
from masa.records.baseline import Baseline
from masa.records.course import LabelQueries, Made, Step
from masa.records.forecast import Between, Buys, Cost, Forecast
from masa.records.groups import Gap, GroupReport
from masa.records.items import (
    ERROR,
    INVALID,
    LONGEST_LABEL,
    RESERVED,
    UNLABELLED,
    UNREAD,
    Answer,
    Column,
    Item,
    Query,
    Reply,
    in_order,
)
from masa.records.matrix import Change, Interval, Matrix, Shift, StratumReport, Tally
from masa.records.money import BILLION, amount, billionths, money_text
from masa.records.readings import Readings
from masa.records.replay import Curve, Point, Replay, StoppingReport
from masa.records.types import Bools, Codes, Floats, Ints, Progress

__all__ = [
    "BILLION",
    "ERROR",
    "INVALID",
    "LONGEST_LABEL",
    "RESERVED",
    "UNLABELLED",
    "UNREAD",
    "Answer",
    "AnswerTable",
    "Assessment",
    "Baseline",
    "Between",
    "Bools",
    "Buys",
    "Change",
    "ChangedItem",
    "Codes",
    "Column",
    "Cost",
    "Curve",
    "Floats",
    "Forecast",
    "Gap",
    "GroupReport",
    "Interval",
    "Ints",
    "Item",
    "LabelQueries",
    "Made",
    "Matrix",
    "Point",
    "Progress",
    "Query",
    "Readings",
    "Replay",
    "Reply",
    "Shift",
    "Step",
    "Stopped",
    "StoppingReport",
    "StratumReport",
    "Surprise",
    "Tally",
    "Versions",
    "amount",
    "billionths",
    "changed_how",
    "in_order",
    "money_text",
]
