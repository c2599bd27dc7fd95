# SPDX-License-Identifier: BSD-2-Clause
"""The table of measures that are taken in rounds: medians, ranges and requirements."""

import statistics


class Report:
    def __init__(self, rounds):
        self.rounds = rounds
        self.required = self.met = 0
        # Each row: group, what, values, unit, what is required, whether it is met.
        self.rows = []
        self.name = ""

    def group(self, text):
        self.name = text
        print("\n" + text)

    def line(self, what, values, unit, relation=None, bound=None):
        middle = statistics.median(values)
        text = "  %-52s %9.3f  %-19s %-6s" % (
            what, middle, "(%.3f to %.3f)" % (min(values), max(values)), unit)
        is_met = relation and (middle >= bound if relation == ">=" else middle <= bound)
        self.rows.append((self.name, what, values, unit, "%s %g" % (relation, bound) if relation else "", is_met))
        if relation:
            self.required += 1
            self.met += is_met
            text += " %s %6.2f  %s" % (relation, bound, "ok" if is_met else "MISS")
        print(text.rstrip(), flush=True)

    def take(self, measures):
        """Returns a list of {name: figure}, one per round, with the measures in turn."""
        return [{name: measure() for name, measure in measures.items()} for _ in range(self.rounds)]


def column(taken, name):
    return [figures[name] for figures in taken]


def ratio(taken, name, to):
    return [figures[name] / figures[to] for figures in taken]
