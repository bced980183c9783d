-- No tenant reads what is of another, takes a key that another one needs, or holds a lock that another one waits for.

-- A turnlog of before finds none of its columns, and stops before it writes: the locks that it knows are no longer those
-- that count.
alter table turnlog.session rename column state to place;
alter table turnlog.piece rename column blob to num;
alter table turnlog.tenant rename column collected to collections;
alter table turnlog.derived rename column data to content;

-- The tenant leads every key, so that no number can be taken before another one gets to it.
alter table turnlog.session drop constraint session_pkey, add primary key (tenant, num);
alter table turnlog.piece drop constraint piece_pkey, add primary key (tenant, num, part);
alter table turnlog.entry
    drop constraint entry_pkey, drop constraint entry_session_key_root_key,
    add primary key (tenant, session, seq, root), add unique (tenant, session, key, root);

-- Nobody can listen to a channel, or shout into it, without knowing its name.
alter table turnlog.tenant add column channel uuid not null default gen_random_uuid();

-- Who may do what for how long: who keeps blobs or collects them, who brings the catalog up to date, who follows what.
-- Its rows are locked for moments only, and whose row is gone has lost what it stood for. After a crash it is empty: then
-- everybody has, and finds out.
create unlogged table turnlog.lease (
    tenant int not null,
    name   text collate "C" not null,
    holder uuid,
    who    text not null,                    -- for people
    until  timestamptz not null,
    primary key (tenant, name)
) with (fillfactor = 50);
alter table turnlog.lease enable row level security;
alter table turnlog.lease force row level security;
create policy own on turnlog.lease using (tenant = (select turnlog.tenant_num()));

-- What a role can put into a condition runs behind the one that says whose rows they are.
alter view turnlog.own_sessions set (security_barrier);
alter view turnlog.own_docs set (security_barrier);
alter view turnlog.own_texts set (security_barrier);
alter view turnlog.own_words set (security_barrier);
alter view turnlog.own_paths set (security_barrier);
alter view turnlog.own_touched set (security_barrier);
alter view turnlog.own_spent set (security_barrier);
alter view turnlog.own_quarters set (security_barrier);
alter view turnlog.own_meta set (security_barrier);

-- Functions of the owner look up every name, those of types included, where nobody else can put anything.
alter function turnlog.tenant_name() set search_path = pg_catalog, pg_temp;
alter function turnlog.tenant_num() set search_path = pg_catalog, pg_temp;

-- Who may delete from a table, or update all of its columns, may also lock it against everybody. So nobody may: rows are
-- deleted by these, each of them for the tenant who asks.
create function turnlog.drop_entries(of_root bigint, of_session bigint, behind bigint) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    mine int := turnlog.tenant_num();
begin
    delete from turnlog.entry
    where tenant = mine and root = of_root and session = of_session and seq > behind;
end $$;

create function turnlog.drop_session(number bigint) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    mine int := turnlog.tenant_num();
begin
    delete from turnlog.session where tenant = mine and num = number;
end $$;

create function turnlog.drop_pieces(numbers bigint[]) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    mine int := turnlog.tenant_num();
begin
    delete from turnlog.piece where tenant = mine and num = any (numbers);
end $$;

create function turnlog.drop_blobs(digests bytea[]) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    mine int := turnlog.tenant_num();
begin
    delete from turnlog.blob where tenant = mine and digest = any (digests);
end $$;

create function turnlog.drop_leases(names text[]) returns setof text
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    mine int := turnlog.tenant_num();
begin
    return query delete from turnlog.lease as l
    where l.tenant = mine and l.name = any (names) returning l.name;
end $$;

create function turnlog.own_drop_docs(ids bigint[]) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    mine int := turnlog.tenant_num();
begin
    delete from turnlog.catalog_texts where tenant = mine and id = any (ids);
    delete from turnlog.catalog_docs where tenant = mine and id = any (ids);
    delete from turnlog.catalog_words where tenant = mine and id = any (ids);
    delete from turnlog.catalog_touched where tenant = mine and doc = any (ids);
