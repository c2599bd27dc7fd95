# SPDX-License-Identifier: BSD-2-Clause
"""Bars in SVG: a title, and for each figure its name, a bar with its range, and its value.

Our bars stand out from the bars that they are compared with.
"""

from xml.sax.saxutils import escape

WIDTH, ROW, TOP, LEFT, RIGHT = 760, 26, 48, 300, 110
OURS, OTHERS, INK = "#2f6db5", "#b9bdc4", "#24292f"


def bar(index, name, values, unit, scale, is_ours):
    values = sorted(values)
    middle, least, most = values[len(values) // 2], values[0], values[-1]
    y = TOP + index * ROW
    x = LEFT + middle * scale
    parts = [
        f'<text x="{LEFT - 10}" y="{y + 15}" text-anchor="end">{escape(name)}</text>',
        f'<rect x="{LEFT}" y="{y + 3}" width="{middle * scale:.1f}" height="{ROW - 9}" fill="{OURS if is_ours else OTHERS}"/>',
        f'<line x1="{LEFT + least * scale:.1f}" x2="{LEFT + most * scale:.1f}" y1="{y + 11.5}" y2="{y + 11.5}" stroke="{INK}"/>',
        f'<text x="{max(x, LEFT + most * scale) + 8:.1f}" y="{y + 15}">{middle:.3g} {escape(unit)}</text>',
    ]
    return "\n".join(parts)


def plot(title, unit, rows):
    """The text of an SVG. Rows are (name, values, is_ours)."""
    most = max(max(values) for _, values, _ in rows)
    scale = (WIDTH - LEFT - RIGHT) / most
    height = TOP + len(rows) * ROW + 14
    bars = "\n".join(bar(index, *row[:2], unit, scale, row[2]) for index, row in enumerate(rows))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
            f'font-family="sans-serif" font-size="13" fill="{INK}">\n'
            f'<rect width="100%" height="100%" fill="#ffffff"/>\n'
            f'<text x="14" y="28" font-size="15" font-weight="bold">{escape(title)}</text>\n{bars}\n</svg>\n')
