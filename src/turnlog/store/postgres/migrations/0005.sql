-- The id of a session may be used again: what tells it from every other one is the id of its first entry, and what is
-- kept aside of a purged one is found by that. Null says that it is called like the session, as all of before are.
alter table turnlog.session add column first_key bytea;
alter table turnlog.session drop constraint session_tenant_key_key;
create unique index session_first on turnlog.session (tenant, (coalesce(first_key, key)));
-- One session of a name, and one deleted one; of those that are kept aside, any number.
create unique index session_name on turnlog.session (tenant, key, (
    case place when 'live' then '\x00'::bytea when 'deleted' then '\x01'::bytea
    else '\x02'::bytea || coalesce(first_key, key) end));
-- While a table is new all its indexes look alike, and the planner takes the youngest: that has to be the one of numbers.
alter table turnlog.session drop constraint session_pkey, add primary key (tenant, num);
