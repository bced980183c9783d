"""Faults in `store/postgres`."""

from tests.mutants.mutant import Mutant

PG_CONTRACT = "tests/store/test_postgres_contract.py::TestPostgres"
PG_CUTS = "tests/store/test_postgres_cuts.py"
PG_TROUBLE = "tests/store/test_postgres_trouble.py"
PG_TENANTS = "tests/store/test_postgres_tenants.py"
PG_MIGRATIONS = "tests/store/test_postgres_migrations.py"
PG_HOSTILE = "tests/store/test_postgres_hostile.py"
PG_WATCH = "tests/store/test_postgres_watch.py"
PG_LISTING = "tests/store/test_postgres_listing.py"
PG_FAILOVER = "tests/store/test_postgres_failover.py"
PG_LOG = "store/postgres/log.py"
PG_ROWS = "store/postgres/rows.py"
PG_POOL = "store/postgres/pool.py"
PG_STORE = "store/postgres/__init__.py"
PG_BLOBS = "store/postgres/blobs.py"
PG_SHARING = "store/postgres/sharing.py"
PG_LEASE = "store/postgres/lease.py"
PG_SCHEMA = "store/postgres/schema.py"
PG_PURGE = "store/postgres/purge.py"
PG_TABLES = "store/postgres/migrations/0001.sql"
PG_NEWER_TABLES = "store/postgres/migrations/0002.sql"
PG_NEWEST_TABLES = "store/postgres/migrations/0004.sql"
PG_CONNECTION = "store/postgres/connection.py"

