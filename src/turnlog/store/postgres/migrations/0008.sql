-- What was erased, by whom and why. It outlives its session, so that nothing of it comes back from elsewhere.
create table turnlog.erasure (
    tenant    int not null references turnlog.tenant,
    first_key bytea not null,                -- of the first entry of the log, as in session
    first     bytea not null,
    seq       bigint not null,
    part      text collate "C" not null,
    told      bytea not null,                -- as a file would hold it
    primary key (tenant, first_key, seq, part)
);

-- What was begun, and of which blobs may be left.
create table turnlog.erasing (
    tenant int not null references turnlog.tenant,
    name   text collate "C" not null,
    plan   bytea not null,
    primary key (tenant, name)
);

alter table turnlog.erasure enable row level security;
alter table turnlog.erasure force row level security;
alter table turnlog.erasing enable row level security;
alter table turnlog.erasing force row level security;
create policy own on turnlog.erasure using (tenant = (select turnlog.tenant_num()));
create policy own on turnlog.erasing using (tenant = (select turnlog.tenant_num()));

-- How often something was erased in it, for those who have it in memory; and when it came into the trash.
alter table turnlog.session add column erased bigint not null default 0, add column deleted_ms bigint;

create function turnlog.erase_line(of_root bigint, of_session bigint, of_seq bigint, new_line bytea) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    mine int := turnlog.tenant_num();
begin
    update turnlog.entry set line = new_line
    where tenant = mine and root = of_root and session = of_session and seq = of_seq
        and octet_length(line) = octet_length(new_line);
end $$;

create function turnlog.drop_erasing(of_name text) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    mine int := turnlog.tenant_num();
begin
    delete from turnlog.erasing where tenant = mine and name = of_name;
end $$;

create function turnlog.drop_derived(beginning text) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    mine int := turnlog.tenant_num();
begin
    delete from turnlog.derived where tenant = mine and starts_with(name, beginning);
end $$;

revoke execute on function turnlog.erase_line(bigint, bigint, bigint, bytea), turnlog.drop_erasing(text),
    turnlog.drop_derived(text) from public;

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
        execute format('grant select, insert on turnlog.erasure, turnlog.erasing to %s', app);
        execute format('grant update (erased, deleted_ms) on turnlog.session to %s', app);
        execute format('grant execute on function turnlog.erase_line(bigint, bigint, bigint, bytea), '
            'turnlog.drop_erasing(text), turnlog.drop_derived(text) to %s', app);
    end loop;
end $$;
