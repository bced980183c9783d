"""Taking back, `/s/NAME/rewind?to=TARGET`: the plan first; what is confirmed is done to the letter, or nothing is."""

from __future__ import annotations

from shlex import join
from typing import TYPE_CHECKING

import msgspec
from starlette.requests import Request
from starlette.routing import Route

from turnlog.errors import NotFound
from turnlog.log.entry import Head
from turnlog.reader.part import numbered
from turnlog.reader.takeback import BACK, carry_out, propose, shown_path
from turnlog.thread.reader import history_of
from turnlog.view.number import count, rewind_outcome
from turnlog.web.address import address_of
from turnlog.web.change import Answer, apply_change, decoded
from turnlog.web.element import button, esc, link, table
from turnlog.web.frame import page, tabs
from turnlog.web.viewer import Viewer, check_ours, name_in, viewer_of
from turnlog.workspace.plan import Plan, Step

if TYPE_CHECKING:
    from starlette.responses import Response

    from turnlog.catalog import Card
    from turnlog.session.readonly import ReadOnlySession


class _Confirmed(msgspec.Struct):
    plan: str


def show(request: Request) -> Response:
    """The page with the plan, or with what was done. Nothing is touched."""
    viewer = viewer_of(request)
    viewed = viewer.open(name_in(request))
    with viewed.mutex:
        card, title = viewed.card, viewed.title
    head = f"<h1>{esc(title)}</h1>{tabs(card.name, 'changes', is_ours=card.is_ours)}"
    check_ours(card)
    done_entry = numbered(request.query_params.get("done", ""))
    with viewer.home.read(card.id) as session:
        body = _planned(request, viewer, session) if done_entry is None else _done(viewer, session, done_entry)
    return page(request, f"Rewind · {title} · turnlog", head + body)


def _planned(request: Request, viewer: Viewer, session: ReadOnlySession) -> str:
    target = request.query_params.get("to", "")
    if session.interrupted():
        return (
            '<p role="alert">A rewind of this session was begun and not finished: '
            "<code>turnlog rewind --continue</code> finishes it.</p>"
        )
    proposed = propose(session, target)
    plan, words = proposed.plan, proposed.words
    summary = [
        f"<p>{esc(words.capitalize())}.</p>" if proposed.to_seq is None else f"<p>Goes back to {esc(words)}.</p>",
        *(f"<p>{note}</p>" for note in proposed.conversation_notes),
        f'<p class="note">{esc(plan.note)}</p>' if plan.note else "",
    ]
    steps = _steps(session, plan)
    confirm = without_script = ""
    if not viewer.is_read_only and not proposed.is_empty:
        post = address_of(session.handle, "rewind", to=target)
        confirm = button(
            "Do exactly this", "confirm", command=post, plan=proposed.stamp, testid="confirm", kind="confirm"
        )
        verb = [target] if target in BACK.values() else ["rewind", *filter(None, [target])]
        typed = join(["turnlog", *verb, "-s", session.handle])
        without_script = f"<noscript><p><code>{esc(typed)}</code></p></noscript>"
    nothing = "<p>There is nothing to do.</p>" if proposed.is_empty else ""
    return (
        f'<h2>What would be done</h2>{"".join(summary)}<div data-testid="plan">{steps}</div>{nothing}{without_script}'
        f"<p>{confirm} {link(address_of(session.handle, 'changes'), 'Leave everything as it is')}</p>"
        "<p><small>Before anything is touched, everything is kept in a checkpoint: an undo brings it back.</small></p>"
    )


def _steps(session: ReadOnlySession, plan: Plan) -> str:
    if not plan.steps:
        return "<p>No file changes.</p>"
    rows = [_row(session, step) for step in plan.to_do]
    html = table(("", "path", "why"), rows, caption=f"{count(len(rows), 'path')} would change") if rows else ""
    stays = [_row(session, step) for step in plan.staying]
    if stays:
        html += table(("", "path", "why"), stays, caption=f"{count(len(stays), 'path')} would stay as they are")
    return html


def _row(session: ReadOnlySession, step: Step) -> tuple[str, str, str]:
    path = shown_path(step, session.workspace)
    return esc(step.action), f'<code data-path="{esc(path)}">{esc(path)}</code>', esc(step.reason)


def _done(viewer: Viewer, session: ReadOnlySession, seq: int) -> str:
    entry = history_of(session).at(seq)
    if not isinstance(entry, Head):
        raise NotFound(f"entry {seq} of session {session.handle} is no rewind")
    back = BACK.get(entry.why, "undo")
    way = link(address_of(session.handle, "rewind", to=back), back.capitalize() + " …", testid="undo")
    staying = viewer.problems.get((session.id, entry.seq)) or [f"{path} stays as it is" for path in entry.kept]
    kept = "".join(f"<li>{esc(one)}</li>" for one in staying)
    return (
        f"<h2>Done: {esc(entry.why)}, entry {entry.seq}</h2><p>Files: {rewind_outcome(entry.files)}</p>"
        f"{f'<ul>{kept}</ul>' if kept else ''}<p>{way} {link(address_of(session.handle), 'The conversation')}</p>"
    )


async def act(request: Request) -> Response:
    """Carry out the plan that was shown; if it is another one by now, nothing happens."""
    given = decoded(await request.body(), _Confirmed)
    target = request.query_params.get("to", "")

    def change(viewer: Viewer, card: Card) -> Answer:
        rewind = carry_out(viewer.home, card.id, target, given.plan)
        entry = rewind.entry
        viewer.problems[card.id, entry.seq] = rewind.staying()
        viewer.catalog.sync()
        return {"address": address_of(card.name, "rewind", done=entry.seq)}

    return await apply_change(request, change)


ROUTES = [Route("/s/{name}/rewind", show), Route("/s/{name}/rewind", act, methods=["POST"])]
