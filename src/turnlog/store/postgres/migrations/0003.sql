-- What can be looked for: derived from the logs by whoever asks, in the columns of the catalog's own tables.
-- All of it may be deleted at any time, and is made again.

create table turnlog.catalog_sessions (
    tenant      int not null default turnlog.tenant_num() references turnlog.tenant,
    id          bigint not null,             -- the number of the session
    seq         bigint not null default 0,   -- so far its log was read
    name        text collate "C" not null,
    native      text collate "C" not null,
    is_ours     boolean not null,
    agent       text,
    path        text not null default '',
    key         text not null default '',
    workspace   text,
    title       text,
    preview     text not null default '',
    model       text,
    created     bigint,
    updated     bigint,
    messages    bigint not null default 0,
    turns       bigint not null default 0,
    tool_calls  bigint not null default 0,
    branches    bigint not null default 0,
    fork        text,
    parent      text,
    origin      text not null default '',
    copy_of     text,
    is_hidden   boolean not null default false,
    is_archived boolean not null default false,
    is_deleted  boolean not null default false,
    is_copied   boolean not null default false,
    tags        text not null default '',
    models      text not null default '',
    unpriced    text not null default '',
    own         text not null default '',
    inherited   text not null default '',
    before      text not null default '',
    subagents   text not null default '',
    cost        bigint not null default 0,
    ending      text not null default '',
    writer      text not null default '',
    damage      bigint not null default 0,
    problem     text not null default '',
    size        bigint not null default 0,
    resume      text not null default '',
    family      text not null default '',
    depth       bigint not null default 0,
    totals      text not null default '',
    stamp       text not null default '',
    mark        bytea,
    primary key (tenant, id)
);
create index on turnlog.catalog_sessions (tenant, updated desc, native);
create index on turnlog.catalog_sessions (tenant, native);
create index on turnlog.catalog_sessions (tenant, name);

create table turnlog.catalog_docs (
    tenant  int not null default turnlog.tenant_num() references turnlog.tenant,
    id      bigint not null,                 -- milliseconds << 20 | a number
    session bigint not null,
    step    bigint not null,
    entry   text not null,
    role    text not null,
    tool    text not null,
    hash    bigint not null,
    primary key (tenant, id)
);
create index on turnlog.catalog_docs (tenant, session, step);

create table turnlog.catalog_texts (
    tenant int not null default turnlog.tenant_num() references turnlog.tenant,
    id     bigint not null,
    data   bytea not null,                   -- compressed by whoever wrote it
    primary key (tenant, id)
);
alter table turnlog.catalog_texts alter column data set storage external;

create table turnlog.catalog_words (
    tenant  int not null default turnlog.tenant_num() references turnlog.tenant,
    id      bigint not null,
    session bigint not null,
    words   tsvector not null,               -- without places: what has to stand together is looked up in the text
    primary key (tenant, id)
);
create index on turnlog.catalog_words using gin (words);

create table turnlog.catalog_paths (
    tenant int not null default turnlog.tenant_num() references turnlog.tenant,
    id     bigint generated always as identity,
    path   text not null,
    primary key (tenant, id)
);
create unique index on turnlog.catalog_paths (tenant, path);

create table turnlog.catalog_touched (
    tenant int not null default turnlog.tenant_num() references turnlog.tenant,
    path   bigint not null,
    doc    bigint not null,
    primary key (tenant, path, doc)
);
create index on turnlog.catalog_touched (tenant, doc);

create table turnlog.catalog_spent (
    tenant                int not null default turnlog.tenant_num() references turnlog.tenant,
    session               bigint not null,
    step                  bigint not null,
    token                 bigint not null,
    at                    bigint not null,
    model                 text not null,
    is_inherited          boolean not null default false,
    is_reported           boolean not null default false,
    is_total              boolean not null default false,
    cost                  bigint,
    input_tokens          bigint not null,
    cache_read_tokens     bigint not null,
    cache_write_tokens    bigint not null,
    cache_write_1h_tokens bigint not null,
    output_tokens         bigint not null,
    reasoning_tokens      bigint not null,
    primary key (tenant, session, token)
);
create index on turnlog.catalog_spent (tenant, token, session);

create table turnlog.catalog_quarters (
    tenant                int not null default turnlog.tenant_num() references turnlog.tenant,
    session               bigint not null,
    quarter               bigint not null,
    model                 text not null,
    requests              bigint not null,
    cost                  bigint not null,
    unpriced              bigint not null,
    input_tokens          bigint not null,
    cache_read_tokens     bigint not null,
    cache_write_tokens    bigint not null,
    cache_write_1h_tokens bigint not null,
    output_tokens         bigint not null,
    reasoning_tokens      bigint not null,
    primary key (tenant, session, quarter, model)
);
create index on turnlog.catalog_quarters (tenant, quarter);

create table turnlog.catalog_meta (
    tenant int not null default turnlog.tenant_num() references turnlog.tenant,
    key    text not null,
    value  bigint,
    primary key (tenant, key)
);

