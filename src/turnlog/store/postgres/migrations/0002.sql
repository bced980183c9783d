-- Listing the newest sessions, finding one by how its name begins, and row level security that costs little.

-- `recent` is the minute of the last entry. An index on a column that every append changes would make every append
-- write to every index of the row. This one changes once a minute, and tells all sessions apart but those of one minute.
-- `alias` is a handle, or how a long id begins, because the key of that does not show it.
alter table turnlog.session add column recent bigint, add column alias bytea;
-- A process of before that is still running knows nothing of `recent`: its next append fails, and says so.
alter table turnlog.session rename column last_at to last_ms;

-- Those of every tenant, this once.
alter table turnlog.session no force row level security;
update turnlog.session set
    recent = last_ms / 60000,
    alias = case
        when octet_length(id) > 63 then substring(id from 1 for 63)
        when octet_length(id) = 24 and get_byte(id, 8) = 45 and get_byte(id, 15) = 45 then substring(id from 17) end;
alter table turnlog.session force row level security;

alter table turnlog.session alter column recent set not null;
create index session_recent on turnlog.session (tenant, state, recent);
create index session_alias on turnlog.session (tenant, alias) where alias is not null;

-- An append pays for every index, also for those it leaves alone, and for constraints on what it does not change.
drop index turnlog.session_tenant_state_num_idx;
alter table turnlog.session drop constraint session_tenant_fkey, drop constraint session_state_check;

-- Asked several times by each statement. PL/pgSQL keeps its plans, and operators named with their schema need no
-- search path to be set and taken back.
create or replace function turnlog.tenant_name() returns text language plpgsql stable security definer as $$
declare
    bound text;
begin
    select m.tenant into bound from turnlog.member as m where m.role operator(pg_catalog.=) session_user;
    return coalesce(bound, pg_catalog.current_setting('turnlog.tenant', true), '');
end $$;

create or replace function turnlog.tenant_num() returns int language plpgsql stable security definer as $$
declare
    bound text;
    num int;
begin
    select m.tenant into bound from turnlog.member as m where m.role operator(pg_catalog.=) session_user;
    bound := coalesce(bound, pg_catalog.current_setting('turnlog.tenant', true), '');
    select t.num into num from turnlog.tenant as t where t.name operator(pg_catalog.=) bound;
    return num;
end $$;

-- Not an equality: in a small or new table the planner would find an index on the tenant as good as the session's
-- number, keep that plan, and go through all sessions for each append.
alter policy own on turnlog.session using (tenant is not distinct from (select turnlog.tenant_num()));