end $$;

create function turnlog.own_drop_spent(of_session bigint, first_step bigint, last_step bigint) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    mine int := turnlog.tenant_num();
begin
    delete from turnlog.catalog_spent
    where tenant = mine and session = of_session and step >= first_step and step <= last_step;
end $$;

create function turnlog.own_drop_quarters(of_session bigint) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    mine int := turnlog.tenant_num();
begin
    delete from turnlog.catalog_quarters where tenant = mine and session = of_session;
end $$;

create function turnlog.own_drop_meta(keys text[]) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    mine int := turnlog.tenant_num();
begin
    delete from turnlog.catalog_meta where tenant = mine and key = any (keys);
end $$;

create function turnlog.own_forget(of_session bigint) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    mine int := turnlog.tenant_num();
    docs bigint[] := array(select d.id from turnlog.catalog_docs as d where d.tenant = mine and d.session = of_session);
    files bigint[] := array(
        select distinct t.path from turnlog.catalog_touched as t where t.tenant = mine and t.doc = any (docs)
    );
begin
    delete from turnlog.catalog_texts where tenant = mine and id = any (docs);
    delete from turnlog.catalog_touched where tenant = mine and doc = any (docs);
    delete from turnlog.catalog_paths as p where p.tenant = mine and p.id = any (files) and not exists (
        select 1 from turnlog.catalog_touched as t where t.tenant = mine and t.path = p.id
    );
    delete from turnlog.catalog_words where tenant = mine and session = of_session;
    delete from turnlog.catalog_docs where tenant = mine and session = of_session;
    delete from turnlog.catalog_quarters where tenant = mine and session = of_session;
    delete from turnlog.catalog_spent where tenant = mine and session = of_session;
    delete from turnlog.catalog_sessions where tenant = mine and id = of_session;
end $$;

revoke execute on all functions in schema turnlog from public;

-- Roles that had the rights to work here keep them, without those.
do $$
declare
    app text;
    one record;
begin
    for app in
        select distinct case when a.grantee = 0 then 'public' else quote_ident(pg_get_userbyid(a.grantee)) end
        from pg_class as c, aclexplode(c.relacl) as a
        where c.oid = 'turnlog.session'::regclass and a.grantee <> c.relowner and a.privilege_type = 'UPDATE'
    loop
        for one in
            select c.relname from pg_class as c where c.relnamespace = 'turnlog'::regnamespace
                and (c.relname in ('session', 'entry', 'blob', 'piece', 'derived', 'lease') or c.relname like 'own\_%')
                and c.relkind in ('r', 'p', 'v')
        loop
            execute format('revoke update, delete on turnlog.%I from %s', one.relname, app);
            execute format('grant select, insert on turnlog.%I to %s', one.relname, app);
        end loop;
        execute format('revoke insert, update, delete on turnlog.tenant from %s', app);
        execute format('grant insert (name), update (collections) on turnlog.tenant to %s', app);
        execute format('grant update (place, last_seq, last_ms, recent, last_fence, wide_seq, bytes) '
            'on turnlog.session to %s', app);
        execute format('grant update (content) on turnlog.derived to %s', app);
        execute format('grant update (holder, who, until) on turnlog.lease to %s', app);
        execute format('grant update (is_inherited, cost) on turnlog.own_spent to %s', app);
        execute format('grant update (seq, name, native, is_ours, agent, path, key, workspace, title, preview, model, '
            'created, updated, messages, turns, tool_calls, branches, fork, parent, origin, copy_of, is_hidden, '
            'is_archived, is_deleted, is_copied, tags, models, unpriced, own, inherited, before, subagents, cost, '
            'ending, writer, damage, problem, size, resume, family, depth, totals, stamp, mark) '
            'on turnlog.own_sessions to %s', app);
        for one in
            select p.oid::regprocedure as name from pg_proc as p
            where p.pronamespace = 'turnlog'::regnamespace and p.prosecdef
        loop
            execute format('grant execute on function %s to %s', one.name, app);
        end loop;
    end loop;
end $$;
