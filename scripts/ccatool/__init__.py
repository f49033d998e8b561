# SPDX-License-Identifier: MIT
"""The cca tool: one verb per verb_*.py, one concept per other module."""
