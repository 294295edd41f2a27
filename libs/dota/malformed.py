"""Python's errors for values of a file that do not have the expected form."""

# RecursionError: json raises it for text that is nested a thousand deep. OverflowError: an infinite or huge number.
MALFORMED = (AttributeError, LookupError, TypeError, ValueError, OverflowError, RecursionError)