-- Row level security as for the logs. Applications have no rights on the tables, only on views of their own rows: those
-- hold also where row level security does not, for superusers. They do not show the tenant, so nobody can name another.
alter table turnlog.catalog_sessions enable row level security;
alter table turnlog.catalog_docs enable row level security;
alter table turnlog.catalog_texts enable row level security;
alter table turnlog.catalog_words enable row level security;
alter table turnlog.catalog_paths enable row level security;
alter table turnlog.catalog_touched enable row level security;
alter table turnlog.catalog_spent enable row level security;
alter table turnlog.catalog_quarters enable row level security;
alter table turnlog.catalog_meta enable row level security;
alter table turnlog.catalog_sessions force row level security;
alter table turnlog.catalog_docs force row level security;
alter table turnlog.catalog_texts force row level security;
alter table turnlog.catalog_paths force row level security;
alter table turnlog.catalog_touched force row level security;
alter table turnlog.catalog_spent force row level security;
alter table turnlog.catalog_quarters force row level security;
alter table turnlog.catalog_meta force row level security;
create policy own on turnlog.catalog_sessions using (tenant = (select turnlog.tenant_num()));
create policy own on turnlog.catalog_docs using (tenant = (select turnlog.tenant_num()));
create policy own on turnlog.catalog_texts using (tenant = (select turnlog.tenant_num()));
create policy own on turnlog.catalog_words using (tenant = (select turnlog.tenant_num()));
create policy own on turnlog.catalog_paths using (tenant = (select turnlog.tenant_num()));
create policy own on turnlog.catalog_touched using (tenant = (select turnlog.tenant_num()));
create policy own on turnlog.catalog_spent using (tenant = (select turnlog.tenant_num()));
create policy own on turnlog.catalog_quarters using (tenant = (select turnlog.tenant_num()));
create policy own on turnlog.catalog_meta using (tenant = (select turnlog.tenant_num()));
create view turnlog.own_sessions as select
    id, seq, name, native, is_ours, agent, path, key, workspace, title, preview, model, created, updated, messages,
    turns, tool_calls, branches, fork, parent, origin, copy_of, is_hidden, is_archived, is_deleted, is_copied,
    tags, models, unpriced, own, inherited, before, subagents, cost, ending, writer, damage, problem, size, resume,
    family, depth, totals, stamp, mark
    from turnlog.catalog_sessions where tenant = (select turnlog.tenant_num());
create view turnlog.own_docs as select
    id, session, step, entry, role, tool, hash
    from turnlog.catalog_docs where tenant = (select turnlog.tenant_num());
create view turnlog.own_texts as select
    id, data
    from turnlog.catalog_texts where tenant = (select turnlog.tenant_num());
create view turnlog.own_words as select
    id, session, words
    from turnlog.catalog_words where tenant = (select turnlog.tenant_num());
create view turnlog.own_paths as select
    id, path
    from turnlog.catalog_paths where tenant = (select turnlog.tenant_num());
create view turnlog.own_touched as select
    path, doc
    from turnlog.catalog_touched where tenant = (select turnlog.tenant_num());
create view turnlog.own_spent as select
    session, step, token, at, model, is_inherited, is_reported, is_total, cost, input_tokens, cache_read_tokens,
    cache_write_tokens, cache_write_1h_tokens, output_tokens, reasoning_tokens
    from turnlog.catalog_spent where tenant = (select turnlog.tenant_num());
create view turnlog.own_quarters as select
    session, quarter, model, requests, cost, unpriced, input_tokens, cache_read_tokens, cache_write_tokens,
    cache_write_1h_tokens, output_tokens, reasoning_tokens
    from turnlog.catalog_quarters where tenant = (select turnlog.tenant_num());
create view turnlog.own_meta as select
    key, value
    from turnlog.catalog_meta where tenant = (select turnlog.tenant_num());

-- With row level security PostgreSQL uses no index on words: it cannot know that comparing them tells nobody anything.
-- So `catalog_words` does not force it on the owner, and a function of the owner that knows the tenant looks them up.
create function turnlog.own_found(wanted tsquery, since bigint, before bigint, within bigint[], most int)
returns setof bigint language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
    question text :=
        'select w.id from turnlog.catalog_words as w where w.tenant = $1 and w.words @@ $2 and w.id >= $3 and w.id < $4'
        || case when within is null then '' else ' and w.session = any ($5)' end;
    few bigint[];
begin
    -- In no order, so that a rare word is found through the index of words, whatever the planner thinks how rare it is.
    execute 'select array_agg(f.id) from (' || question || ' limit 2001) as f' into few
        using turnlog.tenant_num(), wanted, since, before, within;
    if cardinality(few) > 2000 then
        -- A common one is found soon by going back in time.
        return query execute question || ' order by w.id desc limit $6'
            using turnlog.tenant_num(), wanted, since, before, within, most;
    else
        return query select f.id from unnest(few) as f (id) order by f.id desc limit most;
    end if;
end $$;

create function turnlog.own_having(wanted tsquery, since bigint, before bigint)
returns setof bigint language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
    return query execute
        'select distinct w.session from turnlog.catalog_words as w '
        'where w.tenant = $1 and w.words @@ $2 and w.id >= $3 and w.id < $4'
        using turnlog.tenant_num(), wanted, since, before;
end $$;
