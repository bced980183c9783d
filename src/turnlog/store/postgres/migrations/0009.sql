-- Who serves many tenants lists them and drops them. Their names are for functions of the owner, which refuse a role
-- that is bound to one tenant; so the owner of the tables sees the names of all tenants, and of nothing else more.
alter table turnlog.tenant no force row level security;

create function turnlog.refuse_bound() returns void
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
    if exists (select from turnlog.member as m where m.role = session_user) then
        raise insufficient_privilege using message = 'role ' || session_user || ' is bound to one tenant';
    end if;
end $$;

-- Those whose name begins with \1 were given up: nobody can be them, and what is left of them is erased.
create function turnlog.tenants() returns setof text
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform turnlog.refuse_bound();
    return query select t.name from turnlog.tenant as t
        where t.name <> '' and not starts_with(t.name, e'\x01') order by t.name collate "C";
end $$;

-- Whoever is this tenant now has nothing more, and cannot add anything. Gives all of that name that are to be erased.
create function turnlog.give_up_tenant(of_name text) returns setof text
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform turnlog.refuse_bound();
    update turnlog.tenant as t set name = e'\x01' || t.num || ' ' || t.name
        where t.name = of_name and t.name <> '' and not starts_with(t.name, e'\x01');
    return query select t.name from turnlog.tenant as t where t.name = e'\x01' || t.num || ' ' || of_name;
end $$;

-- Up to about so many rows of a tenant who was given up. Gives how many of what went; nothing when nothing is left.
create function turnlog.erase_tenant(most bigint) returns table (what text, number bigint)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    mine int := turnlog.tenant_num();
    one record;
    done bigint;
    place text;
begin
    if not starts_with(turnlog.tenant_name(), e'\x01') then
        raise insufficient_privilege using message = 'this tenant was not given up';
    end if;
    for one in select s.num, s.root, s.place, s.bytes from turnlog.session as s where s.tenant = mine order by s.num loop
        delete from turnlog.entry as e where e.tenant = mine and e.root = one.root and e.session = one.num
            and e.seq in (select f.seq from turnlog.entry as f
                where f.tenant = mine and f.root = one.root and f.session = one.num order by f.seq limit most);
        get diagnostics done = row_count;
        what := 'entries'; number := done;
        return next;
        if done < most then
            delete from turnlog.session as s where s.tenant = mine and s.num = one.num;
            what := one.place; number := 1;
            return next;
            what := 'bytes'; number := one.bytes;
            return next;
        end if;
        most := most - done - 1;
        if most <= 0 then
            return;
        end if;
    end loop;
    for one in select b.num, b.digest, b.stored from turnlog.blob as b where b.tenant = mine limit least(most, 200) loop
        delete from turnlog.piece as p where p.tenant = mine and p.num = one.num;
        delete from turnlog.blob as b where b.tenant = mine and b.digest = one.digest;
        what := 'blobs'; number := 1;
        return next;
        what := 'bytes'; number := one.stored;
        return next;
    end loop;
    if found then
        return;
    end if;
    foreach place in array array['piece', 'catalog_texts', 'catalog_words', 'catalog_docs', 'catalog_touched',
        'catalog_paths', 'catalog_spent', 'catalog_quarters', 'catalog_sessions', 'catalog_meta', 'derived', 'erasing',
        'erasure', 'lease'] loop
        execute format('delete from turnlog.%1$I as t where t.tenant = $1 and t.ctid = any (array('
            'select s.ctid from turnlog.%1$I as s where s.tenant = $1 limit $2))', place) using mine, most;
        get diagnostics done = row_count;
        if done > 0 then
            what := 'derived'; number := done;
            return next;
            return;
        end if;
    end loop;
    delete from turnlog.tenant as t where t.num = mine;
end $$;

revoke execute on function turnlog.refuse_bound(), turnlog.tenants(), turnlog.give_up_tenant(text),
    turnlog.erase_tenant(bigint) from public;

-- Roles that had the rights to work here keep them.
do $$
declare
    app text;
begin
    for app in
        select distinct case when a.grantee = 0 then 'public' else quote_ident(pg_get_userbyid(a.grantee)) end
        from pg_class as c join pg_attribute as t on t.attrelid = c.oid, aclexplode(t.attacl) as a
        where c.oid = 'turnlog.session'::regclass and t.attname = 'place'
            and a.grantee <> c.relowner and a.privilege_type = 'UPDATE'
    loop
        execute format('grant execute on function turnlog.refuse_bound(), turnlog.tenants(), '
            'turnlog.give_up_tenant(text), turnlog.erase_tenant(bigint) to %s', app);
    end loop;
end $$;
