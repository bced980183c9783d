"""Sessions in PostgreSQL beside what psycopg does on the same server, and long ones and many beside short and few."""

import queue
import statistics
import threading
import time
from collections.abc import Callable
from typing import Any

import psycopg

import turnlog
from bench.ground import LONG, Ground, prose
from bench.measures import Row, ratio, take_turns
from bench.measures.append import _appends
from bench.server import serving
from tests.pgserver import Server
from turnlog.session.home import Home
from turnlog.store import postgres

TITLE = "sessions in PostgreSQL"
ROUNDS, BLOCK, WARM = 40, 60, 6
SESSIONS, CONNECTIONS, EACH, PARALLEL_ROUNDS = 64, 8, 30, 15
MANY, FEW = 100_000, 1_000
_TABLE = "create table if not exists bare (session bigint, seq bigint, line bytea not null, primary key (session, seq))"
_INSERT = "insert into bare values (%s, %s, %b)"


def measure(ground: Ground) -> list[Row]:
    with serving(ground.folder) as server:
        return [*_append(server), _parallel(server), *_long(ground, server), *_listing(server)]


# ── appending ─────────────────────────────────────────────────────────────────────────────────────


def _append(server: Server) -> list[Row]:
    """Entries of 2 KB, and the very same lines by the shortest ways that psycopg has."""
    blocks: dict[str, list[float]] = {"turnlog": [], "insert": [], "commit": []}
    means: dict[str, list[float]] = {name: [] for name in blocks}
    lines: list[bytes] = [b"x" * 2_000] * (WARM + BLOCK)
    with (
        turnlog.open(f"{server.url}?tenant=append") as home,
        psycopg.connect(server.url, autocommit=True, prepare_threshold=0) as auto,
        psycopg.connect(server.url) as usual,
    ):
        auto.execute(_TABLE)
        seq = 0
        for number in range(-1, ROUNDS):
            session = home.create()

            def insert(line: bytes) -> None:
                nonlocal seq
                seq += 1
                auto.execute(_INSERT, (0, seq, line))

            def commit(line: bytes) -> None:
                nonlocal seq
                seq += 1
                usual.execute(_INSERT, (0, seq, line))
                usual.commit()

            jobs = {
                "turnlog": _appends(session),
                "insert": [lambda line=line, insert=insert: insert(line) for line in lines],
                "commit": [lambda line=line, commit=commit: commit(line) for line in lines],
            }
            turn = number % len(jobs)
            names = list(jobs)
            for name in names[turn:] + names[:turn]:
                times = _time(jobs[name])[WARM:]
                if number >= 0:
                    blocks[name].append(statistics.median(times))
                    means[name].append(statistics.fmean(times))
            rows = auto.execute(
                "select line from turnlog.entry join turnlog.session on num = session where id = %s order by seq",
                (session.id.encode(),),
                binary=True,
            ).fetchall()
            lines = [bytes(line) for (line,) in rows][-WARM - BLOCK :]
    return [
        _at_least("durable append, one session, p50", blocks, "commit", "INSERT, commit()", means),
        _at_least("durable append, one session, p50", blocks, "insert", "INSERT, autocommit, prepared", means),
    ]


def _at_least(
    title: str, each: dict[str, list[float]], reference: str, shown: str, means: dict[str, list[float]]
) -> Row:
    rounds = [theirs / ours for ours, theirs in zip(each["turnlog"], each[reference], strict=True)]
    in_all = statistics.median(b / a for a, b in zip(means["turnlog"], means[reference], strict=True))
    return Row(
        f"PostgreSQL: {title}, beside psycopg {shown}",
        f"turnlog: {statistics.median(each['turnlog']) * 1e6:.0f} µs",
        f"{shown}: {statistics.median(each[reference]) * 1e6:.0f} µs",
        statistics.median(rounds),
        "x",
        0.8,
        at_least=True,
        rounds=rounds,
        facts={"of the means": in_all},
        note=f"of the means of the rounds, {in_all:.2f}x",
    )


def _time(jobs: list[Callable[[], Any]]) -> list[float]:
    times: list[float] = []
    for job in jobs:
        start = time.perf_counter()
        job()
        times.append(time.perf_counter() - start)
    return times


def _parallel(server: Server) -> Row:
    """Every session has a thread; the connections are shared, by a queue in the reference."""
    line, text = prose(2_000).encode(), prose(1_870)
    free: queue.SimpleQueue[psycopg.Connection[Any]] = queue.SimpleQueue()
    with Home(postgres.connect(f"{server.url}?tenant=parallel", connections=CONNECTIONS)) as home:
        sessions = [home.create() for _ in range(SESSIONS)]
        for _ in range(CONNECTIONS):
            free.put(psycopg.connect(server.url, autocommit=True, prepare_threshold=0))
        seqs = [0] * SESSIONS

        def insert(number: int) -> None:
            seqs[number] += 1
            connection = free.get()
            try:
                connection.execute(_INSERT, (1 + number, seqs[number], line))
            finally:
                free.put(connection)

        jobs = {
            "turnlog": lambda: _at_once([lambda s=s: s.user(text) for s in sessions]),
            "psycopg": lambda: _at_once([lambda n=n: insert(n) for n in range(SESSIONS)]),
        }
        times = take_turns(jobs, rounds=PARALLEL_ROUNDS)
        for _ in range(CONNECTIONS):
            free.get().close()
    rates = {name: SESSIONS * EACH / statistics.median(taken) for name, taken in times.items()}
    rounds = [theirs / ours for ours, theirs in zip(times["turnlog"], times["psycopg"], strict=True)]
    return Row(
        f"PostgreSQL: {SESSIONS} sessions in parallel, one process, {CONNECTIONS} connections",
        f"turnlog: {rates['turnlog']:,.0f} a second",
        f"psycopg INSERT: {rates['psycopg']:,.0f} a second",
        statistics.median(rounds),
        "x",
        0.65,
        at_least=True,
        rounds=rounds,
        facts=rates,
    )


