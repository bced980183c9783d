"""Taking back, `/s/NAME/rewind?to=TARGET`: the plan first; what is confirmed is done to the letter, or nothing is."""

from __future__ import annotations

from shlex import join
from typing import TYPE_CHECKING

import msgspec
from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from turnlog.errors import Invalid, NotFound
from turnlog.log.entry import Head
from turnlog.reader.takeback import BACK, carry_out, propose
from turnlog.thread.reader import history_of
from turnlog.view.number import came_out, count
from turnlog.web.frame import address_of, button, esc, link, page, table, tabs
from turnlog.web.pages.writing import decoded
from turnlog.web.viewer import Viewer, name_in, viewer_of
from turnlog.workspace.plan import Plan, Step

if TYPE_CHECKING:
    from starlette.responses import Response

    from turnlog.session.readonly import ReadOnlySession


class _Confirmed(msgspec.Struct):
    plan: str


def show(request: Request) -> Response:
    """The plan, or what was done. Nothing is touched."""
    viewer = viewer_of(request)
    looked = viewer.open(name_in(request))
    with looked.mutex:
        card, session, title = looked.card, looked.session, looked.title
    head = f"<h1>{esc(title)}</h1>{tabs(card.name, 'changes', is_ours=card.is_ours)}"
    if session is None:
        raise Invalid(f"{card.name} is a session of {card.agent}, which is only read",
                      hint=f"`turnlog import {card.name}` imports it first")  # fmt: skip
    done = request.query_params.get("done", "")
    with viewer.home.read(card.id) as found:
        body = _done(found, done) if done.isdecimal() else _planned(request, viewer, found)
    return page(request, f"Rewind · {title} · turnlog", head + body)


def _planned(request: Request, viewer: Viewer, session: ReadOnlySession) -> str:
    target = request.query_params.get("to", "")
    if session.interrupted():
        told = "A rewind of this session was begun and not finished: "
        return f'<p role="alert">{told}<code>turnlog rewind --continue</code> finishes it.</p>'
    proposed = propose(session, target)
    plan, words, leaving = proposed.plan, proposed.words, proposed.leaving
    told = [
        f"<p>{esc(words.capitalize())}.</p>" if proposed.place is None else f"<p>Goes back to {esc(words)}.</p>",
        f"<p>{count(leaving, 'message')} of the conversation stay as a branch.</p>" if leaving else "",
        f'<p class="note">{esc(plan.note)}</p>' if plan.note else "",
    ]
    steps = _steps(session, plan)
    confirm = without_script = ""
    if not viewer.is_read_only:
        post = address_of(session.handle, "rewind", to=target)
        made = button("Do exactly this", "confirm", command=post, testid="confirm")
        confirm = made.replace("<button", f'<button data-plan="{proposed.stamp}"', 1).replace(
            "needs-script", "needs-script confirm"
        )
        verb = [target] if target in BACK.values() else ["rewind", *filter(None, [target])]
        typed = join(["turnlog", *verb, "-s", session.handle])
        without_script = f"<noscript><p><code>{esc(typed)}</code></p></noscript>"
    nothing = "<p>There is nothing to do.</p>" if proposed.is_empty else ""
    return (
        f'<h2>What would be done</h2>{"".join(told)}<div data-testid="plan">{steps}</div>{nothing}{without_script}'
        f"<p>{confirm} {link(address_of(session.handle, 'changes'), 'Leave everything as it is')}</p>"
        "<p><small>Before anything is touched, everything is kept in a checkpoint: an undo brings it back.</small></p>"
    )


def _steps(session: ReadOnlySession, plan: Plan) -> str:
    if not plan.steps:
        return "<p>No file changes.</p>"
    rows = [_row(session, step) for step in plan.to_do]
    made = table(("", "path", "why"), rows, caption=f"{count(len(rows), 'path')} would change") if rows else ""
    stays = [_row(session, step) for step in plan.staying]
    if stays:
        made += table(("", "path", "why"), stays, caption=f"{count(len(stays), 'path')} would stay as they are")
    return made


def _row(session: ReadOnlySession, step: Step) -> tuple[str, str, str]:
    path = step.path if step.root in ("", session.workspace) else f"{step.root}/{step.path}"
    return esc(step.action), f'<code data-path="{esc(path)}">{esc(path or ".")}</code>', esc(step.reason)


def _done(session: ReadOnlySession, word: str) -> str:
    entry = history_of(session).at(int(word)) if len(word) < 19 else None
    if not isinstance(entry, Head):
        raise NotFound(f"entry {word:.20} of session {session.handle} is no rewind")
    back = BACK.get(entry.why, "undo")
    way = link(address_of(session.handle, "rewind", to=back), back.capitalize() + " …")
    way = way.replace("<a ", '<a data-testid="undo" ', 1)
    kept = "".join(f"<li><code>{esc(path)}</code> stays as it is</li>" for path in entry.kept)
    return (
        f"<h2>Done: {esc(entry.why)}, entry {entry.seq}</h2><p>Files: {came_out(entry.files)}</p>"
        f"{f'<ul>{kept}</ul>' if kept else ''}<p>{way} {link(address_of(session.handle), 'The conversation')}</p>"
    )


async def act(request: Request) -> Response:
    """Carry out the plan that was shown; if it is another one by now, nothing happens."""
    given = decoded(await request.body(), _Confirmed)
    target = request.query_params.get("to", "")

    def work() -> dict[str, str]:
        viewer = viewer_of(request)
        card = viewer.card(name_in(request))
        if not card.is_ours:
            raise Invalid(f"{card.name} is a session of {card.agent}, which is only read")
        entry = carry_out(viewer.home, card.id, target, given.plan).entry
        viewer.catalog.sync()
        return {"address": address_of(card.name, "rewind", done=entry.seq)}

    return JSONResponse(await run_sync(work))


ROUTES = [Route("/s/{name}/rewind", show), Route("/s/{name}/rewind", act, methods=["POST"])]
