# SPDX-License-Identifier: MIT
"""The one way in which a verb gives up: a line for the user and an exit status."""

FINE = 0
FINDING = 1
BAD_INPUT = 2


class Failure(Exception):
    """Ends the tool with `cca: MESSAGE` on stderr and the given exit status."""

    def __init__(self, message, status=BAD_INPUT):
        super().__init__(message)
        self.message = message
        self.status = status


def reason(error):
    """The system's own words for an OSError, in lower case, without the path."""
    text = error.strerror or str(error)
    return text[:1].lower() + text[1:]
