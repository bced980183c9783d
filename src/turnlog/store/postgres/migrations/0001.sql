-- Sessions, their entries, their blobs. Ids are bytes: they may hold what text in PostgreSQL cannot.

create sequence turnlog.number;

create table turnlog.tenant (
    num       int generated always as identity primary key,
    name      text not null unique,
    collected bigint not null default 0      -- how often blobs were collected: as long as it stays, so do they
);

-- Database roles that belong to one tenant, whatever they say they are.
create table turnlog.member (
    role   name primary key,
    tenant text not null
);

create function turnlog.tenant_name() returns text language sql stable security definer set search_path = '' as $$
    select coalesce(
        (select tenant from turnlog.member where role = session_user), current_setting('turnlog.tenant', true), '')
$$;

create function turnlog.tenant_num() returns int language sql stable security definer set search_path = '' as $$
    select num from turnlog.tenant where name = turnlog.tenant_name()
$$;

-- One row per session, changed by every append: what is indexed never changes then, so that the update stays in its
-- page and touches no index.
create table turnlog.session (
    num        bigint primary key,
    tenant     int not null references turnlog.tenant,
    key        bytea not null,               -- the id, or a digest of a long one
    id         bytea not null,
    state      text not null check (state in ('live', 'deleted', 'base')),
    root       bigint not null,              -- the session at the top of its forks: all of them share a partition
    made       uuid not null,                -- chosen by who made it, to know its own after a lost answer
    fork_of    bytea,                        -- key of the session it continues
    fork_seq   bigint,
    first_seq  bigint not null,
    last_seq   bigint not null,
    last_at    bigint not null,              -- milliseconds since 1970
    last_fence bigint not null,              -- the last entry that moved the head
    wide_seq   bigint,                       -- the last entry with session-wide facts
    bytes      bigint not null,
    unique (tenant, key)
) with (fillfactor = 50);

create index on turnlog.session (tenant, state, num);
create index on turnlog.session (tenant, fork_of, fork_seq) where fork_of is not null;

create table turnlog.entry (
    root    bigint not null,
    session bigint not null,
    seq     bigint not null,
    tenant  int not null,
    key     bytea not null,                  -- as in session, of the entry's id
    line    bytea not null,                  -- as a file would hold it, checksum included, without the newline
    primary key (session, seq, root),
    unique (session, key, root)
) partition by hash (root);

create table turnlog.entry_0 partition of turnlog.entry for values with (modulus 8, remainder 0);
create table turnlog.entry_1 partition of turnlog.entry for values with (modulus 8, remainder 1);
create table turnlog.entry_2 partition of turnlog.entry for values with (modulus 8, remainder 2);
create table turnlog.entry_3 partition of turnlog.entry for values with (modulus 8, remainder 3);
create table turnlog.entry_4 partition of turnlog.entry for values with (modulus 8, remainder 4);
create table turnlog.entry_5 partition of turnlog.entry for values with (modulus 8, remainder 5);
create table turnlog.entry_6 partition of turnlog.entry for values with (modulus 8, remainder 6);
create table turnlog.entry_7 partition of turnlog.entry for values with (modulus 8, remainder 7);

create table turnlog.blob (
    tenant int not null references turnlog.tenant,
    digest bytea not null,
    num    bigint not null,
    size   bigint not null,
    stored bigint not null,
    primary key (tenant, digest)
);

-- A blob in pieces of at most a mebibyte, compressed by whoever wrote them.
create table turnlog.piece (
    blob   bigint not null,
    part   int not null,
    tenant int not null,
    data   bytea not null,
    primary key (blob, part)
);
alter table turnlog.piece alter column data set storage external;

create table turnlog.derived (
    tenant int not null references turnlog.tenant,
    name   text not null,
    data   bytea not null,
    primary key (tenant, name)
);

-- Nothing of one tenant is seen, changed or made by another one, not even by the owner of the tables.
alter table turnlog.tenant enable row level security;
alter table turnlog.tenant force row level security;
alter table turnlog.member enable row level security;
alter table turnlog.session enable row level security;
alter table turnlog.session force row level security;
alter table turnlog.entry enable row level security;
alter table turnlog.entry force row level security;
alter table turnlog.blob enable row level security;
alter table turnlog.blob force row level security;
alter table turnlog.piece enable row level security;
alter table turnlog.piece force row level security;
alter table turnlog.derived enable row level security;
alter table turnlog.derived force row level security;

-- A partition that is asked directly shows nothing at all.
alter table turnlog.entry_0 enable row level security;
alter table turnlog.entry_1 enable row level security;
alter table turnlog.entry_2 enable row level security;
alter table turnlog.entry_3 enable row level security;
alter table turnlog.entry_4 enable row level security;
alter table turnlog.entry_5 enable row level security;
alter table turnlog.entry_6 enable row level security;
alter table turnlog.entry_7 enable row level security;

create policy own on turnlog.tenant using (name = (select turnlog.tenant_name()));
create policy own on turnlog.session using (tenant = (select turnlog.tenant_num()));
create policy own on turnlog.entry using (tenant = (select turnlog.tenant_num()));
create policy own on turnlog.blob using (tenant = (select turnlog.tenant_num()));
create policy own on turnlog.piece using (tenant = (select turnlog.tenant_num()));
create policy own on turnlog.derived using (tenant = (select turnlog.tenant_num()));
