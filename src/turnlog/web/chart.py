"""Charts as SVG, made by the server: every one has a name, and a table beside it."""

from __future__ import annotations

from collections.abc import Sequence

from turnlog.web.element import esc

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 900, 220, 56, 22, 10
COLOURS = 5


def _y(value: float, most: float) -> float:
    return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (1 - (value / most if most else 0))


def _frame(label: str, inner: str, most: str, first: str, last: str) -> str:
    floor = _HEIGHT - _BOTTOM
    return (
        f'<svg role="img" aria-label="{esc(label)}" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'width="{_WIDTH}" height="{_HEIGHT}">'
        f'<line class="axis" x1="{_LEFT}" y1="{floor}" x2="{_WIDTH}" y2="{floor}"/>'
        f'<line class="axis" x1="{_LEFT}" y1="{_TOP}" x2="{_WIDTH}" y2="{_TOP}"/>'
        f'<text x="{_LEFT - 6}" y="{_TOP + 4}" text-anchor="end">{esc(most)}</text>'
        f'<text x="{_LEFT - 6}" y="{floor + 4}" text-anchor="end">0</text>{inner}'
        f'<text x="{_LEFT}" y="{_HEIGHT - 6}">{esc(first)}</text>'
        f'<text x="{_WIDTH}" y="{_HEIGHT - 6}" text-anchor="end">{esc(last)}</text></svg>'
    )


def line(label: str, values: Sequence[int], cuts: Sequence[int], *, most: str, first: str, last: str) -> str:
    """A line through values; a stroke where something was cut."""
    top = max(values, default=0)
    step = (_WIDTH - _LEFT) / max(1, len(values) - 1)
    points = " ".join(f"{_LEFT + index * step:.1f},{_y(value, top):.1f}" for index, value in enumerate(values))
    floor = _HEIGHT - _BOTTOM
    strokes = "".join(
        f'<line class="cut" x1="{_LEFT + index * step:.1f}" y1="{_TOP}" x2="{_LEFT + index * step:.1f}" y2="{floor}"/>'
        for index in cuts
    )
    return _frame(label, f'{strokes}<polyline class="linechart" points="{points}"/>', most, first, last)


def bars(label: str, groups: Sequence[Sequence[int]], *, most: str, first: str, last: str) -> str:
    """Bars, each of several parts; part N has colour N."""
    top = max(map(sum, groups), default=0)
    step = (_WIDTH - _LEFT) / max(1, len(groups))
    width = max(1.0, min(step * 0.8, 40))
    rectangles: list[str] = []
    for index, parts in enumerate(groups):
        base = 0
        for number, value in enumerate(parts):
            if value:
                upper, lower = _y(base + value, top), _y(base, top)
                x = _LEFT + index * step + (step - width) / 2
                rectangles.append(
                    f'<rect class="c{min(number + 1, COLOURS)}" x="{x:.1f}" y="{upper:.1f}" width="{width:.1f}" '
                    f'height="{lower - upper:.1f}"/>'
                )
                base += value
    return _frame(label, "".join(rectangles), most, first, last)


def key(names: Sequence[str]) -> str:
    """Which colour is whose."""
    items = "".join(
        f'<li><svg viewBox="0 0 10 10" aria-hidden="true">'
        f'<rect class="c{min(number, COLOURS)}" width="10" height="10"/></svg>{esc(name)}</li>'
        for number, name in enumerate(names, 1)
    )
    return f'<ul class="key">{items}</ul>'