MUTANTS = [
    Mutant(
        "a writer that appended a mark has seen what came before it",
        PG_ROWS,
        "last_seq = $7 and last_fence <= $8",
        "last_seq = $7 and $8 is not null",
        (PG_CONTRACT,),
    ),
    Mutant(
        "a node of another machine is no conflict",
        PG_LOG,
        "        if log.last_fence > limit or (asked.alone and log.last_seq > asked.after):\n",
        "        if asked.alone and log.last_seq > asked.after:\n",
        (PG_CONTRACT,),
    ),
    Mutant(
        "what we sent before the line was cut is taken for somebody else's",
        PG_LOG,
        "asked.once and lines and list(lines.values()) not in asked.sent",
        "asked.once and lines",
        (PG_CUTS,),
    ),
    Mutant(
        "an append is sent again without a look whether it is there",
        PG_LOG,
        "present = self._known(connection, asked)",
        "present: dict[str, AnyEntry] = {}",
        (PG_CUTS,),
    ),
    Mutant(
        "a session made before the line was cut is taken for somebody else's",
        PG_STORE,
        """            if again and existing is not None and existing.made == values["made"]:\n""",
        "            if not values:\n",
        (PG_CUTS,),
    ),
    Mutant(
        "a deletion whose answer was lost is an error",
        PG_STORE,
        "            return again and _row(connection, _BY_KEY, (self._tenant, target, key)) is not None",
        "            return False",
        (PG_CUTS,),
    ),
    Mutant(
        "a server that does not wait for its disk is not overruled",
        "store/postgres/connection.py",
        "when current_setting('synchronous_commit') = 'off' \"\n",
        'when false "\n',
        (PG_TROUBLE,),
    ),
    Mutant(
        "tables are made without a lock",
        PG_SCHEMA,
        "                connection.execute(_LOCK)\n",
        "",
        (PG_MIGRATIONS,),
    ),
    Mutant(
        "a fork of a parent that is gone",
        "store/postgres/creating.py",
        " and (%(parent)b::bytea is null or exists (select from parent))\n",
        "\n",
        (PG_CONTRACT,),
    ),
    Mutant(
        "a session is made in a tenant that was dropped",
        "store/postgres/creating.py",
        "    where exists (select from owner) and",
        "    where",
        ("tests/store/test_tenants.py",),
    ),
    Mutant(
        "whose it is stays on the connection",
        "store/postgres/connection.py",
        "_SET_TENANT_SQL = \"set_config('turnlog.tenant', $1, true)\"",
        "_SET_TENANT_SQL = \"set_config('turnlog.tenant', $1, false)\"",
        ("tests/store/test_postgres_pooler.py",),
    ),
    Mutant(
        "a connection stays with the tenant that had it before",
        PG_POOL,
        "        connection = self.connections.take()\n        connection.tenant = self.tenant\n",
        "        connection = self.connections.take()\n",
        ("tests/store/test_tenants.py",),
    ),
    Mutant(
        "what was kept aside stays for ever",
        PG_PURGE,
        "        log = parent\n",
        "        return 1\n",
        (PG_CONTRACT,),
    ),
    Mutant(
        "a lock that was lost does not matter",
        PG_SHARING,
        "            if not self._drop(lease) and shared:\n",
        "            if not self._drop(lease) and not shared:\n",
        (PG_TROUBLE,),
    ),
    Mutant(
        "a collection does not wait for other processes",
        PG_LEASE,
        "                if is_renewed:\n                    return who\n                connection",
        "                if False:\n                    return who\n                connection",
        (PG_TROUBLE,),
    ),
    Mutant(
        "content in a database is not looked at",
        PG_BLOBS,
        "        if whole.digest() != digest_key(digest):\n",
        "        if length != size:\n",
        (PG_TROUBLE,),
    ),
    Mutant(
        "what refers to blobs is written by who no longer keeps them",
        PG_ROWS,
        '_IF_HELD = " and exists (select from held)"',
        '_IF_HELD = ""',
        (PG_TROUBLE,),
    ),
    Mutant(
        "who collects does not look whether it still may",
        PG_SHARING,
        "        if not self._lease.renew(connection):\n",
        "        if False:\n",
        (PG_TROUBLE,),
    ),
    Mutant(
        "a function of the owner looks names up where others put theirs",
        PG_NEWEST_TABLES,
        "alter function turnlog.tenant_num() set search_path = pg_catalog, pg_temp;",
        "",
        (PG_HOSTILE,),
    ),
    Mutant(
        "a condition of somebody else's is asked first",
        PG_NEWEST_TABLES,
        "alter view turnlog.own_texts set (security_barrier);",
        "",
        (PG_HOSTILE,),
    ),
    Mutant(
        "a tenant reads the entries of others",
        PG_TABLES,
        "create policy own on turnlog.entry using (tenant = (select turnlog.tenant_num()));",
        "create policy own on turnlog.entry using (true);",
        (PG_TENANTS,),
    ),
    Mutant(
        "a role that is bound to a tenant chooses another",
        PG_NEWER_TABLES,
        "    bound := coalesce(bound, pg_catalog.current_setting('turnlog.tenant', true), '');",
        "    bound := coalesce(pg_catalog.current_setting('turnlog.tenant', true), bound, '');",
        (PG_TENANTS,),
    ),
    Mutant(
        "blobs of tenants are one",
        PG_BLOBS,
        """_GET = "select num, size from turnlog.blob where tenant = %s and digest = %b\"""",
        """_GET = "select num, size from turnlog.blob where tenant >= %s - 999 and digest = %b\"""",
        (PG_TENANTS,),
    ),
    Mutant(
        "nobody is told that a log has grown",
        PG_ROWS,
        '        self._is_watched = result.get_value(0, 0) == b"\\0"\n',
        "",
        (PG_WATCH,),
    ),
    Mutant(
        "an append leaves a session where it was among the newest",
        PG_ROWS,
        ", recent = $3 / 60000",
        "",
        (PG_LISTING,),
    ),
    Mutant(
        "an append in a new table goes through all sessions of a tenant",
        "store/postgres/migrations/0005.sql",
        "alter table turnlog.session drop constraint session_pkey, add primary key (tenant, num);\n",
        "",
        (PG_LISTING,),
    ),
    Mutant(
        "a commit that no standby has is believed",
        PG_POOL,
        "                connection.await_standby()\n",
        "",
        (PG_FAILOVER,),
    ),
    Mutant(
        "a statement is done before its commit is",
        PG_CONNECTION,
        "            results.append(result)\n",
        "            return [result]\n",
        (PG_CUTS,),
    ),
]
