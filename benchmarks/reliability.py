"""How well confidence and success agree: the expected calibration error, a table, and a reliability diagram."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

Verdicts = Sequence[tuple[float, bool]]  # how sure, and whether it was right
STEPS = 10
EDGES = (0.0, 0.4, 0.6, 0.8, 0.9, 0.95, 1.0)  # of the table: fine where most verdicts are
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#999999")
SIZE, MARGIN = 360, 46


def error(verdicts: Verdicts) -> float:
    """The mean distance between confidence and share of right ones, over equal steps of confidence."""
    total = sum(abs(sure - right) * count for sure, right, count in _steps(verdicts))
    return total / len(verdicts) if verdicts else 0.0


def _steps(verdicts: Verdicts) -> list[tuple[float, float, int]]:
    """Mean confidence, share of right ones, and how many, of each step that has any."""
    groups: dict[int, list[tuple[float, bool]]] = {}
    for sure, right in verdicts:
        groups.setdefault(min(int(sure * STEPS), STEPS - 1), []).append((sure, right))
    return [
        (sum(sure for sure, _ in group) / len(group), sum(right for _, right in group) / len(group), len(group))
        for _, group in sorted(groups.items())
    ]


def table(sets: Mapping[str, Verdicts]) -> str:
    rows = [["confidence", *sets], ["---"] * (len(sets) + 1)]
    for low, high in pairwise(EDGES):
        row = [f"{low:.2f} to {high:.2f}"]
        for verdicts in sets.values():
            group = [right for sure, right in verdicts if low <= sure < high or sure == high == 1.0]
            row.append(f"{sum(group)} of {len(group)} ({sum(group) / len(group):.0%})" if group else "–")
        rows.append(row)
    for name, wanted in (("mean when right", True), ("mean when wrong", False)):
        groups = [[sure for sure, right in verdicts if right is wanted] for verdicts in sets.values()]
        rows.append([name, *(f"{sum(group) / len(group):.2f}" if group else "–" for group in groups)])
    rows.append(["expected calibration error", *(f"{error(verdicts):.3f}" for verdicts in sets.values())])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def diagram(sets: Mapping[str, Verdicts]) -> str:
    """An SVG: one line for each set, the diagonal is what it should be, the dots are as large as their groups."""
    height = SIZE + 2 * MARGIN + 18 * len(sets)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIZE + 2 * MARGIN} {height}" font-family="sans-serif" '
        'font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<rect x="{MARGIN}" y="{MARGIN}" width="{SIZE}" height="{SIZE}" fill="none" stroke="#bbb"/>',
        f'<path d="M{_x(0)} {_y(0)}L{_x(1)} {_y(1)}" stroke="#bbb" stroke-dasharray="4"/>',
    ]
    for tick in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0):
        parts.append(f'<text x="{_x(tick)}" y="{_y(0) + 16}" text-anchor="middle">{tick:g}</text>')
        parts.append(f'<text x="{_x(0) - 6}" y="{_y(tick) + 4}" text-anchor="end">{tick:g}</text>')
    parts.append(f'<text x="{_x(0.5)}" y="{_y(0) + 34}" text-anchor="middle">confidence</text>')
    parts.append(f'<text x="{_x(0) - 30}" y="{MARGIN - 14}">share of right verdicts</text>')
    for index, (name, verdicts) in enumerate(sets.items()):
        colour = COLOURS[index % len(COLOURS)]
        parts.extend(_line(_steps(verdicts), colour, len(verdicts)))
        y = SIZE + 2 * MARGIN + 18 * index
        parts.append(f'<circle cx="{MARGIN + 6}" cy="{y}" r="5" fill="{colour}"/>')
        parts.append(f'<text x="{MARGIN + 18}" y="{y + 4}">{name} ({len(verdicts)} verdicts)</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _line(steps: Sequence[tuple[float, float, int]], colour: str, total: int) -> list[str]:
    points = " ".join(f"{_x(sure):.1f},{_y(right):.1f}" for sure, right, _ in steps)
    dots = [
        f'<circle cx="{_x(sure):.1f}" cy="{_y(right):.1f}" r="{3 + 12 * (count / total) ** 0.5:.1f}" fill="{colour}" '
        'fill-opacity="0.6"/>'
        for sure, right, count in steps
    ]
    return [f'<polyline points="{points}" fill="none" stroke="{colour}"/>', *dots]


def _x(share: float) -> float:
    return MARGIN + share * SIZE


def _y(share: float) -> float:
    return MARGIN + (1 - share) * SIZE
