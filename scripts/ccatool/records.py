# SPDX-License-Identifier: MIT
"""Values out of the dicts of a file that nobody has checked."""


def integer(record, key, default=0):
    """An integer of a record, or the default where it is missing or something else."""
    value = record.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def string(record, key, default=''):
    value = record.get(key)
    return value if isinstance(value, str) else default


def record_list(record, key):
    """The dicts of a list in a record; whatever else stands there is left out."""
    value = record.get(key)
    if not isinstance(value, (list, tuple)):
        return []
    return [item for item in value if isinstance(item, dict)]