def _at_once(jobs: list[Callable[[], Any]]) -> None:
    def run(job: Callable[[], Any]) -> None:
        for _ in range(EACH):
            job()

    threads = [threading.Thread(target=run, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# ── long and many ─────────────────────────────────────────────────────────────────────────────────


def _long(ground: Ground, server: Server) -> list[Row]:
    location, text = f"{server.url}?tenant=long", prose(1_870)
    with turnlog.open(location, durability="flush") as home:
        for name, entries in (("long", LONG), ("short", 100)):
            ground.fill(home.create(id=name), entries - 2)
        for number in range(ROUNDS):
            ground.fill(home.create(id=f"short-{number}"), 80)
    _settle(server)
    times: dict[str, list[float]] = {"at 100,000": [], "at 100": []}
    with turnlog.open(location) as home:
        for number in range(ROUNDS):
            pair = [("at 100,000", "long"), ("at 100", f"short-{number}")]
            for name, id in pair if number % 2 else reversed(pair):
                session = home.resume(id)
                times[name].append(statistics.median(_time([lambda s=session: s.user(text)] * 40)[5:]))

        def last(name: str) -> list[turnlog.Message]:
            found = home.resume(name).messages(last=50)
            if len(found) != 50:
                raise SystemExit(f"{len(found)} messages of session {name}")
            return found

        resumed = take_turns({"of 100,000": lambda: last("long"), "of 100": lambda: last("short")}, rounds=ROUNDS)
    return [
        ratio("PostgreSQL: append at entry 100,000 against entry 100, p50", times, "at 100,000", "at 100", bar=1.1),
        ratio("PostgreSQL: resume and last 50 messages, 100,000 entries against 100", resumed, *resumed, bar=1.5),
    ]


def _listing(server: Server) -> list[Row]:
    homes = {f"of {count:,}": _many(server, count) for count in (MANY, FEW)}
    burst = _many(server, MANY, every_ms=0)
    _settle(server)
    with (
        turnlog.open(homes[f"of {MANY:,}"]) as many,
        turnlog.open(homes[f"of {FEW:,}"]) as few,
        turnlog.open(burst) as at_once,
    ):
        jobs = {f"of {MANY:,}": lambda: many.sessions(limit=50), f"of {FEW:,}": lambda: few.sessions(limit=50)}
        for home in (many, few):
            if [row.id for row in home.sessions(limit=50)] != ["first", *(f"s{number}" for number in range(1, 50))]:
                raise SystemExit("the newest are not first")
        times = take_turns(jobs, rounds=ROUNDS)
        begin = time.perf_counter()
        at_once.sessions(limit=50)
        worst = time.perf_counter() - begin
    row = ratio(f"PostgreSQL: the newest 50 of {MANY:,} sessions against {FEW:,}", times, *times, bar=3.0)
    note = f"of {MANY:,} sessions that all grew in the same minute, which have to be sorted, {worst * 1e3:.0f} ms"
    return [Row(**{**row.__dict__, "note": note})]


def _many(server: Server, count: int, *, every_ms: int = 37_000) -> str:
    """That many sessions, all with the lines of one; each grew so much later than the one before."""
    location = f"{server.url}?tenant=many-{count}-{every_ms}"
    with turnlog.open(location) as home, psycopg.connect(server.url, autocommit=True) as admin:
        session = home.create(id="first", title="First")
        session.user("hello")
        session.set("title", "Changed")
        [(num, tenant)] = admin.execute("select num, tenant from turnlog.session order by num desc limit 1").fetchall()
        values = {"num": num, "tenant": tenant, "count": count - 1, "every": every_ms}
        admin.execute(
            "create temp table made as "
            "select nextval('turnlog.number') as new, n from generate_series(1, %(count)s) as n",
            values,
        )
        admin.execute(
            "insert into turnlog.session (num, tenant, key, id, place, root, made, first_seq, last_seq, last_ms, "
            "recent, last_fence, wide_seq, bytes) "
            "select new, tenant, convert_to('s' || n, 'UTF8'), convert_to('s' || n, 'UTF8'), place, new, "
            "gen_random_uuid(), first_seq, last_seq, last_ms - %(every)s * n::bigint, "
            "(last_ms - %(every)s * n::bigint) / 60000, last_fence, wide_seq, bytes from turnlog.session, made "
            "where num = %(num)s",
            values,
        )
        admin.execute(
            "insert into turnlog.entry (root, session, tenant, seq, key, line) "
            "select new, new, tenant, seq, key, line from turnlog.entry, made where session = %(num)s",
            values,
        )
    return location


def _settle(server: Server) -> None:
    """What a server does by itself after a while."""
    with psycopg.connect(server.url, autocommit=True) as admin:
        admin.execute("vacuum analyze turnlog.session")
        admin.execute("vacuum analyze turnlog.entry")
        admin.execute("checkpoint")
