"""What Python raises where an answer is not in the form that its provider documents."""

UNREADABLE = (LookupError, TypeError, ValueError, AttributeError, OverflowError)
